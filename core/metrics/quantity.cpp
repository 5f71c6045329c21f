// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/metrics/quantity.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/metrics/query_constants.h"

namespace posiscope::core {
namespace {

/// First kept position and how many are kept.
struct Kept {
    std::size_t first = 0;
    std::size_t count = 0;
};

Kept kept_positions(const ProbeResult& probe, PositionChoice positions)
{
    const auto length = static_cast<std::size_t>(probe.length);
    if (positions == PositionChoice::all || length <= 2) return {0, length};
    if (probe.options.variant == InputVariant::plain) return {1, length - 1};
    const auto is_special = [&](std::size_t position) {
        return std::find(probe.special_positions.begin(), probe.special_positions.end(),
                         static_cast<std::int64_t>(position)) != probe.special_positions.end();
    };
    std::size_t first = 0;
    while (first < length && is_special(first)) ++first;
    std::size_t end = length;
    while (end > first && is_special(end - 1)) --end;
    return {first, end - first};
}

/// Mean over `heads` slices of `tensor` from `first_slice` on (one slice for one head), with the future of a causal
/// stack marked and special positions taken out.
PositionMap map_of_slices(const HostTensor& tensor, std::size_t first_slice, std::size_t slices, bool causal,
                          Kept kept)
{
    PositionMap map;
    map.length = kept.count;
    map.first_position = kept.first;
    map.values.assign(kept.count * kept.count, 0.0);
    for (std::size_t s = 0; s < slices; ++s) {
        const MatrixView matrix = tensor.matrix(first_slice + s);
        for (std::size_t i = 0; i < kept.count; ++i) {
            const float* row = matrix.values + (i + kept.first) * matrix.stride + kept.first;
            double* sums = map.values.data() + i * kept.count;
            for (std::size_t j = 0; j < kept.count; ++j) sums[j] += static_cast<double>(row[j]);
        }
    }
    for (std::size_t i = 0; i < kept.count; ++i) {
        double* row = map.values.data() + i * kept.count;
        if (slices > 1)
            for (std::size_t j = 0; j < kept.count; ++j) row[j] /= static_cast<double>(slices);
        if (causal) std::fill(row + i + 1, row + kept.count, std::numeric_limits<double>::quiet_NaN());
    }
    return map;
}

PositionMap quantity_map_of(const ProbeResult& probe, const HostTensor& logits,
                            const HostTensor& probabilities, std::size_t group, Quantity quantity, int head,
                            PositionChoice positions)
{
    const HostTensor& tensor = quantity == Quantity::probabilities ? probabilities : logits;
    if (tensor.empty()) return {};
    const auto heads = static_cast<std::size_t>(probe.heads);
    const bool mean = head == mean_of_heads;
    PositionMap map = map_of_slices(tensor, group * heads + (mean ? 0 : static_cast<std::size_t>(head)),
                                    mean ? heads : 1, probe.causal, kept_positions(probe, positions));
    return quantity == Quantity::constants_removed ? remove_query_constants(std::move(map)) : map;
}

} // namespace

std::string_view quantity_id(Quantity quantity)
{
    switch (quantity) {
    case Quantity::logits: return "logits";
    case Quantity::constants_removed: return "constants_removed";
    case Quantity::probabilities: return "probabilities";
    }
    return "";
}

PositionMap quantity_map(const ProbeResult& probe, Quantity quantity, int head, PositionChoice positions)
{
    return quantity_map_of(probe, probe.attention_logits, probe.attention_probabilities, 0, quantity, head,
                           positions);
}

PositionMap group_quantity_map(const ProbeResult& probe, std::size_t group, Quantity quantity, int head,
                               PositionChoice positions)
{
    return quantity_map_of(probe, probe.groups.attention_logits, probe.groups.attention_probabilities, group,
                           quantity, head, positions);
}

PositionMap spread_map(const ProbeResult& probe, Quantity quantity, int head, PositionChoice positions)
{
    const std::size_t groups = probe.groups.word_counts.size();
    if (groups < 2) return {};
    // Welford's running mean and sum of squares: no need to hold all groups' maps at once.
    PositionMap mean;
    PositionMap spread;
    for (std::size_t g = 0; g < groups; ++g) {
        const PositionMap map = group_quantity_map(probe, g, quantity, head, positions);
        if (map.values.empty()) return {};
        if (g == 0) {
            mean = map;
            spread = map;
            for (double& value : spread.values) value = std::isfinite(value) ? 0.0 : value;
            continue;
        }
        const double count = static_cast<double>(g + 1);
        for (std::size_t n = 0; n < map.values.size(); ++n) {
            const double difference = map.values[n] - mean.values[n];
            mean.values[n] += difference / count;
            spread.values[n] += difference * (map.values[n] - mean.values[n]);
        }
    }
    for (double& value : spread.values) value = std::sqrt(value / static_cast<double>(groups - 1));
    return spread;
}

} // namespace posiscope::core
