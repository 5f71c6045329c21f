// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/metrics/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include <Eigen/Core>

#include "core/kernels/kernel_set.h"
#include "core/kernels/thread_pool.h"
#include "core/metrics/first_position_extra.h"
#include "core/metrics/map_summary.h"
#include "core/metrics/metric_list.h"
#include "core/metrics/query_constants.h"
#include "core/metrics/resamples.h"

namespace posiscope::core {
namespace {

/// The maps of all groups, [groups, length * length]: sums over heads in double, exact for float32 entries.
struct GroupMaps {
    /// Entries of one map that are used together. Maps begin one tile apart within the first-level cache, which would
    /// otherwise have room for few of them where length * length is a power of two.
    static constexpr std::size_t tile = 64;
    static constexpr std::size_t cache_way = 512; // in doubles

    std::size_t groups = 0;
    std::size_t length = 0;
    double heads = 1.0; ///< how many each entry is the sum of
    MapPattern pattern = MapPattern::full;
    std::vector<double> values;

    [[nodiscard]] std::size_t stride() const
    {
        return (length * length + cache_way - 1) / cache_way * cache_way + tile;
    }
    [[nodiscard]] const double* map(std::size_t group) const { return values.data() + group * stride(); }
};

/// One row of the table with what does not change between resamples.
struct Target {
    MetricRow* row = nullptr;
    std::size_t first = 0; ///< first kept position
    std::size_t length = 0;
    bool quick = true; ///< every group's entries are finite

    /// [groups, features], values that are linear in the map. Logits: the logarithm of the first position's extra,
    /// then (constants removed) the query constants. Probabilities: each row's mass, then each row's moment.
    std::size_t features = 0;
    std::vector<double> group_features;
    /// [groups, groups]: scalar products of the groups' antisymmetric parts.
    std::vector<double> antisymmetric_products;
    FirstPositionWeights first_position; ///< probabilities only

    std::vector<double> resampled; ///< [metrics, resamples]

    [[nodiscard]] bool of_probabilities() const { return row->quantity == Quantity::probabilities; }
};

GroupMaps sum_heads(const ProbeResult& probe, const HostTensor& tensor, int head)
{
    GroupMaps maps;
    maps.groups = probe.groups.word_counts.size();
    maps.length = static_cast<std::size_t>(probe.length);
    maps.pattern = probe.causal ? MapPattern::causal : MapPattern::full;
    const auto heads = static_cast<std::size_t>(probe.heads);
    const std::size_t first_head = head == mean_of_heads ? 0 : static_cast<std::size_t>(head);
    const std::size_t summed = head == mean_of_heads ? heads : 1;
    maps.heads = static_cast<double>(summed);
    const std::size_t entries = maps.length * maps.length;
    maps.values.assign(maps.groups * maps.stride(), 0.0);
    parallel_blocks(maps.groups, [&](std::size_t g) {
        double* sums = maps.values.data() + g * maps.stride();
        for (std::size_t h = 0; h < summed; ++h) {
            const float* values = tensor.matrix(g * heads + first_head + h).values;
            for (std::size_t n = 0; n < entries; ++n) sums[n] += static_cast<double>(values[n]);
        }
    });
    return maps;
}

/// Part of one group's or one resample's map as a PositionMap, every entry times `factor`, the future marked.
PositionMap position_map_of(const double* map, std::size_t stride, double factor, const Target& target,
                            MapPattern pattern)
{
    PositionMap out;
    out.length = target.length;
    out.first_position = target.first;
    out.values.assign(target.length * target.length, std::numeric_limits<double>::quiet_NaN());
    for (std::size_t i = 0; i < target.length; ++i) {
        const std::size_t keys = pattern == MapPattern::causal ? i + 1 : target.length;
        const double* row = map + (target.first + i) * stride + target.first;
        for (std::size_t j = 0; j < keys; ++j) out(i, j) = row[j] * factor;
    }
    return out;
}

/// Number of entries of a PositionMap that exist and are finite.
std::size_t count_finite(const PositionMap& map)
{
    return static_cast<std::size_t>(std::count_if(map.values.begin(), map.values.end(),
                                                  [](double value) { return std::isfinite(value); }));
}

void set_group_features(const GroupMaps& maps, std::size_t group, Target& target, std::uint8_t& finite)
{
    const PositionMap map =
        position_map_of(maps.map(group), maps.length, 1.0 / maps.heads, target, maps.pattern);
    const std::size_t length = target.length;
    const std::size_t entries =
        maps.pattern == MapPattern::causal ? length * (length + 1) / 2 : length * length;
    finite = count_finite(map) == entries ? 1 : 0;
    if (finite == 0) return;
    double* features = target.group_features.data() + group * target.features;
    if (target.of_probabilities()) {
        for (std::size_t i = 0; i < length; ++i) {
            const std::size_t keys = maps.pattern == MapPattern::causal ? i + 1 : length;
            for (std::size_t j = 0; j < keys; ++j) {
                features[i] += map(i, j);
                features[length + i] += map(i, j) * static_cast<double>(i > j ? i - j : j - i);
            }
        }
        return;
    }
    features[0] = first_position_log_extra(map, target.row->quantity);
    if (target.row->quantity == Quantity::constants_removed) {
        const std::vector<double> constants = query_constants(map).query;
        std::copy(constants.begin(), constants.end(), features + 1);
    }
}

/// The products are summed over bands of rows, whose partial sums are added in order: the same bits on any number of
/// threads, and no more memory than a band.
void set_antisymmetric_products(const GroupMaps& maps, Target& target)
{
    using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    constexpr std::size_t band_rows = 16;
    const std::size_t bands = (target.length + band_rows - 1) / band_rows;
    const auto groups = static_cast<Eigen::Index>(maps.groups);
    std::vector<Matrix> partial(bands);
    parallel_blocks(bands, [&](std::size_t band) {
        const std::size_t begin = band * band_rows;
        const std::size_t end = std::min(begin + band_rows, target.length);
        Matrix differences(groups, static_cast<Eigen::Index>((begin + end - 1) * (end - begin) / 2));
        for (std::size_t g = 0; g < maps.groups; ++g) {
            const double* map = maps.map(g) + target.first * (maps.length + 1);
            const double* constants = target.row->quantity == Quantity::constants_removed
                                          ? target.group_features.data() + g * target.features + 1
                                          : nullptr;
            double* out = differences.data() + g * static_cast<std::size_t>(differences.cols());
            for (std::size_t i = begin; i < end; ++i)
                for (std::size_t j = 0; j < i; ++j) {
                    double difference = (map[i * maps.length + j] - map[j * maps.length + i]) / maps.heads;
                    if (constants != nullptr) difference -= constants[i] - constants[j];
                    *out++ = difference;
                }
        }
        partial[band].noalias() = differences * differences.transpose();
    });
    Matrix sum = Matrix::Zero(groups, groups);
    for (const Matrix& products : partial) sum += products;
    target.antisymmetric_products.assign(sum.data(), sum.data() + sum.size());
}

void prepare(const ProbeResult& probe, const GroupMaps& maps, Target& target, std::size_t resamples)
{
    // The choice of positions is that of quantity_map; its size says all.
    const PositionMap map =
        quantity_map(probe, target.row->quantity, target.row->head, target.row->positions);
    target.first = map.first_position;
    target.length = map.length;
    target.resampled.assign(metric_list().size() * resamples, std::numeric_limits<double>::quiet_NaN());
    if (target.length == 0) return;
    switch (target.row->quantity) {
    case Quantity::logits: target.features = 1; break;
    case Quantity::constants_removed: target.features = 1 + target.length; break;
    case Quantity::probabilities: target.features = 2 * target.length; break;
    }
    target.group_features.assign(maps.groups * target.features, 0.0);
    std::vector<std::uint8_t> finite(maps.groups, 0);
    parallel_blocks(maps.groups, [&](std::size_t g) { set_group_features(maps, g, target, finite[g]); });
    target.quick = std::all_of(finite.begin(), finite.end(), [](std::uint8_t yes) { return yes != 0; });
    if (!target.quick) return;
    if (maps.pattern == MapPattern::full) set_antisymmetric_products(maps, target);
    if (target.of_probabilities() && target.length >= 4)
        target.first_position = first_position_weights(target.length, maps.pattern);
}

/// The mean maps of resamples begin .. begin + count - 1 into out [count, length * length].
void mix_maps(const GroupMaps& maps, const Resamples& resamples, std::size_t begin, std::size_t count,
              double* out)
{
    constexpr std::size_t tile = GroupMaps::tile;
    const std::size_t entries = maps.length * maps.length;
    struct Draw {
        std::vector<const double*> rows;
        std::vector<double> weights;
    };
    std::vector<Draw> drawn(count);
    for (std::size_t r = 0; r < count; ++r)
        for (std::size_t g = 0; g < maps.groups; ++g)
            if (const double weight = resamples.weights_of(begin + r)[g]; weight > 0.0) {
                drawn[r].rows.push_back(maps.map(g));
                drawn[r].weights.push_back(weight);
            }
    for (std::size_t from = 0; from < entries; from += tile) {
        const std::size_t size = std::min(tile, entries - from);
        for (std::size_t r = 0; r < count; ++r) {
            // Sums of whole numbers of maps: groups that are all equal give exactly their common map.
            kernels().maps->mix_rows(drawn[r].rows.data(), drawn[r].weights.data(), drawn[r].rows.size(),
                                     resamples.totals[begin + r] * maps.heads, out + r * entries + from,
                                     size);
            for (const double*& row : drawn[r].rows) row += size;
        }
    }
}

/// Scratch space of one block of resamples.
struct Workspace {
    std::vector<MapSummary> summaries; ///< one for each target
    std::vector<double> features;
    std::vector<double> logarithms; ///< of one map
    std::vector<double> offset_sums;
    std::vector<double> values; ///< one for each metric
};

/// The logarithm of the first position's extra of a map of logarithms, by fixed weights; not finite where an entry
/// is not.
double weighted_log_extra(const double* logarithms, std::size_t stride, const Target& target,
                          MapPattern pattern, std::vector<double>& offset_sums)
{
    const std::size_t rest = target.length - 1;
    const double* first = logarithms + target.first * (stride + 1);
    offset_sums.assign(2 * rest - 1, 0.0);
    double sum = 0.0;
    for (std::size_t i = 0; i + 1 < rest; ++i) sum += first[(i + 1) * stride];
    sum /= static_cast<double>(rest - 1);
    for (std::size_t i = 0; i < rest; ++i) {
        const std::size_t shift = rest - 1 - i;
        kernels().maps->add_weighted(first + (i + 1) * stride + 1, target.first_position.row[i],
                                     target.first_position.offset.data() + shift, offset_sums.data() + shift,
                                     pattern == MapPattern::causal ? i + 1 : rest);
    }
    for (const double part : offset_sums) sum += part;
    return sum;
}

double quadratic_form(std::span<const double> weights, double total, const std::vector<double>& products)
{
    double sum = 0.0;
    for (std::size_t g = 0; g < weights.size(); ++g) {
        if (!(weights[g] > 0.0)) continue;
        const double* row = products.data() + g * weights.size();
        double part = 0.0;
        for (std::size_t other = 0; other < weights.size(); ++other) part += weights[other] * row[other];
        sum += weights[g] * part;
    }
    return sum / (total * total);
}

void evaluate_slowly(const double* map, const GroupMaps& maps, const Target& target, std::span<double> values,
                     bool only_uncovered)
{
    PositionMap part = position_map_of(map, maps.length, 1.0, target, maps.pattern);
    if (target.row->quantity == Quantity::constants_removed) part = remove_query_constants(std::move(part));
    const auto metrics = metric_list();
    for (std::size_t m = 0; m < metrics.size(); ++m)
        if (!only_uncovered || !MapSummary::covers(metrics[m]))
            values[m] = metrics[m].evaluate(part, target.row->quantity);
}

void evaluate_target(const double* map, const GroupMaps& maps, const Resamples& resamples,
                     std::size_t resample, const Target& target, MapSummary& summary, Workspace& space)
{
    const std::span<const double> weights = resamples.weights_of(resample);
    const double total = resamples.totals[resample];
    space.features.assign(target.features, 0.0);
    for (std::size_t g = 0; g < maps.groups; ++g) {
        if (!(weights[g] > 0.0)) continue;
        const double* group = target.group_features.data() + g * target.features;
        for (std::size_t f = 0; f < target.features; ++f) space.features[f] += weights[g] * group[f];
    }
    for (double& feature : space.features) feature /= total;

    MapPart part{map + target.first * (maps.length + 1), maps.length, target.length, maps.pattern, nullptr};
    MapExtras extras;
    if (!target.antisymmetric_products.empty())
        extras.antisymmetric_energy = quadratic_form(weights, total, target.antisymmetric_products);
    if (target.of_probabilities()) {
        extras.row_mass = std::span(space.features).first(target.length);
        extras.row_moment = std::span(space.features).subspan(target.length);
        if (target.length >= 4) {
            extras.first_position_log_extra = weighted_log_extra(space.logarithms.data(), maps.length, target,
                                                                 maps.pattern, space.offset_sums);
            if (!std::isfinite(
                    extras.first_position_log_extra)) // a probability of 0: other entries are left out
                extras.first_position_log_extra = first_position_log_extra(
                    position_map_of(map, maps.length, 1.0, target, maps.pattern), target.row->quantity);
        }
    } else {
        extras.first_position_log_extra = space.features[0];
        if (target.row->quantity == Quantity::constants_removed)
            part.query_constants = space.features.data() + 1;
    }
    summary.evaluate(part, target.row->quantity, extras, space.values);
}

/// Everything for resamples begin .. begin + count - 1.
void evaluate_block(const GroupMaps& maps, const Resamples& resamples, std::size_t begin, std::size_t count,
                    std::vector<Target>& targets, const RunContext& ctx)
{
    const std::size_t entries = maps.length * maps.length;
    const auto mixed = std::make_unique_for_overwrite<double[]>(count * entries);
    mix_maps(maps, resamples, begin, count, mixed.get());
    Workspace space;
    for (const Target& target : targets)
        space.summaries.emplace_back(std::max<std::size_t>(1, target.length));
    space.values.resize(metric_list().size());
    const bool has_uncovered = !std::all_of(metric_list().begin(), metric_list().end(), MapSummary::covers);
    const bool of_probabilities = targets.front().of_probabilities();
    for (std::size_t r = 0; r < count; ++r) {
        if (ctx.cancelled()) return;
        const double* map = mixed.get() + r * entries;
        if (of_probabilities) {
            space.logarithms.resize(entries);
            for (std::size_t i = 0; i < maps.length; ++i) {
                const std::size_t keys = maps.pattern == MapPattern::causal ? i + 1 : maps.length;
                kernels().maps->logarithms(map + i * maps.length, space.logarithms.data() + i * maps.length,
                                           keys);
            }
        }
        for (std::size_t t = 0; t < targets.size(); ++t) {
            Target& target = targets[t];
            if (target.length == 0) continue;
            if (target.quick)
                evaluate_target(map, maps, resamples, begin + r, target, space.summaries[t], space);
            if (!target.quick || has_uncovered)
                evaluate_slowly(map, maps, target, space.values, target.quick);
            for (std::size_t m = 0; m < space.values.size(); ++m)
                target.resampled[m * resamples.count + begin + r] = space.values[m];
        }
    }
}

/// Standard errors of the rows of one head that come from the same tensor.
void bootstrap_rows(const ProbeResult& probe, const GroupMaps& maps, const Resamples& resamples,
                    std::span<MetricRow* const> rows, Progress& progress, const RunContext& ctx)
{
    std::vector<Target> targets;
    for (MetricRow* row : rows) {
        if (ctx.cancelled()) return;
        Target& target = targets.emplace_back();
        target.row = row;
        prepare(probe, maps, target, resamples.count);
    }
    // Sizes depend on the length alone. A block reads the groups' maps once for all its resamples.
    constexpr std::size_t most_entries_in_block = std::size_t{1} << 21u;
    constexpr std::size_t blocks_at_once = 16; // between two reports of progress
    const std::size_t entries = std::max<std::size_t>(1, maps.length * maps.length);
    const std::size_t in_block = std::clamp<std::size_t>(most_entries_in_block / entries, 1, 8);
    const std::size_t step = in_block * blocks_at_once;
    for (std::size_t begin = 0; begin < resamples.count; begin += step) {
        const std::size_t end = std::min(begin + step, resamples.count);
        parallel_blocks((end - begin + in_block - 1) / in_block, [&](std::size_t block) {
            const std::size_t from = begin + block * in_block;
            if (!ctx.cancelled())
                evaluate_block(maps, resamples, from, std::min(in_block, end - from), targets, ctx);
        });
        if (ctx.cancelled()) return;
        progress.done += end - begin;
        ctx.report(progress);
    }
    for (Target& target : targets)
        for (std::size_t m = 0; m < target.row->values.size(); ++m) {
            MetricValue& value = target.row->values[m];
            const auto resampled = std::span(target.resampled).subspan(m * resamples.count, resamples.count);
            if (!std::isnan(value.value)) value.standard_error = standard_error_of(resampled);
        }
}

} // namespace

Result<void> bootstrap_standard_errors(const ProbeResult& probe, std::span<MetricRow> rows,
                                       std::size_t resamples, std::uint64_t seed, const RunContext& ctx)
{
    if (probe.groups.word_counts.size() < 2 || resamples == 0) return {};
    // Rows of one head and tensor share the resampled maps.
    struct Batch {
        int head = 0;
        bool probabilities = false;
        std::vector<MetricRow*> rows;
    };
    std::vector<Batch> batches;
    for (MetricRow& row : rows) {
        const bool probabilities = row.quantity == Quantity::probabilities;
        if ((probabilities ? probe.groups.attention_probabilities : probe.groups.attention_logits).empty())
            continue;
        const auto found = std::find_if(batches.begin(), batches.end(), [&](const Batch& batch) {
            return batch.head == row.head && batch.probabilities == probabilities;
        });
        Batch& batch =
            found != batches.end() ? *found : batches.emplace_back(Batch{row.head, probabilities, {}});
        batch.rows.push_back(&row);
    }
    const Resamples drawn = draw_resamples(probe.groups.word_counts, resamples, seed);
    Progress progress{"bootstrap", 0, batches.size() * resamples};
    for (const Batch& batch : batches) {
        if (ctx.cancelled()) return cancelled_error("computing standard errors");
        const GroupMaps maps = sum_heads(
            probe, batch.probabilities ? probe.groups.attention_probabilities : probe.groups.attention_logits,
            batch.head);
        bootstrap_rows(probe, maps, drawn, batch.rows, progress, ctx);
        if (ctx.cancelled()) return cancelled_error("computing standard errors");
    }
    return {};
}

} // namespace posiscope::core
