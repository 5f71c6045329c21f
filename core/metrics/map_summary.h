// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/metrics/metric_list.h"
#include "core/metrics/offset_profile.h"
#include "core/metrics/quantity.h"

namespace posiscope::core {

/// Which entries of a map exist: all, or those whose key does not follow the query.
enum class MapPattern { full, causal };

/// A square part of a row-major map, with a constant per query taken out on the way.
struct MapPart {
    const double* values = nullptr; ///< its first entry
    std::size_t stride = 0;         ///< from one row to the next
    std::size_t length = 0;         ///< at least 1
    MapPattern pattern = MapPattern::full;
    const double* query_constants = nullptr; ///< [length], or null

    [[nodiscard]] const double* row(std::size_t i) const { return values + i * stride; }
    [[nodiscard]] std::size_t keys(std::size_t i) const
    {
        return pattern == MapPattern::causal ? i + 1 : length;
    }
};

/// What is not found from sums over diagonals; all of it is linear or quadratic in the map, so that the bootstrap
/// gets it from the groups' values without going over the map again.
struct MapExtras {
    double antisymmetric_energy = 0.0;     ///< sum over i > j of (S_ij - S_ji)^2
    double first_position_log_extra = 0.0; ///< logarithm of first_position_extra
    std::span<const double> row_mass;      ///< probabilities: sum_j P_ij
    std::span<const double> row_moment;    ///< probabilities: sum_j P_ij |i - j|
};

/// All metrics of many maps of one size, quickly: three passes over each map that add whole rows to sums over
/// diagonals, where the functions of metric_list() take some forty. Agrees with them to rounding (test). The entries
/// that exist must be finite. Holds scratch space: one for each thread.
class MapSummary {
public:
    explicit MapSummary(std::size_t length);

    /// Whether evaluate knows a metric (a new one needs no quick form).
    static bool covers(const Metric& metric);

    /// Writes one value for each row of metric_list(), in its order; NaN for those that it does not cover.
    void evaluate(const MapPart& part, Quantity quantity, const MapExtras& extras, std::span<double> values);

private:
    void sum_diagonals(const MapPart& part);
    void sum_squares(const MapPart& part);
    void sum_steps(const MapPart& part);

    std::vector<double> m_sum;     ///< of the entries of each diagonal
    std::vector<double> m_largest; ///< |entry|
    std::vector<double> m_squares; ///< of deviations from the diagonal's mean
    std::vector<double> m_rise;    ///< sum of max(step, 0), at the left one of the two offsets
    std::vector<double> m_change;  ///< sum of |step|
    std::vector<double> m_rising;  ///< steps that go up by more than m_least_step
    std::vector<double> m_steps;   ///< steps larger than that
    double m_least_step = 0.0;
    OffsetProfile m_profile;
};

} // namespace posiscope::core
