// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/metrics/relative_bias.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/text.h"
#include "core/checkpoint/reading_scope.h"
#include "core/probe/identical_word_probe.h"
#include "core/probe/network_reader.h"

namespace posiscope::core {
namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

std::string scheme_text(const Stack& stack)
{
    std::string text = stack.scheme_label;
    if (stack.bucketed_bias)
        text += ", " + std::to_string(stack.bucketed_bias->buckets) + " buckets up to distance " +
                std::to_string(stack.bucketed_bias->max_distance) +
                (stack.bucketed_bias->bidirectional ? "" : ", looking back only");
    return text;
}

PositionMap empty_map(std::int64_t length)
{
    PositionMap map;
    map.length = static_cast<std::size_t>(length);
    map.values.assign(map.length * map.length, 0.0);
    return map;
}

/// map += scale * (constant_h . vectors_h[j - i]); vectors [heads or 1, 2L - 1, head_dim]
void add_offset_term(PositionMap& map, const HostTensor& constant, const HostTensor& vectors,
                     std::int64_t head, std::int64_t head_dim, double scale)
{
    if (constant.empty() || vectors.empty()) return;
    const auto length = static_cast<std::int64_t>(map.length);
    const float* rows = vectors.data() + (vectors.dim(0) == 1 ? 0 : head) * (2 * length - 1) * head_dim;
    std::vector<double> by_offset;
    for (std::int64_t o = 0; o < 2 * length - 1; ++o) {
        double sum = 0.0;
        for (std::int64_t f = 0; f < head_dim; ++f)
            sum += static_cast<double>(constant.data()[head * head_dim + f]) *
                   static_cast<double>(rows[o * head_dim + f]);
        by_offset.push_back(scale * sum);
    }
    for (std::size_t i = 0; i < map.length; ++i)
        for (std::size_t j = 0; j < map.length; ++j) map(i, j) += by_offset[j + map.length - 1 - i];
}

/// The mean cosine of the angles between positions: what equal queries and keys give.
PositionMap rotation_map(const HostTensor& cosines, const HostTensor& sines, std::int64_t length)
{
    PositionMap map = empty_map(length);
    const std::int64_t pairs = cosines.dim(1);
    for (std::int64_t i = 0; i < length; ++i)
        for (std::int64_t j = 0; j < length; ++j) {
            double sum = 0.0;
            for (std::int64_t k = 0; k < pairs; ++k)
                sum += static_cast<double>(cosines.data()[i * pairs + k]) *
                           static_cast<double>(cosines.data()[j * pairs + k]) +
                       static_cast<double>(sines.data()[i * pairs + k]) *
                           static_cast<double>(sines.data()[j * pairs + k]);
            map(static_cast<std::size_t>(i), static_cast<std::size_t>(j)) = sum / static_cast<double>(pairs);
        }
    return map;
}

/// Takes the diagonal's value from each row: ALiBi is stored up to a constant per query, which the softmax removes.
void start_rows_at_zero(PositionMap& map)
{
    for (std::size_t i = 0; i < map.length; ++i) {
        const double self = map(i, i);
        for (std::size_t j = 0; j < map.length; ++j) map(i, j) -= self;
    }
}

void leave_out_first(PositionMap& map)
{
    for (std::size_t n = 0; n < map.length; ++n) map(0, n) = map(n, 0) = nothing;
}

} // namespace

std::string_view relative_bias_kind_name(RelativeBiasKind kind)
{
    switch (kind) {
    case RelativeBiasKind::bias: return "bias";
    case RelativeBiasKind::constant_term: return "constant_term";
    case RelativeBiasKind::rotation: return "rotation";
    }
    return "bias";
}

std::vector<OffsetBucket> offset_buckets(const BucketedBias& scheme, std::int64_t length)
{
    std::vector<OffsetBucket> out;
    for (std::int64_t offset = -(length - 1); offset < length; ++offset) {
        const std::int64_t bucket = relative_position_bucket(offset, scheme);
        if (!out.empty() && out.back().bucket == bucket)
            out.back().last = offset;
        else
            out.push_back({bucket, offset, offset});
    }
    return out;
}

std::string lack_of_relative_bias(const Stack& stack)
{
    if (stack.bucketed_bias || stack.alibi || stack.grid_bias || stack.untied || stack.relative_vectors ||
        stack.rotary)
        return {};
    return "the " + stack.id + " has no relative scheme: its positions are " + stack.scheme_label +
           "; the position map and the position similarity show them";
}

Result<RelativeBias> read_relative_bias(const OpenModel& model, const Stack& stack, int layer,
                                        std::int64_t length, const RunContext& ctx)
{
    const ReadingScope scope(ctx);
    if (ctx.cancelled()) return cancelled_error("reading the relative bias");
    const std::string name = in_quotes(model.checkpoint->display_name());
    if (const std::string lack = lack_of_relative_bias(stack); !lack.empty())
        return Error{ErrorCode::unsupported_model, name + ": " + lack, "relative bias"};
    if (layer < 0 || layer >= std::max<std::int64_t>(stack.layers, 1))
        return Error{ErrorCode::invalid_argument,
                     "the " + stack.id + " of " + name + " has no layer " + std::to_string(layer) +
                         "; it has " + std::to_string(stack.layers),
                     "relative bias"};
    const InputVariant variant = stack.needs_prefix ? InputVariant::special : InputVariant::plain;
    if (!has_free_length(stack)) length = default_length(stack, variant, length);
    if (stack.untied && stack.length_limit) length = std::min(length, *stack.length_limit);
    if (length < 2)
        return Error{ErrorCode::invalid_argument,
                     "length " + std::to_string(length) + " has no offsets; at least 2 positions are needed",
                     "relative bias"};
    // Every head's map is in memory in double beside the bias itself; more could end the program.
    constexpr double most_entries = 256.0 * 1024 * 1024;
    const double entries = static_cast<double>(length) * static_cast<double>(length) *
                           static_cast<double>(std::max<std::int64_t>(stack.heads_of(layer), 1));
    if (entries > most_entries)
        return Error{ErrorCode::invalid_argument,
                     "length " + std::to_string(length) + " was asked for; with " +
                         std::to_string(stack.heads_of(layer)) + " heads at most " +
                         std::to_string(static_cast<std::int64_t>(
                             std::sqrt(most_entries / static_cast<double>(stack.heads_of(layer))))) +
                         " can be shown",
                     "relative bias"};
    const auto read = read_layer_positions(model, stack, layer, length);
    if (!read) return read.error();
    const AttentionPositions& positions = read->positions;

    RelativeBias out;
    out.scheme = scheme_text(stack);
    out.length = length;
    out.layer = layer;
    out.causal = stack.causal;
    out.notes = model.architecture.notes;
    const bool has_vectors = !positions.key_offsets.empty() || !positions.query_offsets.empty();
    if (has_vectors)
        out.kind = RelativeBiasKind::constant_term;
    else if (positions.bias.empty() && !positions.rotary_cosines.empty())
        out.kind = RelativeBiasKind::rotation;
    else if (positions.bias.empty())
        return Error{ErrorCode::not_found,
                     core::in_quotes(model.checkpoint->weights_name()) +
                         " does not hold the relative bias of layer " + std::to_string(layer),
                     "relative bias"};
    out.varies_within_offset = stack.grid_bias.has_value() || stack.untied.has_value();
    if (stack.grid_bias) {
        out.grid_rows = stack.grid_bias->rows;
        out.grid_columns = stack.grid_bias->columns;
    }
    if (stack.bucketed_bias) out.buckets = offset_buckets(*stack.bucketed_bias, length);

    const std::int64_t heads = out.kind == RelativeBiasKind::rotation ? 1 : read->heads;
    out.mean = empty_map(length);
    for (std::int64_t h = 0; h < heads; ++h) {
        PositionMap map = out.kind == RelativeBiasKind::rotation
                              ? rotation_map(positions.rotary_cosines, positions.rotary_sines, length)
                              : empty_map(length);
        if (!positions.bias.empty()) {
            const MatrixView bias =
                positions.bias.matrix(static_cast<std::size_t>(positions.bias.dim(0) == 1 ? 0 : h));
            for (std::size_t i = 0; i < map.length; ++i)
                for (std::size_t j = 0; j < map.length; ++j) map(i, j) += static_cast<double>(bias(i, j));
        }
        add_offset_term(map, read->query_constant, positions.key_offsets, h, read->head_dim,
                        stack.logit_scale);
        add_offset_term(map, read->key_constant, positions.query_offsets, h, read->head_dim,
                        stack.logit_scale);
        if (stack.alibi) start_rows_at_zero(map);
        // The first row and column of [CLS] and class tokens have numbers of their own.
        if ((stack.untied && stack.untied->resets_first) || (stack.grid_bias && stack.grid_bias->has_prefix))
            leave_out_first(map);
        for (std::size_t i = 0; stack.causal && i < map.length; ++i)
            for (std::size_t j = i + 1; j < map.length; ++j) map(i, j) = nothing;
        for (std::size_t n = 0; n < map.values.size(); ++n)
            out.mean.values[n] += map.values[n] / static_cast<double>(heads);
        out.head_profiles.push_back(offset_profile(map));
        out.head_white_bands.push_back(white_band(map));
        out.heads.push_back(std::move(map));
    }
    out.profile = offset_profile(out.mean);
    out.white_band = white_band(out.mean);
    return out;
}

} // namespace posiscope::core
