// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/probe_arguments.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <numeric>

#include "core/base/text.h"
#include "core/checkpoint/byte_source.h"
#include "core/export/npy.h"
#include "core/kernels/thread_pool.h"
#include "core/probe/identical_word_probe.h"

namespace posiscope::app {

void add_probe_arguments(CLI::App& command, ProbeArguments& arguments)
{
    command
        .add_option_function<std::int64_t>(
            "--length",
            [&arguments](std::int64_t length) {
                arguments.length = length;
                arguments.length_given = true;
            },
            "Number of positions L, special tokens included")
        ->default_str(std::to_string(ProbeArguments::default_length));
    auto* words = command.add_option("--words", arguments.words,
                                     "How many words to draw (default 300), or words as text: the,cat");
    auto* ids = command.add_option("--word-ids", arguments.word_ids, "Ids of the original vocabulary: 5,7")
                    ->delimiter(',');
    auto* all = command.add_flag("--all-words", arguments.all_words, "Every word that may be drawn");
    ids->excludes(all);
    words->excludes(all);
    words->excludes(ids);
    command.add_option("--seed", arguments.seed, "Seed of the draw")->capture_default_str();
    command.add_option("--stack", arguments.stack, "Stack of layers: encoder, decoder, text or vision");
    command.add_option("--layer", arguments.layer, "Layer, from 0")
        ->check([](const std::string& text) {
            const bool number =
                !text.empty() && text.size() < 10 &&
                std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
            return number || text == "all" ? std::string{} : "a layer's number or 'all' was expected";
        })
        ->capture_default_str();
    command.add_flag("--special", arguments.special, "Put the words between the family's special tokens");
    command.add_flag("--no-positions", arguments.no_positions, "Take the position embeddings out");
    command.add_option("--device", arguments.device, "auto, cpu or cuda")
        ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
        ->capture_default_str();
    command.add_option(
        "--content", arguments.content,
        "Patches [N, channels, side, side] or vectors [N, d] in a .npy file, in the place of words");
    command.add_option("--window", arguments.window, "Which window of a shifted layer (Swin)")
        ->capture_default_str();
    command.add_flag("--no-segments", arguments.no_segments, "Leave the segment terms out (XLNet)");
    command.add_flag("--forward", arguments.forward,
                     "Take the real forward pass where the closed form would do");
}

namespace {

core::Result<std::shared_ptr<const core::HostTensor>> read_content(const std::string& file)
{
    const auto source = core::open_file(file);
    if (!source) return source.error();
    const auto array = core::read_npy(**source);
    if (!array) return array.error();
    if (array->values.empty())
        return core::Error{core::ErrorCode::invalid_argument,
                           core::in_quotes(file) + " holds an array of shape " +
                               core::shape_text(array->shape) +
                               " without numbers; patches or vectors were expected",
                           "options"};
    auto tensor = std::make_shared<core::HostTensor>(array->shape);
    for (std::size_t n = 0; n < array->values.size(); ++n) {
        tensor->data()[n] = static_cast<float>(array->values[n]);
        if (!std::isfinite(tensor->data()[n]))
            return core::Error{core::ErrorCode::numeric_failure,
                               core::in_quotes(file) + " holds " + std::to_string(array->values[n]) +
                                   " at entry " + std::to_string(n) + "; finite numbers were expected",
                               "options"};
    }
    return std::shared_ptr<const core::HostTensor>(std::move(tensor));
}

} // namespace

core::Result<core::ProbeOptions> probe_options(const ProbeArguments& arguments, const core::OpenModel& model,
                                               std::vector<std::string>& warnings)
{
    core::ProbeOptions options;
    options.stack = arguments.stack;
    if (arguments.layer != "all") options.layer = std::stoi(arguments.layer);
    options.segments = !arguments.no_segments;
    options.window = arguments.window;
    if (!arguments.content.empty()) {
        auto content = read_content(arguments.content);
        if (!content) return content.error();
        options.content = *std::move(content);
    }
    options.seed = arguments.seed;
    options.no_positions = arguments.no_positions;
    options.force_forward = arguments.forward;
    options.variant = arguments.special ? core::InputVariant::special : core::InputVariant::plain;
    options.device = arguments.device == "cuda"  ? core::DeviceChoice::cuda
                     : arguments.device == "cpu" ? core::DeviceChoice::cpu
                                                 : core::DeviceChoice::automatic;
    options.length = arguments.length;
    const core::Stack* stack = model.architecture.find_stack(arguments.stack);
    if (!arguments.length_given && stack != nullptr) {
        options.length = core::default_length(*stack, options.variant, options.length);
        if (options.length < arguments.length && core::has_free_length(*stack))
            warnings.push_back("the length is " + std::to_string(options.length) +
                               ", all that the position table of " +
                               core::in_quotes(model.checkpoint->display_name()) + " has rows for");
    }

    if (arguments.all_words) {
        options.words.kind = core::WordSelection::Kind::all;
    } else if (!arguments.word_ids.empty()) {
        options.words.kind = core::WordSelection::Kind::listed;
        options.words.ids = arguments.word_ids;
    } else if (!arguments.words.empty()) {
        const std::string& text = arguments.words;
        const bool number =
            std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
        if (number) {
            const auto [end, fault] =
                std::from_chars(text.data(), text.data() + text.size(), options.words.count);
            if (fault != std::errc{})
                return core::Error{core::ErrorCode::invalid_argument,
                                   "--words " + core::in_quotes(text, 40) + " is too large a number",
                                   "options"};
        } else {
            options.words.kind = core::WordSelection::Kind::listed;
            for (const std::string_view word : core::split(text, ','))
                if (!core::trimmed(word).empty()) options.words.words.emplace_back(core::trimmed(word));
        }
    }
    return options;
}

std::vector<int> chosen_layers(const ProbeArguments& arguments, const core::ProbeOptions& options,
                               const core::OpenModel& model)
{
    const core::Stack* stack = model.architecture.find_stack(options.stack);
    if (arguments.layer != "all" || stack == nullptr || stack->layers_present == 0) return {options.layer};
    std::vector<int> layers(static_cast<std::size_t>(stack->layers_present));
    std::iota(layers.begin(), layers.end(), 0);
    return layers;
}

void add_threads_argument(CLI::App& command)
{
    command
        .add_option_function<std::size_t>(
            "--threads", [](std::size_t threads) { core::set_thread_count(threads); },
            "Threads to use (default: OMP_NUM_THREADS, else the cores)")
        ->check(CLI::Range(std::size_t{1}, std::size_t{4096}));
}

} // namespace posiscope::app
