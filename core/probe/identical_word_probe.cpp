// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/probe/identical_word_probe.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <new>
#include <optional>
#include <utility>

#include "core/base/text.h"
#include "core/kernels/kernel_set.h"
#include "core/kernels/thread_pool.h"
#include "core/model/engine.h"
#include "core/probe/first_layer.h"
#include "core/probe/network_reader.h"
#include "core/probe/offset_attention.h"
#include "core/probe/row_network.h"
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

MapOptions map_options(const ProbeResult& result)
{
    MapOptions options;
    options.probabilities = result.options.probabilities;
    options.terms = result.options.terms;
    options.group_spread = result.options.group_spread;
    options.group_sizes = group_sizes(result.word_ids.size());
    return options;
}

void take_maps(AttentionMaps maps, const MapOptions& options, ProbeResult& result)
{
    result.attention_logits = std::move(maps.attention_logits);
    result.attention_probabilities = std::move(maps.attention_probabilities);
    result.terms = std::move(maps.terms);
    if (!options.group_spread) return;
    result.groups.word_counts = options.group_sizes;
    result.groups.attention_logits = std::move(maps.group_attention_logits);
    result.groups.attention_probabilities = std::move(maps.group_attention_probabilities);
}

/// The map [embedding size -> hidden size] that stands between the norm and the first layer is folded into the
/// projection behind it.
Linear behind_map(const Linear& map, Linear projection)
{
    if (map.empty()) return projection;
    const std::int64_t out = projection.weight.dim(0), hidden = map.weight.dim(0), in = map.weight.dim(1);
    Linear folded{HostTensor({out, in}), HostTensor({out})};
    for (std::int64_t r = 0; r < out; ++r) {
        std::vector<double> row(static_cast<std::size_t>(in), 0.0);
        double bias = projection.bias.empty() ? 0.0 : static_cast<double>(projection.bias.data()[r]);
        for (std::int64_t h = 0; h < hidden; ++h) {
            const double weight = static_cast<double>(projection.weight.data()[r * hidden + h]);
            if (!map.bias.empty()) bias += weight * static_cast<double>(map.bias.data()[h]);
            for (std::int64_t f = 0; f < in; ++f)
                row[static_cast<std::size_t>(f)] +=
                    weight * static_cast<double>(map.weight.data()[h * in + f]);
        }
        std::transform(row.begin(), row.end(), folded.weight.data() + r * in,
                       [](double value) { return static_cast<float>(value); });
        folded.bias.data()[r] = static_cast<float>(bias);
    }
    return folded;
}

/// Whether the closed form of rows norm(word + position) holds: one norm at most before queries and keys, and nothing
/// in the attention that acts on them but a bias.
bool has_closed_form(const Network& network)
{
    const NetworkLayer& layer = network.layers.front();
    const bool two_norms =
        network.embedding_norm.kind != NormKind::none && layer.attention_input_norm.kind != NormKind::none;
    const bool map_before_norm =
        !network.embedding_map.empty() && layer.attention_input_norm.kind != NormKind::none;
    const AttentionPositions& positions = layer.positions;
    return !two_norms && !map_before_norm && layer.query_norm.kind == NormKind::none &&
           positions.key_offsets.empty() && positions.query_offsets.empty() &&
           positions.rotary_cosines.empty();
}

Result<void> run_closed_form(Network network, ProbeResult& result, const RunContext& ctx)
{
    NetworkLayer& first = network.layers.front();
    FirstLayer layer;
    layer.heads = static_cast<std::size_t>(network.heads);
    layer.head_dim = static_cast<std::size_t>(network.head_dim);
    layer.logit_scale = network.logit_scale;
    if (network.window_before >= 0) layer.keys_before = static_cast<std::size_t>(network.window_before);
    if (network.window_after >= 0) layer.keys_after = static_cast<std::size_t>(network.window_after);
    if (network.causal) layer.keys_after = 0;
    layer.word_rows = std::move(network.word_rows);
    layer.position_rows = std::move(network.position_rows);
    for (Network::SpecialRow& special : network.special_rows)
        layer.special_content.push_back({static_cast<std::size_t>(special.position), std::move(special.row)});
    Norm& norm =
        network.embedding_norm.kind != NormKind::none ? network.embedding_norm : first.attention_input_norm;
    layer.norm = norm.kind;
    layer.norm_epsilon = norm.epsilon;
    layer.norm_gain = std::move(norm.gain);
    layer.norm_bias = std::move(norm.bias);
    Linear query = behind_map(network.embedding_map, std::move(first.query));
    Linear key = behind_map(network.embedding_map, std::move(first.key));
    layer.query_weight = std::move(query.weight);
    layer.query_bias = std::move(query.bias);
    layer.key_weight = std::move(key.weight);
    layer.key_bias = std::move(key.bias);
    layer.bias = std::move(first.positions.bias);

    const MapOptions options = map_options(result);
    auto maps = first_layer_attention(layer, options, ctx);
    if (!maps) return maps.error();
    take_maps(*std::move(maps), options, result);
    result.way = ProbeWay::closed_form;
    return {};
}

/// Special rows as one tensor [special tokens, embedding size], or empty.
HostTensor special_rows(const Network& network)
{
    if (network.special_rows.empty()) return {};
    const std::int64_t d = network.word_rows.dim(1);
    HostTensor rows({static_cast<std::int64_t>(network.special_rows.size()), d});
    for (std::size_t s = 0; s < network.special_rows.size(); ++s)
        std::copy_n(network.special_rows[s].row.data(), d, rows.data() + static_cast<std::int64_t>(s) * d);
    return rows;
}

/// Schemes that act inside the attention only: one row per word through the layers before, then every offset.
Result<void> run_one_row(Network network, ProbeResult& result, const RunContext& ctx)
{
    HostTensor special = special_rows(network);
    HostTensor words = enter_first_layer(network, std::move(network.word_rows));
    if (!special.empty()) special = enter_first_layer(network, std::move(special));
    for (std::size_t number = 0; number + 1 < network.layers.size(); ++number) {
        if (ctx.cancelled()) return cancelled_error("the probe");
        ctx.report({"layers", number, network.layers.size() - 1});
        if (auto passed = pass_layer(network.layers[number], words); !passed) return passed.error();
    }
    const MapOptions options = map_options(result);
    auto maps = offset_attention(network, network.layers.back(), words, special, options, ctx);
    if (!maps) return maps.error();
    take_maps(*std::move(maps), options, result);
    const bool first = network.layers.size() == 1 && network.layers.back().query_norm.kind == NormKind::none;
    result.way = first ? ProbeWay::closed_form : ProbeWay::one_row;
    return {};
}

/// Identical words stay identical at every position: nothing positional reaches the hidden states.
bool keeps_rows_identical(const Network& network)
{
    return !network.has_absolute_positions && network.special_rows.empty() &&
           std::all_of(network.layers.begin(), network.layers.end(), [](const NetworkLayer& layer) {
               return layer.positions.value_offsets.empty() && layer.cross_query.empty() &&
                      layer.feed_forward_width == 1;
           });
}

Result<void> run_forward(const Network& network, ProbeResult& result, const RunContext& ctx)
{
    const auto engine = load_engine();
    if (!engine) return engine.error();
    const bool cuda = result.options.device == DeviceChoice::cuda ||
                      (result.options.device == DeviceChoice::automatic && (*engine)->has_cuda());
    if (cuda && !(*engine)->has_cuda())
        return refused("the device cuda was asked for, but " + (*engine)->version() +
                       " sees no CUDA device here; choose cpu");
    ForwardOptions options;
    options.device = cuda ? "cuda" : "cpu";
    options.probabilities = result.options.probabilities;
    options.threads = thread_count();
    const auto sizes = group_sizes(result.word_ids.size());
    options.groups = sizes.size();
    for (std::size_t group = 0; group < sizes.size(); ++group)
        options.group_of_word.insert(options.group_of_word.end(), sizes[group], group);
    auto maps = (*engine)->attention_maps(network, options, ctx);
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

/// Entries outside a window that decides what exists (Longformer) become NaN.
void mark_absent(const Stack& stack, HostTensor& maps)
{
    if (!stack.window_is_absence || maps.empty()) return;
    const std::int64_t L = maps.shape().back();
    for (std::size_t n = 0; n < maps.size(); ++n) {
        const auto i = static_cast<std::int64_t>(n) / L % L, j = static_cast<std::int64_t>(n) % L;
        if ((stack.window_before >= 0 && i - j > stack.window_before) ||
            (stack.window_after >= 0 && j - i > stack.window_after))
            maps.data()[n] = std::numeric_limits<float>::quiet_NaN();
    }
}

Result<const Stack*> check_options(const OpenModel& model, const ProbeOptions& options)
{
    const std::string name = in_quotes(model.checkpoint->display_name());
    const Stack* stack = model.architecture.find_stack(options.stack);
    if (stack == nullptr) {
        std::vector<std::string> known;
        for (const Stack& one : model.architecture.stacks) known.push_back(in_quotes(one.id));
        return refused(name + " has no stack " + in_quotes(options.stack, 40) + "; it has " +
                       join_for_message(known));
    }
    if (options.layer < 0 || options.layer >= stack->layers)
        return refused("layer " + std::to_string(options.layer) + " was asked for; " + name +
                       " has layers 0 to " + std::to_string(stack->layers - 1));
    if (options.layer >= stack->layers_present)
        return Error{ErrorCode::not_found,
                     "layer " + std::to_string(options.layer) + " cannot be probed, this file holds " +
                         std::to_string(stack->layers_present) + " of " + std::to_string(stack->layers) +
                         " layers: " + stack->missing_tensor,
                     "identical-word probe"};
    if (options.length < 1)
        return refused("length " + std::to_string(options.length) + " was asked for; at least 1 is needed");
    if (stack->length_limit && options.length > *stack->length_limit)
        return refused("length " + std::to_string(options.length) + " was asked for; the position table of " +
                       name + " has rows for " + std::to_string(*stack->length_limit) + " positions");
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
        auto network = read_network(model, **stack, options, *words, result.special_positions, ctx);
        if (!network) return network.error();
        result.device = "cpu";
        result.kernels = kernels().name;
        const bool own_way = !options.force_forward && options.device != DeviceChoice::cuda;
        Result<void> run;
        if (own_way && network->has_absolute_positions && options.layer == 0 && has_closed_form(*network))
            run = run_closed_form(*std::move(network), result, ctx);
        else if (own_way && !network->has_absolute_positions &&
                 (options.layer == 0 || (keeps_rows_identical(*network) && !(*stack)->has_cross_attention)))
            run = run_one_row(*std::move(network), result, ctx);
        else if ((*stack)->has_cross_attention && options.layer > 0)
            run =
                Error{ErrorCode::unsupported_model,
                      "layer " + std::to_string(options.layer) + " of the " + (*stack)->id +
                          " stands behind cross-attention, which is not computed yet; layer 0 can be probed",
                      "identical-word probe"};
        else
            run = run_forward(*network, result, ctx);
        if (!run) return run.error();
    } catch (const std::bad_alloc&) {
        return Error{ErrorCode::out_of_memory,
                     "there is not enough memory for maps of length " + std::to_string(options.length) +
                         " with " + std::to_string((*stack)->heads) +
                         " heads; take a shorter length or leave the spread over words out",
                     "identical-word probe"};
    }
    const auto logits = std::as_const(result.attention_logits).values();
    if (!std::all_of(logits.begin(), logits.end(), [](float v) { return std::isfinite(v); }))
        return Error{ErrorCode::numeric_failure,
                     "the logits of layer " + std::to_string(options.layer) + " of " +
                         in_quotes(result.model_name) + " are too large for float32",
                     "identical-word probe"};
    mark_absent(**stack, result.attention_logits);
    mark_absent(**stack, result.groups.attention_logits);
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    return result;
}

} // namespace posiscope::core
