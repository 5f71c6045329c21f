// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/metrics/map_summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "core/kernels/kernel_set.h"
#include "core/metrics/flatness.h"
#include "core/metrics/white_band.h"

namespace posiscope::core {
namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

/// The metrics by name, before they are put in the list's order.
struct Values {
    double translation_invariance_violation = undefined;
    double monotonicity_violation_local = undefined;
    double monotonicity_violation_all = undefined;
    double monotonicity_violation_steps_local = undefined;
    double monotonicity_violation_steps_all = undefined;
    double symmetry_violation = undefined;
    double direction_balance = undefined;
    double direction_balance_local = undefined;
    WhiteBand white_band = undefined_white_band();
    double first_position_extra = undefined;
    double locality = undefined;
    double locality_symmetry = undefined;
    double attention_distance = undefined;
    double attention_distance_ratio = undefined;
};

struct QuickForm {
    std::string_view id;
    double (*value)(const Values&);
};

constexpr std::array quick_forms{
    QuickForm{"translation_invariance_violation",
              [](const Values& v) { return v.translation_invariance_violation; }},
    QuickForm{"monotonicity_violation_local", [](const Values& v) { return v.monotonicity_violation_local; }},
    QuickForm{"monotonicity_violation_all", [](const Values& v) { return v.monotonicity_violation_all; }},
    QuickForm{"monotonicity_violation_steps_local",
              [](const Values& v) { return v.monotonicity_violation_steps_local; }},
    QuickForm{"monotonicity_violation_steps_all",
              [](const Values& v) { return v.monotonicity_violation_steps_all; }},
    QuickForm{"symmetry_violation", [](const Values& v) { return v.symmetry_violation; }},
    QuickForm{"direction_balance", [](const Values& v) { return v.direction_balance; }},
    QuickForm{"direction_balance_local", [](const Values& v) { return v.direction_balance_local; }},
    QuickForm{"white_band.width", [](const Values& v) { return v.white_band.width; }},
    QuickForm{"white_band.depth", [](const Values& v) { return v.white_band.depth; }},
    QuickForm{"white_band.depth_sd", [](const Values& v) { return v.white_band.depth_sd; }},
    QuickForm{"white_band.first", [](const Values& v) { return v.white_band.first; }},
    QuickForm{"white_band.last", [](const Values& v) { return v.white_band.last; }},
    QuickForm{"first_position_extra", [](const Values& v) { return v.first_position_extra; }},
    QuickForm{"locality", [](const Values& v) { return v.locality; }},
    QuickForm{"locality_symmetry", [](const Values& v) { return v.locality_symmetry; }},
    QuickForm{"attention_distance", [](const Values& v) { return v.attention_distance; }},
    QuickForm{"attention_distance_ratio", [](const Values& v) { return v.attention_distance_ratio; }},
};

const QuickForm* find_quick_form(std::string_view id)
{
    const auto* found = std::find_if(quick_forms.begin(), quick_forms.end(),
                                     [&](const QuickForm& form) { return form.id == id; });
    return found == quick_forms.end() ? nullptr : found;
}

double sum_of(std::span<const double> values)
{
    double sum = 0.0;
    for (const double value : values) sum += value;
    return sum;
}

double root_mean(double squares, double count)
{
    return std::sqrt(squares / count);
}

/// Standard deviation and largest magnitude of a causal map with each row times its number of keys.
bool is_flat_unrolled(const MapPart& part, double count, std::span<double> scratch)
{
    // Sums by column keep the loops free of a running sum.
    std::fill(scratch.begin(), scratch.end(), 0.0);
    for (std::size_t i = 0; i < part.length; ++i) {
        const double* row = part.row(i);
        const double keys = static_cast<double>(i + 1);
        for (std::size_t j = 0; j <= i; ++j) scratch[j] += row[j] * keys;
    }
    const double mean = sum_of(scratch) / count;
    std::fill(scratch.begin(), scratch.end(), 0.0);
    double largest = 0.0;
    for (std::size_t i = 0; i < part.length; ++i) {
        const double* row = part.row(i);
        const double keys = static_cast<double>(i + 1);
        for (std::size_t j = 0; j <= i; ++j) {
            const double value = row[j] * keys;
            scratch[j] += (value - mean) * (value - mean);
            largest = std::max(largest, std::abs(value));
        }
    }
    return root_mean(sum_of(scratch), count) <= flat_tolerance * largest;
}

double locality_symmetry_of(const MapPart& part)
{
    double sum = 0.0;
    std::size_t count = 0;
    for (std::size_t i = 1; i + 1 < part.length; ++i) {
        const double* row = part.row(i);
        const std::size_t pairs = std::min(i, part.length - 1 - i);
        double least = std::numeric_limits<double>::infinity();
        double most = 0.0;
        double row_sum = 0.0;
        for (std::size_t d = 1; d <= pairs; ++d) {
            const double difference = std::abs(row[i - d] - row[i + d]);
            least = std::min(least, difference);
            most = std::max(most, difference);
            row_sum += difference;
        }
        count += pairs;
        const double span = most - least;
        if (span > 0.0) sum += (row_sum - static_cast<double>(pairs) * least) / span;
    }
    return count > 0 ? 1.0 - sum / static_cast<double>(count) : undefined;
}

/// Sums over the offsets centre - reach .. centre - 1 and centre + 1 .. centre + reach.
struct SideSums {
    double preceding = 0.0;
    double following = 0.0;
    double squares = 0.0; ///< of deviations from the mean of both sides
    double count = 0.0;   ///< entries of both sides

    [[nodiscard]] double mean() const { return (preceding + following) / count; }
};

SideSums side_sums(const OffsetProfile& profile, std::span<const double> sum, std::span<const double> squares,
                   std::size_t reach)
{
    SideSums sides;
    const std::size_t centre = profile.centre();
    for (std::size_t d = 1; d <= reach; ++d) {
        sides.preceding += sum[centre - d];
        sides.following += sum[centre + d];
        sides.count += static_cast<double>(profile.count[centre - d] + profile.count[centre + d]);
    }
    for (std::size_t d = 1; d <= reach; ++d)
        for (const std::size_t a : {centre - d, centre + d}) {
            const double deviation = profile.mean[a] - sides.mean();
            sides.squares += squares[a] + static_cast<double>(profile.count[a]) * deviation * deviation;
        }
    return sides;
}

double direction_balance_of(const SideSums& sides, Quantity quantity, double largest)
{
    if (quantity == Quantity::probabilities)
        return (sides.preceding - sides.following) / (sides.preceding + sides.following);
    const double deviation = root_mean(sides.squares, sides.count);
    if (!(deviation > flat_tolerance * largest)) return 0.0;
    return (sides.preceding - sides.following) / (sides.count / 2.0) / (2.0 * deviation);
}

void set_attention_distances(const MapPart& part, const MapExtras& extras, Values& values)
{
    double distances = 0.0;
    double ratios = 0.0;
    std::size_t distance_count = 0;
    std::size_t ratio_count = 0;
    for (std::size_t i = 0; i < part.length; ++i) {
        const double distance = extras.row_moment[i] / extras.row_mass[i];
        if (std::isnan(distance)) continue;
        distances += distance;
        ++distance_count;
        const double before = static_cast<double>(i);
        const double after = static_cast<double>(part.keys(i) - 1 - i);
        const double uniform =
            (before * (before + 1.0) + after * (after + 1.0)) / 2.0 / static_cast<double>(part.keys(i));
        if (!(uniform > 0.0)) continue;
        ratios += distance / uniform;
        ++ratio_count;
    }
    if (distance_count > 0) values.attention_distance = distances / static_cast<double>(distance_count);
    if (ratio_count > 0) values.attention_distance_ratio = ratios / static_cast<double>(ratio_count);
}

} // namespace

MapSummary::MapSummary(std::size_t length)
{
    const std::size_t size = 2 * length - 1;
    for (std::vector<double>* sums :
         {&m_sum, &m_largest, &m_squares, &m_rise, &m_change, &m_rising, &m_steps})
        sums->resize(size);
    m_profile.offsets.resize(size);
    m_profile.mean.resize(size);
    m_profile.standard_deviation.resize(size);
    m_profile.count.resize(size);
    for (std::size_t a = 0; a < size; ++a)
        m_profile.offsets[a] = static_cast<int>(a) - static_cast<int>(length - 1);
}

bool MapSummary::covers(const Metric& metric)
{
    return find_quick_form(metric.id) != nullptr;
}

void MapSummary::sum_diagonals(const MapPart& part)
{
    std::fill(m_sum.begin(), m_sum.end(), 0.0);
    std::fill(m_largest.begin(), m_largest.end(), 0.0);
    for (std::size_t i = 0; i < part.length; ++i) {
        const double constant = part.query_constants != nullptr ? part.query_constants[i] : 0.0;
        const std::size_t shift = part.length - 1 - i;
        kernels().maps->add_to_diagonals(part.row(i), constant, m_sum.data() + shift,
                                         m_largest.data() + shift, part.keys(i));
    }
    for (std::size_t a = 0; a < m_sum.size(); ++a) {
        const std::size_t distance = static_cast<std::size_t>(std::abs(m_profile.offsets[a]));
        const bool exists = part.pattern == MapPattern::full || m_profile.offsets[a] <= 0;
        m_profile.count[a] = exists ? part.length - distance : 0;
        m_profile.mean[a] = exists ? m_sum[a] / static_cast<double>(m_profile.count[a]) : undefined;
    }
}

void MapSummary::sum_squares(const MapPart& part)
{
    std::fill(m_squares.begin(), m_squares.end(), 0.0);
    for (std::size_t i = 0; i < part.length; ++i) {
        const double constant = part.query_constants != nullptr ? part.query_constants[i] : 0.0;
        const std::size_t shift = part.length - 1 - i;
        kernels().maps->add_squares(part.row(i), constant, m_profile.mean.data() + shift,
                                    m_squares.data() + shift, part.keys(i));
    }
    for (std::size_t a = 0; a < m_squares.size(); ++a)
        m_profile.standard_deviation[a] = root_mean(m_squares[a], static_cast<double>(m_profile.count[a]));
}

void MapSummary::sum_steps(const MapPart& part)
{
    for (std::vector<double>* sums : {&m_rise, &m_change, &m_rising, &m_steps})
        std::fill(sums->begin(), sums->end(), 0.0);
    for (std::size_t i = 0; i < part.length; ++i) {
        // A query's constant drops out of the steps along its row.
        const auto add_steps = [&](std::size_t from, double direction, std::size_t count) {
            const std::size_t a = part.length - 1 - i + from;
            kernels().maps->add_steps(part.row(i) + from, direction, m_least_step, m_rise.data() + a,
                                      m_change.data() + a, m_rising.data() + a, m_steps.data() + a, count);
        };
        add_steps(0, -1.0, i);
        add_steps(i, 1.0, part.keys(i) - 1 - i);
    }
}

void MapSummary::evaluate(const MapPart& part, Quantity quantity, const MapExtras& extras,
                          std::span<double> values)
{
    const std::size_t length = part.length;
    const std::size_t centre = length - 1;
    const bool causal = part.pattern == MapPattern::causal && length > 1;
    sum_diagonals(part);
    sum_squares(part);
    const double count = static_cast<double>(causal ? length * (length + 1) / 2 : length * length);
    const double mean = sum_of(m_sum) / count;
    const double largest = *std::max_element(m_largest.begin(), m_largest.end());
    // Total = within diagonals + between them.
    const double within = sum_of(m_squares);
    double total = within;
    for (std::size_t a = 0; a < m_sum.size(); ++a)
        if (m_profile.count[a] > 0) {
            const double deviation = m_profile.mean[a] - mean;
            total += static_cast<double>(m_profile.count[a]) * deviation * deviation;
        }
    const bool causal_probabilities = causal && quantity == Quantity::probabilities;
    bool flat = root_mean(total, count) <= flat_tolerance * largest;
    if (causal_probabilities && !flat) flat = is_flat_unrolled(part, count, std::span(m_steps).first(length));

    Values found;
    if (!flat) {
        if (!causal_probabilities) found.translation_invariance_violation = within / total;

        m_least_step = flat_tolerance * largest;
        sum_steps(part);
        const auto share_of_rise = [&](std::size_t reach, const std::vector<double>& part_of,
                                       const std::vector<double>& whole, double if_none) {
            // Steps to offsets within `reach`, kept at the left one of the two offsets that they join.
            const std::span near_part = std::span(part_of).subspan(centre - reach, 2 * reach);
            const std::span near_whole = std::span(whole).subspan(centre - reach, 2 * reach);
            const double all = sum_of(near_whole);
            return all > 0.0 ? sum_of(near_part) / all : if_none;
        };
        const std::size_t local = std::min(local_offsets, length - 1);
        found.monotonicity_violation_local = share_of_rise(local, m_rise, m_change, undefined);
        found.monotonicity_violation_all = share_of_rise(length - 1, m_rise, m_change, undefined);
        found.monotonicity_violation_steps_local = share_of_rise(local, m_rising, m_steps, 0.0);
        found.monotonicity_violation_steps_all = share_of_rise(length - 1, m_rising, m_steps, 0.0);

        if (!causal && length > 1) {
            const SideSums sides = side_sums(m_profile, m_sum, m_squares, length - 1);
            const SideSums near_sides = side_sums(m_profile, m_sum, m_squares, local);
            if (sides.squares > 0.0)
                found.symmetry_violation = extras.antisymmetric_energy / 2.0 / sides.squares;
            found.direction_balance = direction_balance_of(sides, quantity, largest);
            found.direction_balance_local = direction_balance_of(near_sides, quantity, largest);
        }
        found.white_band = white_band(m_profile);
        if (length >= 4) found.first_position_extra = std::exp(extras.first_position_log_extra);
    }
    if (quantity == Quantity::probabilities) {
        double sum = m_sum[centre];
        double weight = 1.0;
        for (std::size_t d = 1; d < length; ++d) {
            weight *= 0.5;
            sum += weight * (m_sum[centre - d] + m_sum[centre + d]);
        }
        found.locality = sum / static_cast<double>(length);
        if (!causal) found.locality_symmetry = locality_symmetry_of(part);
        set_attention_distances(part, extras, found);
    }
    const auto metrics = metric_list();
    for (std::size_t m = 0; m < metrics.size(); ++m) {
        const QuickForm* form = find_quick_form(metrics[m].id);
        values[m] = form != nullptr ? form->value(found) : undefined;
    }
}

} // namespace posiscope::core
