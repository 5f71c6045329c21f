// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/projection/position_vectors.h"

#include <algorithm>
#include <utility>

#include "core/base/text.h"
#include "core/checkpoint/reading_scope.h"
#include "core/position/relative_position_bias.h"
#include "core/position/sinusoidal.h"
#include "core/probe/network_reader.h"

namespace posiscope::core {
namespace {

HostTensor as_matrix(const HostTensor& tensor)
{
    const std::int64_t columns = tensor.shape().back();
    const auto values = tensor.values();
    return HostTensor({static_cast<std::int64_t>(values.size()) / columns, columns},
                      {values.begin(), values.end()});
}

void number_rows(PositionVectors& out, std::int64_t first)
{
    for (std::int64_t row = 0; row < out.vectors.dim(0); ++row) {
        out.positions.push_back(row + first);
        out.roles.push_back(RowRole::used);
    }
}

Result<PositionVectors> from_table(const OpenModel& model, const Stack& stack)
{
    auto table = model.checkpoint->read(stack.position_table);
    if (!table) return table.error();
    PositionVectors out;
    out.kind = PositionVectorKind::table;
    out.vectors = as_matrix(*table);
    const auto prefix = static_cast<std::int64_t>(stack.prefix_rows.size());
    for (std::int64_t row = 0; row < out.vectors.dim(0); ++row) {
        const std::int64_t position = row - stack.first_position_row;
        out.positions.push_back(position);
        out.roles.push_back(position < 0                                            ? RowRole::unused
                            : position < prefix                                     ? RowRole::special
                            : stack.length_limit && position >= *stack.length_limit ? RowRole::unused
                                                                                    : RowRole::used);
    }
    if (stack.untied) { // row 0 is [CLS] to others, row i + 1 position i
        for (std::int64_t& position : out.positions) --position;
        out.roles.front() = RowRole::special;
    }
    out.source = "table " + in_quotes(stack.position_table) + ", " + std::to_string(out.vectors.dim(0)) +
                 " x " + std::to_string(out.vectors.dim(1));
    out.grid_rows = stack.grid_rows;
    out.grid_columns = stack.grid_columns;
    return out;
}

Result<PositionVectors> from_offsets(const OpenModel& model, const Stack& stack)
{
    const auto layer = read_layer_positions(model, stack, 0, shown_offsets + 1);
    if (!layer) return layer.error();
    const HostTensor& keys =
        layer->positions.key_offsets.empty() ? layer->positions.query_offsets : layer->positions.key_offsets;
    const HostTensor& heads = keys.empty() ? layer->positions.value_offsets : keys;
    if (heads.empty())
        return Error{ErrorCode::not_found, "the file holds no vectors of offsets of layer 0",
                     "position vectors"};
    // The heads' vectors side by side.
    const std::int64_t count = heads.dim(0), offsets = heads.dim(1), features = heads.dim(2);
    PositionVectors out;
    out.kind = PositionVectorKind::offset_vectors;
    out.vectors = HostTensor({offsets, count * features});
    for (std::int64_t h = 0; h < count; ++h)
        for (std::int64_t o = 0; o < offsets; ++o)
            std::copy_n(heads.data() + (h * offsets + o) * features, features,
                        out.vectors.data() + o * count * features + h * features);
    number_rows(out, -shown_offsets);
    out.source =
        "vectors of offsets of layer 0" +
        (count > 1 ? ", " + std::to_string(count) + " heads of " + std::to_string(features) : std::string{});
    return out;
}

} // namespace

std::string_view position_vector_kind_name(PositionVectorKind kind)
{
    switch (kind) {
    case PositionVectorKind::table: return "table";
    case PositionVectorKind::sinusoids: return "sinusoids";
    case PositionVectorKind::offset_vectors: return "offset_vectors";
    case PositionVectorKind::rotary_phases: return "rotary_phases";
    }
    return "table";
}

std::string_view row_role_name(RowRole role)
{
    switch (role) {
    case RowRole::used: return "used";
    case RowRole::special: return "special";
    case RowRole::unused: return "unused";
    }
    return "used";
}

HostTensor PositionVectors::used_vectors() const
{
    const std::int64_t features = vectors.dim(1);
    HostTensor out({std::count(roles.begin(), roles.end(), RowRole::used), features});
    std::int64_t to = 0;
    for (std::size_t row = 0; row < roles.size(); ++row)
        if (roles[row] == RowRole::used)
            std::copy_n(vectors.data() + static_cast<std::int64_t>(row) * features, features,
                        out.data() + to++ * features);
    return out;
}

std::vector<std::int64_t> PositionVectors::used_positions() const
{
    std::vector<std::int64_t> out;
    for (std::size_t row = 0; row < roles.size(); ++row)
        if (roles[row] == RowRole::used) out.push_back(positions[row]);
    return out;
}

Result<PcaMap> position_pca(const PositionVectors& vectors, const RunContext& ctx)
{
    const HostTensor used = vectors.used_vectors();
    auto map = pca(used.matrix(), ctx);
    if (!map || used.dim(0) == vectors.vectors.dim(0)) return map;
    const MatrixView all = vectors.vectors.matrix();
    const PointMap2D of_used = std::exchange(map->points, {});
    std::size_t next = 0;
    for (std::size_t row = 0; row < vectors.count(); ++row) {
        double place[2] = {0.0, 0.0};
        if (vectors.roles[row] == RowRole::used) {
            place[0] = of_used.x[next];
            place[1] = of_used.y[next++];
        } else {
            for (std::size_t axis = 0; axis < 2; ++axis)
                for (std::size_t f = 0; f < map->directions[axis].size(); ++f)
                    place[axis] +=
                        (static_cast<double>(all(row, f)) - map->mean[f]) * map->directions[axis][f];
        }
        map->points.x.push_back(place[0]);
        map->points.y.push_back(place[1]);
    }
    return map;
}

std::string lack_of_position_vectors(const Stack& stack)
{
    if (stack.absolute != AbsolutePositions::none || !stack.position_table.empty() ||
        stack.relative_vectors || stack.rotary)
        return {};
    const bool has_bias = stack.bucketed_bias || stack.alibi || stack.grid_bias;
    return "the " + stack.id + " has no position vectors: its scheme is " + stack.scheme_label +
           (has_bias ? ", numbers that are added to the logits; the relative bias shows them by offset"
                     : std::string{});
}

Result<PositionVectors> read_position_vectors(const OpenModel& model, const Stack& stack, std::int64_t length,
                                              const RunContext& ctx)
{
    const ReadingScope scope(ctx);
    if (ctx.cancelled()) return cancelled_error("reading position vectors");
    if (length < 1) length = computed_positions;
    if (!stack.position_table.empty()) return from_table(model, stack);
    PositionVectors out;
    if (stack.absolute == AbsolutePositions::sinusoidal) {
        out.kind = PositionVectorKind::sinusoids;
        if (stack.length_limit) length = std::min(length, *stack.length_limit);
        out.vectors =
            sinusoidal_table(stack.sinusoidal, stack.first_position_row, length, stack.input_size());
        out.source =
            "sinusoids, computed, " + std::to_string(length) + " x " + std::to_string(stack.input_size());
        number_rows(out, 0);
        return out;
    }
    if (stack.relative_vectors) return from_offsets(model, stack);
    if (stack.rotary) {
        HostTensor cosines, sines;
        rotary_tables(*stack.rotary, length, cosines, sines);
        const std::int64_t pairs = cosines.dim(1);
        out.kind = PositionVectorKind::rotary_phases;
        out.vectors = HostTensor({length, 2 * pairs});
        for (std::int64_t p = 0; p < length; ++p) {
            std::copy_n(cosines.data() + p * pairs, pairs, out.vectors.data() + 2 * p * pairs);
            std::copy_n(sines.data() + p * pairs, pairs, out.vectors.data() + (2 * p + 1) * pairs);
        }
        out.source = "phases of rotary positions (cosines and sines), computed, " + std::to_string(length) +
                     " x " + std::to_string(2 * pairs);
        number_rows(out, 0);
        return out;
    }
    return Error{ErrorCode::unsupported_model,
                 in_quotes(model.checkpoint->display_name()) + ": " + lack_of_position_vectors(stack),
                 "position vectors"};
}

} // namespace posiscope::core
