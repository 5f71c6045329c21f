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
    const AttentionPositions& positions = *layer.positions;
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
    layer.bias = first.positions->bias;

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

/// What the layers of one probe share: its results, one for each wanted layer, ascending.
using LayerResults = std::vector<ProbeResult>;

/// Schemes that act inside the attention only: one row per word through the layers before, then every offset.
Result<void> run_one_row(Network network, LayerResults& results, const RunContext& ctx)
{
    HostTensor encoder_rows;
    if (network.encoder != nullptr) {
        const Network& encoder = *network.encoder;
        encoder_rows = enter_first_layer(encoder, encoder.word_rows);
        for (const NetworkLayer& layer : encoder.layers) {
            if (ctx.cancelled()) return cancelled_error("the probe");
            enter_layer(layer, encoder_rows);
            if (auto passed = pass_layer(layer, {}, encoder_rows); !passed) return passed.error();
        }
        apply_norm(encoder.final_norm, encoder_rows);
    }
    HostTensor special = special_rows(network);
    HostTensor words = enter_first_layer(network, std::move(network.word_rows));
    if (!special.empty()) special = enter_first_layer(network, std::move(special));
    std::size_t next = 0;
    for (std::size_t number = 0; number < network.layers.size() && next < results.size(); ++number) {
        if (ctx.cancelled()) return cancelled_error("the probe");
        ctx.report({"layers", number, network.layers.size()});
        const NetworkLayer& layer = network.layers[number];
        enter_layer(layer, words);
        if (layer.heads > 0) {
            network.heads = layer.heads;
            network.head_dim = layer.head_dim;
            network.logit_scale = 1.0 / std::sqrt(static_cast<double>(layer.head_dim));
        }
        if (results[next].options.layer == static_cast<int>(number)) {
            ProbeResult& result = results[next++];
            result.heads = network.heads;
            const MapOptions options = map_options(result);
            auto maps = offset_attention(network, layer, words, special, options, ctx);
            if (!maps) return maps.error();
            take_maps(*std::move(maps), options, result);
            const bool closed = number == 0 && layer.query_norm.kind == NormKind::none;
            result.way = closed ? ProbeWay::closed_form : ProbeWay::one_row;
        }
        if (number + 1 == network.layers.size()) break;
        if (auto passed = pass_layer(layer, encoder_rows, words); !passed) return passed.error();
    }
    return {};
}

Result<void> run_forward(const Network& network, LayerResults& results, const RunContext& ctx)
{
    const auto engine = load_engine();
    if (!engine) return engine.error();
    const ProbeOptions& asked = results.front().options;
    const bool cuda = asked.device == DeviceChoice::cuda ||
                      (asked.device == DeviceChoice::automatic && (*engine)->has_cuda());
    if (cuda && !(*engine)->has_cuda())
        return refused("the device cuda was asked for, but " + (*engine)->version() +
                       " sees no CUDA device here; choose cpu");
    ForwardOptions options;
    options.device = cuda ? "cuda" : "cpu";
    options.probabilities = asked.probabilities;
    options.threads = thread_count();
    for (const ProbeResult& result : results)
        options.layers.push_back(static_cast<std::size_t>(result.options.layer));
    const std::size_t words = results.front().word_ids.size();
    // Without the spread one sum does for all words.
    const auto sizes = asked.group_spread ? group_sizes(words) : std::vector<std::size_t>{words};
    options.groups = sizes.size();
    for (std::size_t group = 0; group < sizes.size(); ++group)
        options.group_of_word.insert(options.group_of_word.end(), sizes[group], group);
    auto forward = (*engine)->attention_maps(network, options, ctx);
    if (!forward) return forward.error();
    for (std::size_t n = 0; n < results.size(); ++n) {
        ForwardMaps& maps = forward->layers[n];
        ProbeResult& result = results[n];
        result.attention_logits = std::move(maps.attention_logits);
        result.attention_probabilities = std::move(maps.attention_probabilities);
        if (asked.group_spread) {
            result.groups.word_counts = sizes;
            result.groups.attention_logits = std::move(maps.group_attention_logits);
            result.groups.attention_probabilities = std::move(maps.group_attention_probabilities);
        }
        result.way = ProbeWay::forward;
        result.device = forward->device;
        result.kernels = (*engine)->version() + ", " + (*engine)->kernels();
        for (const std::string& warning : (*engine)->warnings()) result.warnings.push_back(warning);
        result.warnings.insert(result.warnings.end(), forward->warnings.begin(), forward->warnings.end());
    }
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

/// Tokens of an image, or of one window of it; nothing where the length is free.
std::optional<std::int64_t> fixed_length_of(const Stack& stack, InputVariant variant)
{
    if (stack.grid_rows == 0) return std::nullopt;
    const std::int64_t prefix =
        variant == InputVariant::special ? static_cast<std::int64_t>(stack.prefix_rows.size()) : 0;
    return stack.grid_rows * stack.grid_columns + prefix;
}

Result<const Stack*> check_options(const OpenModel& model, const ProbeOptions& options,
                                   const std::vector<int>& layers)
{
    const std::string name = in_quotes(model.checkpoint->display_name());
    const Stack* stack = model.architecture.find_stack(options.stack);
    if (stack == nullptr) {
        std::vector<std::string> known;
        for (const Stack& one : model.architecture.stacks) known.push_back(in_quotes(one.id));
        return refused(name + " has no stack " + in_quotes(options.stack, 40) + "; it has " +
                       join_for_message(known));
    }
    for (const int layer : layers) {
        if (layer < 0 || layer >= stack->layers)
            return refused("layer " + std::to_string(layer) + " was asked for; " + name +
                           (stack->layers == 0 ? " has no attention layers"
                                               : " has layers 0 to " + std::to_string(stack->layers - 1)));
        if (layer >= stack->layers_present)
            return Error{ErrorCode::not_found,
                         "layer " + std::to_string(layer) + " cannot be probed, this file holds " +
                             std::to_string(stack->layers_present) + " of " + std::to_string(stack->layers) +
                             " layers: " + stack->missing_tensor,
                         "identical-word probe"};
        if (options.terms && layer > 0)
            return refused("the terms of the logits exist for the first layer's closed form only");
    }
    if (options.length < 1)
        return refused("length " + std::to_string(options.length) + " was asked for; at least 1 is needed");
    if (const auto fixed = fixed_length_of(*stack, options.variant); fixed && *fixed != options.length)
        return refused(
            "length " + std::to_string(options.length) + " was asked for; an image of " + name + " has " +
            std::to_string(stack->grid_rows) + " x " + std::to_string(stack->grid_columns) + " patches" +
            (options.variant == InputVariant::special
                 ? ", with " + counted(stack->prefix_rows.size(), "token", "tokens") + " before them"
                 : std::string{}) +
            ": the length is " + std::to_string(*fixed));
    if (stack->grid_rows > 0 && options.variant == InputVariant::special && stack->prefix_rows.empty())
        return refused(name + " has no tokens before its patches; only the plain input can be probed");
    if (stack->needs_prefix && options.variant == InputVariant::plain)
        return refused("the biases of " + name +
                       " count the class token; only the special input can be probed");
    if (stack->length_limit && options.length > *stack->length_limit)
        return refused("length " + std::to_string(options.length) + " was asked for; the position table of " +
                       name + " has rows for " + std::to_string(*stack->length_limit) + " positions");
    constexpr std::int64_t longest = 16384; // L x L maps of every head must fit the memory
    if (options.length > longest)
        return refused("length " + std::to_string(options.length) + " was asked for; at most " +
                       std::to_string(longest) + " can be shown");
    for (const int layer : layers) {
        const LayerNames& names = stack->layer_names[static_cast<std::size_t>(layer)];
        const std::int64_t windows = names.window_shift > 0 ? names.grid_rows * names.grid_columns /
                                                                  (stack->grid_rows * stack->grid_columns)
                                                            : std::numeric_limits<std::int64_t>::max();
        if (options.window < 0 || options.window >= windows)
            return refused("window " + std::to_string(options.window) + " was asked for; layer " +
                           std::to_string(layer) + " of " + name + " has windows 0 to " +
                           std::to_string(windows - 1));
    }
    if (options.terms && (options.force_forward || options.device == DeviceChoice::cuda))
        return refused("the terms of the logits exist for the first layer's closed form only");
    return stack;
}

/// The words, or how many contents stand in their place, as the results tell them.
Result<ProbeInput> choose_input(const OpenModel& model, const Stack& stack, const ProbeOptions& options,
                                ProbeResult& result)
{
    ProbeInput input;
    if (stack.content == InputContent::words) {
        auto words = choose_words(model, stack.id, options.words, options.seed, result.warnings);
        if (!words) return words.error();
        input.words = *std::move(words);
        input.count = input.words.size();
        for (const Vocabulary::Entry* word : input.words) {
            result.word_ids.push_back(word->id);
            result.words.push_back(model.vocabulary_of(stack.id).shown(word->id));
        }
        return input;
    }
    const bool given = options.content != nullptr && !options.content->empty();
    const bool listed = options.words.kind == WordSelection::Kind::listed;
    const std::size_t words =
        listed ? options.words.ids.size() + options.words.words.size() : options.words.count;
    input.count = given ? static_cast<std::size_t>(options.content->dim(0)) : words;
    if (input.count == 0) return refused("0 contents were asked for; at least one is needed");
    const std::string kind = stack.content == InputContent::patches ? "patch " : "vector ";
    for (std::size_t n = 0; n < input.count; ++n) {
        result.word_ids.push_back(static_cast<std::int64_t>(n));
        result.words.push_back(kind + std::to_string(n));
    }
    return input;
}

Result<void> run_layers(const OpenModel& model, const Stack& stack, const ProbeInput& input,
                        LayerResults& results, const RunContext& ctx)
{
    const ProbeOptions& options = results.front().options;
    std::vector<int> layers;
    for (const ProbeResult& result : results) layers.push_back(result.options.layer);
    std::vector<std::int64_t> special_positions;
    auto network = read_network(model, stack, options, layers, input, special_positions, ctx);
    if (!network) return network.error();
    for (ProbeResult& result : results) {
        result.special_positions = special_positions;
        result.heads = network->heads;
        result.device = "cpu";
        result.kernels = kernels().name;
    }
    if (goes_by_one_row(model, stack, options, layers.back()))
        return run_one_row(*std::move(network), results, ctx);
    const bool own_way = !options.force_forward && options.device != DeviceChoice::cuda;
    if (own_way && results.front().options.layer == 0) {
        const bool offsets = !network->has_absolute_positions;
        if (offsets || has_closed_form(*network)) {
            // The first layer alone by the closed form; what is left goes through the real pass.
            LayerResults first(std::make_move_iterator(results.begin()),
                               std::make_move_iterator(results.begin() + 1));
            LayerResults rest(std::make_move_iterator(results.begin() + 1),
                              std::make_move_iterator(results.end()));
            // The closed form uses its arrays up.
            auto one = rest.empty() ? std::move(network)
                                    : read_network(model, stack, options, {0}, input, special_positions, ctx);
            if (!one) return one.error();
            auto run = offsets ? run_one_row(*std::move(one), first, ctx)
                               : run_closed_form(*std::move(one), first.front(), ctx);
            if (run && !rest.empty()) run = run_forward(*network, rest, ctx);
            results = std::move(first);
            results.insert(results.end(), std::make_move_iterator(rest.begin()),
                           std::make_move_iterator(rest.end()));
            return run;
        }
    }
    if (merges_rows(stack, layers.back()))
        return Error{ErrorCode::unsupported_model,
                     "positions reach the hidden states of a network whose stages merge patches; layer 0 can "
                     "be probed",
                     "identical-word probe"};
    return run_forward(*network, results, ctx);
}

} // namespace

std::int64_t default_length(const Stack& stack, InputVariant variant, std::int64_t wanted)
{
    if (const auto fixed = fixed_length_of(stack, variant)) return *fixed;
    return stack.length_limit ? std::min(wanted, *stack.length_limit) : wanted;
}

bool has_free_length(const Stack& stack)
{
    return stack.grid_rows == 0;
}

Result<std::vector<ProbeResult>> run_identical_word_probe(const OpenModel& model, const ProbeOptions& options,
                                                          std::vector<int> layers, const RunContext& ctx)
{
    const auto started = std::chrono::steady_clock::now();
    std::sort(layers.begin(), layers.end());
    layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
    if (layers.empty()) return refused("no layer was asked for; at least one is needed");
    const auto stack = check_options(model, options, layers);
    if (!stack) return stack.error();

    ProbeResult common;
    common.options = options;
    common.options.stack = (*stack)->id;
    common.model_name = model.checkpoint->display_name();
    common.family = model.architecture.family_id;
    common.scheme = (*stack)->scheme_id;
    common.length = options.length;
    common.causal = (*stack)->causal;
    common.grid_rows = (*stack)->grid_rows;
    common.grid_columns = (*stack)->grid_columns;
    LayerResults results;
    try {
        const auto input = choose_input(model, **stack, options, common);
        if (!input) return input.error();
        for (const int layer : layers) {
            results.push_back(common);
            results.back().options.layer = layer;
        }
        if (auto run = run_layers(model, **stack, *input, results, ctx); !run) return run.error();
    } catch (const std::bad_alloc&) {
        return Error{ErrorCode::out_of_memory,
                     "there is not enough memory for maps of length " + std::to_string(options.length) +
                         " with " + std::to_string((*stack)->heads) +
                         " heads; take a shorter length or leave the spread over words out",
                     "identical-word probe"};
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    for (ProbeResult& result : results) {
        const auto logits = std::as_const(result.attention_logits).values();
        if (!std::all_of(logits.begin(), logits.end(), [](float v) { return std::isfinite(v); }))
            return Error{ErrorCode::numeric_failure,
                         "the logits of layer " + std::to_string(result.options.layer) + " of " +
                             in_quotes(result.model_name) + " are too large for float32",
                         "identical-word probe"};
        mark_absent(**stack, result.attention_logits);
        mark_absent(**stack, result.groups.attention_logits);
        result.seconds = seconds;
    }
    return results;
}

Result<ProbeResult> run_identical_word_probe(const OpenModel& model, const ProbeOptions& options,
                                             const RunContext& ctx)
{
    auto results = run_identical_word_probe(model, options, std::vector<int>{options.layer}, ctx);
    if (!results) return results.error();
    return std::move(results->front());
}

} // namespace posiscope::core
