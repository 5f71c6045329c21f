// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/probe/identical_word_probe.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "core/base/text.h"
#include "core/kernels/kernel_set.h"
#include "core/kernels/thread_pool.h"
#include "core/model/engine.h"
#include "core/probe/first_layer.h"
#include "core/probe/word_choice.h"

namespace posiscope::core {

std::string_view probe_way_name(ProbeWay way)
{
    switch (way) {
    case ProbeWay::closed_form: return "closed_form";
    case ProbeWay::one_row: return "one_row";
    case ProbeWay::forward: return "forward";
    }
    return "closed_form";
}

namespace {

Error refused(const std::string& message)
{
    return Error{ErrorCode::invalid_argument, message, "identical-word probe"};
}

/// Weights of one checkpoint, read when they are needed and checked for values that are no numbers.
class WeightReader {
public:
    explicit WeightReader(const Checkpoint& checkpoint) : m_checkpoint(checkpoint) {}

    Result<HostTensor> whole(const std::string& name) const { return checked(name, m_checkpoint.read(name)); }
    Result<HostTensor> rows(const std::string& name, std::span<const std::int64_t> rows) const
    {
        return checked(name, m_checkpoint.read_rows(name, rows));
    }
    /// An empty tensor where there is no name.
    Result<HostTensor> optional(const std::string& name) const
    {
        if (name.empty()) return HostTensor{};
        return whole(name);
    }

private:
    Result<HostTensor> checked(const std::string& name, Result<HostTensor> read) const
    {
        if (!read) return read;
        const auto values = std::as_const(*read).values();
        const auto faults = std::count_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
        if (faults == 0) return read;
        return Error{ErrorCode::numeric_failure,
                     "tensor " + in_quotes(name) + " in " + in_quotes(m_checkpoint.weights_name()) + " holds " +
                         counted(static_cast<std::size_t>(faults), "value that is", "values that are") +
                         " not finite (NaN or infinite)",
                     "reading weights"};
    }

    const Checkpoint& m_checkpoint;
};

/// Reads into `out`, or keeps the first fault.
struct Collect {
    std::optional<Error> fault;
    void operator()(HostTensor& out, Result<HostTensor> read)
    {
        if (fault) return;
        if (read) out = *std::move(read);
        else fault = read.error();
    }
};

/// What the network reads, as rows of embeddings: shared by the closed form and the forward pass.
struct ProbeInput {
    HostTensor word_rows, position_rows;
    std::vector<SpecialContent> special_content;
    HostTensor norm_gain, norm_bias;
};

void add_row(HostTensor& rows, const HostTensor& row)
{
    if (row.empty()) return;
    const std::size_t d = row.size();
    for (std::size_t at = 0; at < rows.size(); ++at) rows.data()[at] += row.data()[at % d];
}

Result<std::vector<std::int64_t>> special_ids_at(const OpenModel& model, const Stack& stack,
                                                 const ProbeOptions& options, std::vector<std::int64_t>& positions)
{
    std::vector<std::int64_t> ids;
    if (options.variant == InputVariant::plain) return ids;
    const auto leading = static_cast<std::int64_t>(stack.special_leading.size());
    const auto trailing = static_cast<std::int64_t>(stack.special_trailing.size());
    if (leading + trailing == 0)
        return refused("the special tokens of " + in_quotes(model.checkpoint->display_name()) +
                       " are not known (they are found by name in its vocabulary); only the plain input can be probed");
    if (options.length <= leading + trailing)
        return refused("length " + std::to_string(options.length) + " leaves no room for a word between " +
                       std::to_string(leading + trailing) + " special tokens");
    for (std::int64_t n = 0; n < leading; ++n) positions.push_back(n);
    for (std::int64_t n = 0; n < trailing; ++n) positions.push_back(options.length - trailing + n);
    ids = stack.special_leading;
    ids.insert(ids.end(), stack.special_trailing.begin(), stack.special_trailing.end());
    return ids;
}

Result<ProbeInput> read_input(const OpenModel& model, const Stack& stack, const ProbeOptions& options,
                              std::span<const Vocabulary::Entry* const> words,
                              std::vector<std::int64_t>& special_positions)
{
    const WeightReader weights(*model.checkpoint);
    ProbeInput input;
    HostTensor token_type, special_rows;
    Collect collect;

    std::vector<std::int64_t> rows;
    for (const Vocabulary::Entry* word : words) rows.push_back(word->row);
    collect(input.word_rows, weights.rows(stack.word_table, rows));
    if (!stack.token_type_table.empty()) {
        const std::int64_t first = 0;
        collect(token_type, weights.rows(stack.token_type_table, {&first, 1}));
    }

    const auto special_ids = special_ids_at(model, stack, options, special_positions);
    if (!special_ids) return special_ids.error();
    rows.clear();
    for (const std::int64_t id : *special_ids) rows.push_back(model.vocabulary.find_id(id)->row);
    if (!rows.empty()) collect(special_rows, weights.rows(stack.word_table, rows));

    if (options.no_positions || stack.position_table.empty()) {
        input.position_rows = HostTensor({options.length, stack.hidden_size});
    } else {
        rows.resize(static_cast<std::size_t>(options.length));
        for (std::size_t i = 0; i < rows.size(); ++i)
            rows[i] = stack.first_position_row + static_cast<std::int64_t>(i);
        collect(input.position_rows, weights.rows(stack.position_table, rows));
    }
    collect(input.norm_gain, weights.optional(stack.embedding_norm.gain));
    collect(input.norm_bias, weights.optional(stack.embedding_norm.bias));
    if (collect.fault) return *collect.fault;

    add_row(input.word_rows, token_type);
    add_row(special_rows, token_type);
    for (std::size_t s = 0; s < special_positions.size(); ++s) {
        const auto d = static_cast<std::size_t>(stack.hidden_size);
        const auto row = special_rows.values().subspan(s * d, d);
        input.special_content.push_back({static_cast<std::size_t>(special_positions[s]),
                                         HostTensor({stack.hidden_size}, {row.begin(), row.end()})});
    }
    return input;
}

Result<void> run_closed_form(const OpenModel& model, const Stack& stack, ProbeInput input, ProbeResult& result,
                             const RunContext& ctx)
{
    const WeightReader weights(*model.checkpoint);
    const LayerNames& names = stack.layer_names.front();
    FirstLayer layer;
    layer.heads = static_cast<std::size_t>(stack.heads);
    layer.head_dim = static_cast<std::size_t>(stack.head_dim);
    layer.logit_scale = stack.logit_scale;
    layer.causal = stack.causal;
    layer.word_rows = std::move(input.word_rows);
    layer.position_rows = std::move(input.position_rows);
    layer.special_content = std::move(input.special_content);
    layer.norm = stack.embedding_norm.kind;
    layer.norm_epsilon = stack.embedding_norm.epsilon;
    layer.norm_gain = std::move(input.norm_gain);
    layer.norm_bias = std::move(input.norm_bias);
    Collect collect;
    collect(layer.query_weight, weights.whole(names.query.weight));
    collect(layer.query_bias, weights.optional(names.query.bias));
    collect(layer.key_weight, weights.whole(names.key.weight));
    collect(layer.key_bias, weights.optional(names.key.bias));
    if (collect.fault) return *collect.fault;

    FirstLayerOptions options;
    options.probabilities = result.options.probabilities;
    options.terms = result.options.terms;
    options.group_spread = result.options.group_spread;
    options.group_sizes = group_sizes(result.word_ids.size());
    auto maps = first_layer_attention(layer, options, ctx);
    if (!maps) return maps.error();
    result.attention_logits = std::move(maps->attention_logits);
    result.attention_probabilities = std::move(maps->attention_probabilities);
    result.terms = std::move(maps->terms);
    if (options.group_spread) {
        result.groups.word_counts = options.group_sizes;
        result.groups.attention_logits = std::move(maps->group_attention_logits);
        result.groups.attention_probabilities = std::move(maps->group_attention_probabilities);
    }
    result.way = ProbeWay::closed_form;
    result.device = "cpu";
    result.kernels = kernels().name;
    return {};
}

Result<ForwardLayer> read_forward_layer(const OpenModel& model, const Stack& stack, std::size_t number, bool whole)
{
    const WeightReader weights(*model.checkpoint);
    const LayerNames& names = stack.layer_names[number];
    ForwardLayer layer;
    Collect collect;
    const auto need = [&](HostTensor& out, const std::string& name, const char* what) {
        if (name.empty() && !collect.fault)
            collect.fault = Error{ErrorCode::not_found,
                                  in_quotes(model.checkpoint->weights_name()) + " lacks " + what + " of layer " +
                                      std::to_string(number) + ", which the layers behind it need",
                                  "reading weights"};
        collect(out, weights.optional(name));
    };
    need(layer.query_weight, names.query.weight, "the query weight");
    collect(layer.query_bias, weights.optional(names.query.bias));
    need(layer.key_weight, names.key.weight, "the key weight");
    collect(layer.key_bias, weights.optional(names.key.bias));
    if (whole) {
        need(layer.value_weight, names.value.weight, "the value weight");
        collect(layer.value_bias, weights.optional(names.value.bias));
        need(layer.attention_output_weight, names.attention_output.weight, "the attention output weight");
        collect(layer.attention_output_bias, weights.optional(names.attention_output.bias));
        need(layer.attention_norm_gain, names.attention_norm.gain, "the norm behind the attention");
        need(layer.attention_norm_bias, names.attention_norm.bias, "the norm behind the attention");
        need(layer.feed_forward_in_weight, names.feed_forward_in.weight, "the feed-forward input weight");
        collect(layer.feed_forward_in_bias, weights.optional(names.feed_forward_in.bias));
        need(layer.feed_forward_out_weight, names.feed_forward_out.weight, "the feed-forward output weight");
        collect(layer.feed_forward_out_bias, weights.optional(names.feed_forward_out.bias));
        need(layer.feed_forward_norm_gain, names.feed_forward_norm.gain, "the norm behind the feed-forward block");
        need(layer.feed_forward_norm_bias, names.feed_forward_norm.bias, "the norm behind the feed-forward block");
    }
    if (collect.fault) return *collect.fault;
    return layer;
}

Result<void> run_forward(const OpenModel& model, const Stack& stack, ProbeInput input, ProbeResult& result,
                         const RunContext& ctx)
{
    const auto engine = load_engine();
    if (!engine) return engine.error();
    const bool cuda = result.options.device == DeviceChoice::cuda ||
                      (result.options.device == DeviceChoice::automatic && (*engine)->has_cuda());
    if (cuda && !(*engine)->has_cuda())
        return refused("the device cuda was asked for, but " + (*engine)->version() +
                       " sees no CUDA device here; choose cpu");

    ForwardModel forward;
    forward.heads = stack.heads;
    forward.head_dim = stack.head_dim;
    forward.logit_scale = stack.logit_scale;
    forward.norm_epsilon = stack.embedding_norm.epsilon;
    forward.activation = stack.activation;
    forward.causal = stack.causal;
    forward.word_rows = std::move(input.word_rows);
    forward.position_rows = std::move(input.position_rows);
    for (SpecialContent& special : input.special_content)
        forward.special_content.push_back({static_cast<std::int64_t>(special.position), std::move(special.row)});
    forward.embedding_norm_gain = std::move(input.norm_gain);
    forward.embedding_norm_bias = std::move(input.norm_bias);
    const auto last = static_cast<std::size_t>(result.options.layer);
    for (std::size_t number = 0; number <= last; ++number) {
        if (ctx.cancelled()) return cancelled_error("the probe");
        auto layer = read_forward_layer(model, stack, number, number < last);
        if (!layer) return layer.error();
        forward.layers.push_back(*std::move(layer));
    }

    ForwardOptions options;
    options.device = cuda ? "cuda" : "cpu";
    options.probabilities = result.options.probabilities;
    options.threads = thread_count();
    const auto sizes = group_sizes(result.word_ids.size());
    options.groups = sizes.size();
    for (std::size_t group = 0; group < sizes.size(); ++group)
        options.group_of_word.insert(options.group_of_word.end(), sizes[group], group);
    auto maps = (*engine)->attention_maps(forward, options, ctx);
    if (!maps) return maps.error();
    result.attention_logits = std::move(maps->attention_logits);
    result.attention_probabilities = std::move(maps->attention_probabilities);
    if (result.options.group_spread) {
        result.groups.word_counts = sizes;
        result.groups.attention_logits = std::move(maps->group_attention_logits);
        result.groups.attention_probabilities = std::move(maps->group_attention_probabilities);
    }
    result.way = ProbeWay::forward;
    result.device = maps->device;
    result.kernels = (*engine)->version() + ", " + (*engine)->kernels();
    for (const std::string& warning : (*engine)->warnings()) result.warnings.push_back(warning);
    for (std::string& warning : maps->warnings) result.warnings.push_back(std::move(warning));
    return {};
}

Result<const Stack*> check_options(const OpenModel& model, const ProbeOptions& options)
{
    const std::string name = in_quotes(model.checkpoint->display_name());
    const Stack* stack = model.architecture.find_stack(options.stack);
    if (stack == nullptr) {
        std::vector<std::string> known;
        for (const Stack& one : model.architecture.stacks) known.push_back(in_quotes(one.id));
        return refused(name + " has no stack " + in_quotes(options.stack, 40) + "; it has " + join_for_message(known));
    }
    if (options.layer < 0 || options.layer >= stack->layers)
        return refused("layer " + std::to_string(options.layer) + " was asked for; " + name + " has layers 0 to " +
                       std::to_string(stack->layers - 1));
    if (options.layer >= stack->layers_present)
        return Error{ErrorCode::not_found,
                     "layer " + std::to_string(options.layer) + " cannot be probed, this file holds " +
                         std::to_string(stack->layers_present) + " of " + std::to_string(stack->layers) +
                         " layers: " + stack->missing_tensor,
                     "identical-word probe"};
    if (options.length < 1) return refused("length " + std::to_string(options.length) + " was asked for; at least 1 is needed");
    if (stack->length_limit && options.length > *stack->length_limit)
        return refused("length " + std::to_string(options.length) + " was asked for; the position table of " + name +
                       " has rows for " + std::to_string(*stack->length_limit) + " positions");
    constexpr std::int64_t longest = 16384; // L x L maps of every head must fit the memory
    if (options.length > longest)
        return refused("length " + std::to_string(options.length) + " was asked for; at most " +
                       std::to_string(longest) + " can be shown");
    if (options.terms && (options.layer > 0 || options.force_forward || options.device == DeviceChoice::cuda))
        return refused("the terms of the logits exist for the first layer's closed form only");
    return stack;
}

} // namespace

Result<ProbeResult> run_identical_word_probe(const OpenModel& model, const ProbeOptions& options,
                                             const RunContext& ctx)
{
    const auto started = std::chrono::steady_clock::now();
    const auto stack = check_options(model, options);
    if (!stack) return stack.error();

    ProbeResult result;
    result.options = options;
    result.options.stack = (*stack)->id;
    result.model_name = model.checkpoint->display_name();
    result.family = model.architecture.family_id;
    result.scheme = (*stack)->scheme_id;
    result.heads = (*stack)->heads;
    result.length = options.length;
    result.causal = (*stack)->causal;
    try {
        const auto words = choose_words(model, options.words, options.seed, result.warnings);
        if (!words) return words.error();
        for (const Vocabulary::Entry* word : *words) {
            result.word_ids.push_back(word->id);
            result.words.push_back(model.vocabulary.shown(word->id));
        }
        auto input = read_input(model, **stack, options, *words, result.special_positions);
        if (!input) return input.error();
        const bool forward =
            options.layer > 0 || options.force_forward || options.device == DeviceChoice::cuda;
        auto run = forward ? run_forward(model, **stack, *std::move(input), result, ctx)
                           : run_closed_form(model, **stack, *std::move(input), result, ctx);
        if (!run) return run.error();
    } catch (const std::bad_alloc&) {
        return Error{ErrorCode::out_of_memory,
                     "there is not enough memory for maps of length " + std::to_string(options.length) + " with " +
                         std::to_string((*stack)->heads) + " heads; take a shorter length or leave the spread over words out",
                     "identical-word probe"};
    }
    const auto logits = std::as_const(result.attention_logits).values();
    if (!std::all_of(logits.begin(), logits.end(), [](float v) { return std::isfinite(v); }))
        return Error{ErrorCode::numeric_failure,
                     "the logits of layer " + std::to_string(options.layer) + " of " +
                         in_quotes(result.model_name) + " are too large for float32",
                     "identical-word probe"};
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    return result;
}

} // namespace posiscope::core
