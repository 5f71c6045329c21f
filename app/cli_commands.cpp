// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli_commands.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <set>
#include <system_error>

#include <nlohmann/json.hpp>

#include "app/cli_output.h"
#include "core/base/text.h"
#include "core/base/version.h"
#include "core/export/atomic_file.h"
#include "core/export/npy.h"
#include "core/export/provenance.h"
#include "core/kernels/thread_pool.h"
#include "core/metrics/map_report.h"
#include "core/metrics/metric_list.h"
#include "core/metrics/metric_table.h"
#include "core/probe/identical_word_probe.h"

namespace posiscope::app {
namespace {

using core::Error;
using core::ErrorCode;
using core::Result;
using json = nlohmann::ordered_json;

double seconds_since(std::chrono::steady_clock::time_point start)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Where the words of a stack come from, in words.
std::string words_text(const core::OpenModel& model, const core::Stack& stack)
{
    if (stack.content == core::InputContent::patches) return "patches of images, drawn or from --content";
    if (stack.content == core::InputContent::vectors) return "vectors, drawn or from --content";
    const core::Vocabulary& words = model.vocabulary_of(stack.id);
    return std::to_string(stack.word_rows) + " rows, " + std::to_string(words.drawable_count()) +
           " words that may be drawn, " +
           (words.source().empty() ? "shown by id" : "named by " + core::in_quotes(words.source()));
}

json words_object(const core::OpenModel& model, const core::Stack& stack)
{
    if (stack.content == core::InputContent::patches) return {{"content", "patches"}};
    if (stack.content == core::InputContent::vectors) return {{"content", "vectors"}};
    const core::Vocabulary& words = model.vocabulary_of(stack.id);
    return {{"content", "words"},
            {"source", words.source().empty() ? json() : json(words.source())},
            {"rows", stack.word_rows},
            {"words_that_may_be_drawn", words.drawable_count()}};
}

json info_object(const core::OpenModel& model)
{
    const core::Checkpoint& checkpoint = *model.checkpoint;
    json object;
    object["name"] = checkpoint.display_name();
    object["location"] = checkpoint.location();
    object["format"] = checkpoint.format();
    object["family"] = model.architecture.family_id;
    object["vocabulary"] = {{"rows", model.architecture.vocabulary_size},
                            {"words_that_may_be_drawn", model.vocabulary.drawable_count()},
                            {"has_texts", model.vocabulary.has_texts()}};
    object["stacks"] = json::array();
    for (const core::Stack& stack : model.architecture.stacks) {
        json one;
        one["stack"] = stack.id;
        one["scheme"] = stack.scheme_id;
        one["layers"] = stack.layers;
        one["layers_present"] = stack.layers_present;
        one["hidden_size"] = stack.hidden_size;
        one["heads"] = stack.heads;
        one["head_dim"] = stack.head_dim;
        one["causal"] = stack.causal;
        one["positions"] = stack.length_limit ? json(*stack.length_limit) : json();
        one["first_position_row"] = stack.first_position_row;
        one["position_tensor"] = stack.position_table;
        one["words"] = words_object(model, stack);
        object["stacks"].push_back(one);
    }
    object["tensors"] = json::array();
    for (const core::TensorInfo& tensor : checkpoint.tensors())
        object["tensors"].push_back({{"name", core::printable(tensor.name, 400)},
                                     {"dtype", core::dtype_name(tensor.dtype)},
                                     {"shape", tensor.shape}});
    object["tensors_matched"] = checkpoint.tensors().size() - model.unmatched_tensors.size();
    object["tensors_unmatched"] = as_json(model.unmatched_tensors);
    object["prefixes"] = as_json(model.prefixes);
    object["warnings"] = as_json(model.warnings);
    object["bytes_read"] = checkpoint.bytes_read();
    object["file_size"] = checkpoint.file_size();
    return object;
}

std::vector<std::string> quoted(const std::vector<std::string>& names)
{
    std::vector<std::string> out;
    for (const std::string& name : names) out.push_back(core::in_quotes(name));
    return out;
}

void print_info(const core::OpenModel& model)
{
    const core::Checkpoint& checkpoint = *model.checkpoint;
    print_line(checkpoint.display_name() + ": " + model.architecture.family_label + ", " +
               checkpoint.format());
    for (const core::Stack& stack : model.architecture.stacks) {
        print_line(
            "  " + stack.id + (stack.causal ? " (causal)" : "") + ": positions " + stack.scheme_label +
            (stack.length_limit ? ", " + std::to_string(*stack.length_limit) + " rows" : std::string{}) +
            "; layers " + std::to_string(stack.layers) +
            (stack.layers_present < stack.layers ? " (" + std::to_string(stack.layers_present) + " here)"
                                                 : std::string{}) +
            ", heads " + std::to_string(stack.heads) + " of " + std::to_string(stack.head_dim) +
            ", hidden size " + std::to_string(stack.hidden_size));
    }
    for (const core::Stack& stack : model.architecture.stacks)
        print_line("  " + stack.id + " reads " + words_text(model, stack));
    print_line(
        "  " +
        core::counted(checkpoint.tensors().size() - model.unmatched_tensors.size(), "tensor", "tensors") +
        " matched, " + std::to_string(model.unmatched_tensors.size()) + " unmatched" +
        (model.unmatched_tensors.empty()
             ? std::string{}
             : ": " + core::join_for_message(quoted(model.unmatched_tensors), 5)) +
        (model.prefixes.empty()
             ? std::string{}
             : "; taken off in front of names: " + core::join_for_message(quoted(model.prefixes), 5)));
    print_line("  tensors:");
    for (const core::TensorInfo& tensor : checkpoint.tensors())
        print_line("    " + core::printable(tensor.name) + "  " +
                   std::string(core::dtype_name(tensor.dtype)) + " " + core::shape_text(tensor.shape));
    print_line("  " + std::to_string(checkpoint.bytes_read()) + " of " +
               std::to_string(checkpoint.file_size()) + " bytes read");
}

/// One checkpoint's probe with what is measured beside it.
struct Probed {
    std::shared_ptr<const core::OpenModel> model;
    bool all_layers = false;               ///< --layer all, else one
    std::vector<core::ProbeResult> probes; ///< one for each layer
    std::vector<json> metrics;
    std::vector<std::string> warnings;
    double open_seconds = 0.0, metrics_seconds = 0.0;
};

Result<Probed> probe_one(const std::string& checkpoint, const ProbeCommandArguments& arguments,
                         const core::RunContext& ctx)
{
    Probed out;
    auto start = std::chrono::steady_clock::now();
    auto model = core::open_model(checkpoint, ctx);
    if (!model) return model.error();
    out.model = *std::move(model);
    out.open_seconds = seconds_since(start);
    out.warnings = out.model->warnings;

    auto options = probe_options(arguments.probe, *out.model, out.warnings);
    if (!options) return options.error();
    options->terms = arguments.terms;
    options->probabilities = !arguments.logits_only;
    options->group_spread = arguments.groups || !arguments.no_errors;
    out.all_layers = arguments.probe.layer == "all";
    auto probes = core::run_identical_word_probe(*out.model, *options,
                                                 chosen_layers(arguments.probe, *options, *out.model), ctx);
    if (!probes) return probes.error();
    out.probes = *std::move(probes);
    const auto& warnings = out.probes.front().warnings;
    out.warnings.insert(out.warnings.end(), warnings.begin(), warnings.end());

    start = std::chrono::steady_clock::now();
    core::MetricOptions metric_options;
    metric_options.seed = options->seed;
    for (const core::ProbeResult& probe : out.probes) {
        core::MetricTable errors;
        if (!arguments.no_errors) {
            auto table = core::evaluate_metrics(probe, metric_options, ctx);
            if (!table) return table.error();
            errors = *std::move(table);
        }
        out.metrics.push_back(core::probe_report(probe, errors));
    }
    out.metrics_seconds = seconds_since(start);
    return out;
}

/// Metrics of the one layer, or of all by their numbers.
json metrics_object(const Probed& probed)
{
    if (!probed.all_layers) return probed.metrics.front();
    json object;
    object["layers"] = json::array();
    for (std::size_t n = 0; n < probed.probes.size(); ++n) {
        json one = probed.metrics[n];
        one["layer"] = probed.probes[n].options.layer;
        object["layers"].push_back(std::move(one));
    }
    return object;
}

json probe_object(const Probed& probed)
{
    const core::ProbeResult& probe = probed.probes.front();
    json object;
    object["model"] = probe.model_name;
    object["family"] = probe.family;
    object["scheme"] = probe.scheme;
    object["stack"] = probe.options.stack;
    object["layer"] = probed.all_layers ? json("all") : json(probe.options.layer);
    object["length"] = probe.length;
    object["special"] = probe.options.variant == core::InputVariant::special;
    object["words"] = probe.word_ids;
    object["causal"] = probe.causal;
    object["way"] = core::probe_way_name(probe.way);
    if (probed.all_layers) {
        object["way"] = json::array();
        for (const core::ProbeResult& one : probed.probes)
            object["way"].push_back(core::probe_way_name(one.way));
    }
    object["device"] = probed.probes.back().device;
    object["kernels"] = probed.probes.back().kernels;
    object["threads"] = core::thread_count();
    object["warnings"] = as_json(probed.warnings);
    object["metrics"] = metrics_object(probed);
    object["timing"] = {
        {"open_s", probed.open_seconds}, {"probe_s", probe.seconds}, {"metrics_s", probed.metrics_seconds}};
    object["bytes_read"] = probed.model->checkpoint->bytes_read();
    return object;
}

/// Maps of all layers on top of each other: [layers, ...].
core::HostTensor stacked(const std::vector<core::ProbeResult>& probes,
                         const core::HostTensor& (*map)(const core::ProbeResult&))
{
    core::Shape shape = map(probes.front()).shape();
    std::vector<float> values;
    for (const core::ProbeResult& probe : probes)
        values.insert(values.end(), map(probe).values().begin(), map(probe).values().end());
    shape.insert(shape.begin(), static_cast<std::int64_t>(probes.size()));
    return {std::move(shape), std::move(values)};
}

struct WrittenMap {
    const char* name;
    const core::HostTensor& (*of)(const core::ProbeResult&);
    bool of_groups;
};
constexpr WrittenMap written_maps[]{
    {"attention_logits",
     [](const core::ProbeResult& p) -> const core::HostTensor& { return p.attention_logits; }, false},
    {"attention_probabilities",
     [](const core::ProbeResult& p) -> const core::HostTensor& { return p.attention_probabilities; }, false},
    {"groups_logits",
     [](const core::ProbeResult& p) -> const core::HostTensor& { return p.groups.attention_logits; }, true},
    {"groups_probabilities",
     [](const core::ProbeResult& p) -> const core::HostTensor& { return p.groups.attention_probabilities; },
     true},
};

Result<void> write_results(const Probed& probed, const ProbeCommandArguments& arguments,
                           const std::filesystem::path& folder)
{
    std::error_code fault;
    std::filesystem::create_directories(folder, fault);
    if (fault)
        return Error{ErrorCode::unreadable,
                     "the folder " + core::in_quotes(folder.string()) + " cannot be made: " + fault.message(),
                     "writing results"};
    const core::ProbeResult& probe = probed.probes.front();
    const auto write_map = [&](const std::string& name, const core::HostTensor& map) -> Result<void> {
        if (map.empty()) return {};
        return core::write_npy(folder / (name + ".npy"), map);
    };
    const auto write_text = [&](const std::string& name, const json& object) {
        return core::write_atomically(folder / name,
                                      object.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
    };
    const bool same_heads = std::all_of(probed.probes.begin(), probed.probes.end(),
                                        [&](const auto& one) { return one.heads == probe.heads; });
    for (const WrittenMap& map : written_maps) {
        if (map.of(probe).empty() || (map.of_groups && !arguments.groups)) continue;
        if (!probed.all_layers) {
            if (auto done = write_map(map.name, map.of(probe)); !done) return done;
        } else if (same_heads) {
            if (auto done = write_map(map.name, stacked(probed.probes, map.of)); !done) return done;
        } else {
            // Stages with other numbers of heads make no one array.
            for (const core::ProbeResult& one : probed.probes)
                if (auto done =
                        write_map(map.name + ("_layer" + std::to_string(one.options.layer)), map.of(one));
                    !done)
                    return done;
        }
    }
    for (const core::ProbeTerm& term : probe.terms)
        if (auto done = write_map("terms_" + term.id, term.values); !done) return done;
    if (auto done = write_text("metrics.json", metrics_object(probed)); !done) return done;
    json record = core::provenance(*probed.model, probe);
    if (probed.all_layers) record["settings"]["layer"] = "all";
    if (!arguments.probe.content.empty())
        record["settings"]["content"] = core::printable(arguments.probe.content, 4000);
    return write_text("provenance.json", record);
}

void print_layer(const core::ProbeResult& probe)
{
    char line[256];
    for (const core::Quantity quantity :
         {core::Quantity::constants_removed, core::Quantity::logits, core::Quantity::probabilities}) {
        const auto all = core::quantity_map(probe, quantity, core::mean_of_heads, core::PositionChoice::all);
        const auto rest =
            core::quantity_map(probe, quantity, core::mean_of_heads, core::PositionChoice::without_first);
        if (all.length == 0) continue;
        print_line("  " + std::string(core::quantity_id(quantity)) +
                   ", mean of heads (all positions, without first)");
        for (const core::Metric& metric : core::metric_list()) {
            const double value = metric.evaluate(all, quantity);
            const double without = metric.evaluate(rest, quantity);
            if (std::isnan(value) && std::isnan(without)) continue;
            std::snprintf(line, sizeof(line), "    %-44s %10.4f %10.4f", std::string(metric.label).c_str(),
                          value, without);
            print_line(line);
        }
    }
}

void print_probe(const Probed& probed)
{
    const core::ProbeResult& probe = probed.probes.front();
    char line[256];
    print_line(probe.model_name + ": " + probe.family + ", " + probe.scheme + ", " + probe.options.stack +
               " layer " + (probed.all_layers ? "all" : std::to_string(probe.options.layer)) + ", L = " +
               std::to_string(probe.length) + ", " + core::counted(probe.word_ids.size(), "word", "words") +
               ", " + std::string(core::probe_way_name(probe.way)) + " on " + probe.device);
    std::snprintf(line, sizeof(line), "  open %.1f ms, probe %.1f ms, metrics %.1f ms",
                  1e3 * probed.open_seconds, 1e3 * probe.seconds, 1e3 * probed.metrics_seconds);
    print_line(line);
    for (const core::ProbeResult& one : probed.probes) {
        if (probed.all_layers)
            print_line("  layer " + std::to_string(one.options.layer) + ", " +
                       std::string(core::probe_way_name(one.way)));
        print_layer(one);
    }
}

/// A folder for each checkpoint: its name, with a number where two are called the same.
std::string unused_name(const std::string& name, std::set<std::string>& used)
{
    std::string candidate = name.empty() ? "model" : name;
    for (int n = 2; !used.insert(candidate).second; ++n) candidate = name + "-" + std::to_string(n);
    return candidate;
}

std::optional<core::Grid> parse_grid(const std::string& text)
{
    const auto parts = core::split(text, 'x');
    if (parts.size() != 2) return std::nullopt;
    std::size_t sizes[2] = {0, 0};
    for (std::size_t n = 0; n < 2; ++n) {
        const auto [end, fault] =
            std::from_chars(parts[n].data(), parts[n].data() + parts[n].size(), sizes[n]);
        if (fault != std::errc{} || end != parts[n].data() + parts[n].size() || sizes[n] == 0)
            return std::nullopt;
    }
    return core::Grid{sizes[0], sizes[1]};
}

Result<core::PositionMap> map_from_file(const MetricsArguments& arguments)
{
    const auto source = core::open_file(arguments.map);
    if (!source) return source.error();
    const auto array = core::read_npy(**source);
    if (!array) return array.error();
    const core::Shape& shape = array->shape;
    const std::size_t rank = shape.size();
    if ((rank != 2 && rank != 3) || shape[rank - 1] != shape[rank - 2] || array->values.empty())
        return Error{ErrorCode::shape_mismatch,
                     core::in_quotes(arguments.map) + " holds an array of shape " + core::shape_text(shape) +
                         "; [L, L] or [heads, L, L] was expected",
                     "reading a map"};
    core::PositionMap map;
    map.length = static_cast<std::size_t>(shape.back());
    map.values.assign(map.length * map.length, 0.0);
    const auto heads = array->values.size() / map.values.size();
    for (std::size_t n = 0; n < array->values.size(); ++n) {
        if (std::isinf(array->values[n]))
            return Error{ErrorCode::numeric_failure,
                         core::in_quotes(arguments.map) + " holds an infinite value at entry " +
                             std::to_string(n) +
                             "; finite numbers, and NaN for entries that do not exist, were expected",
                         "reading a map"};
        map.values[n % map.values.size()] += array->values[n] / static_cast<double>(heads);
    }
    if (arguments.causal)
        for (std::size_t i = 0; i < map.length; ++i)
            for (std::size_t j = i + 1; j < map.length; ++j)
                map(i, j) = std::numeric_limits<double>::quiet_NaN();
    return map;
}

/// "  name   value" for every scalar of a report, nested names with dots; long lists are left to --json.
void print_report(const json& report, const std::string& prefix)
{
    for (const auto& [key, value] : report.items()) {
        const std::string name = prefix.empty() ? key : prefix + "." + key;
        if (value.is_object())
            print_report(value, name);
        else if (!value.is_array())
            print_line("  " + name + std::string(name.size() < 56 ? 56 - name.size() : 1, ' ') +
                       value.dump());
    }
}

} // namespace

int run_info(const InfoArguments& arguments, const core::RunContext& ctx)
{
    const auto model = core::open_model(arguments.checkpoint, ctx);
    if (!model) return fail(model.error());
    warn((*model)->warnings);
    if (arguments.json)
        print(info_object(**model));
    else
        print_info(**model);
    return exit_done;
}

int run_probe(const ProbeCommandArguments& arguments, const core::RunContext& ctx)
{
    json results = json::array();
    std::set<std::string> used;
    for (const std::string& checkpoint : arguments.checkpoints) {
        const auto probed = probe_one(checkpoint, arguments, ctx);
        if (!probed) return fail(probed.error());
        warn(probed->warnings);
        if (!arguments.out.empty()) {
            std::filesystem::path folder = arguments.out;
            if (arguments.checkpoints.size() > 1)
                folder /= unused_name(probed->probes.front().model_name, used);
            if (auto written = write_results(*probed, arguments, folder); !written)
                return fail(written.error());
        }
        if (arguments.json)
            results.push_back(probe_object(*probed));
        else
            print_probe(*probed);
    }
    if (arguments.json) print(results.size() == 1 ? results.front() : json{{"results", results}});
    return exit_done;
}

int run_metrics(const MetricsArguments& arguments, const core::RunContext&)
{
    std::optional<core::Grid> grid;
    if (!arguments.grid.empty()) {
        grid = parse_grid(arguments.grid);
        if (!grid) {
            std::fprintf(stderr, "posiscope-cli: --grid %s: rows and columns were expected, such as 14x14\n",
                         core::in_quotes(arguments.grid, 40).c_str());
            return exit_usage;
        }
    }
    const auto map = map_from_file(arguments);
    if (!map) return fail(map.error());
    if (grid && grid->rows * grid->cols != map->length)
        return fail({ErrorCode::invalid_argument,
                     "--grid " + arguments.grid + " has " + std::to_string(grid->rows * grid->cols) +
                         " patches, but the map has " + std::to_string(map->length) + " positions",
                     "options"});
    const json report = core::map_report(*map, arguments.probabilities, grid);
    if (arguments.json)
        print(report);
    else
        print_report(report, "");
    return exit_done;
}

} // namespace posiscope::app
