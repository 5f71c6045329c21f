// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/metrics/monotonicity.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace posiscope::core {
namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

/// Calls visit(change) for every defined step of the key away from the query.
template <class Visit>
void for_each_step(const PositionMap& map, std::size_t within, Visit visit)
{
    for (std::size_t i = 0; i < map.length; ++i) {
        const double* row = map.values.data() + i * map.length;
        const std::size_t preceding = std::min(within, i);
        const std::size_t following = std::min(within, map.length - 1 - i);
        for (std::size_t d = 0; d < preceding; ++d) {
            const double change = row[i - d - 1] - row[i - d];
            if (std::isfinite(change)) visit(change);
        }
        for (std::size_t d = 0; d < following; ++d) {
            const double change = row[i + d + 1] - row[i + d];
            if (std::isfinite(change)) visit(change);
        }
    }
}

} // namespace

double monotonicity_violation(const PositionMap& map, std::size_t within)
{
    if (is_flat(map)) return undefined;
    double up = 0.0;
    double total = 0.0;
    for_each_step(map, within, [&](double change) {
        up += std::max(change, 0.0);
        total += std::abs(change);
    });
    return total > 0.0 ? up / total : undefined;
}

double monotonicity_violation_steps(const PositionMap& map, std::size_t within)
{
    if (is_flat(map)) return undefined;
    const double least = flat_tolerance * largest_magnitude(map);
    std::size_t up = 0;
    std::size_t total = 0;
    for_each_step(map, within, [&](double change) {
        if (!(std::abs(change) > least)) return;
        up += change > 0.0 ? 1 : 0;
        ++total;
    });
    return total > 0 ? static_cast<double>(up) / static_cast<double>(total) : 0.0;
}

double monotonicity_violation_2d(const PositionMap& map, Grid grid, std::size_t within)
{
    if (grid.rows * grid.cols != map.length || is_flat(map)) return undefined;
    double up = 0.0;
    double total = 0.0;
    // One line of the grid through the query: `size` keys, `stride` apart from `first` on, the query at `centre`.
    const auto add_line = [&](const double* first, std::size_t stride, std::size_t size, std::size_t centre) {
        const auto add_step = [&](std::size_t from, std::size_t to) {
            const double change = first[to * stride] - first[from * stride];
            up += std::isnan(change) ? change : std::max(change, 0.0);
            total += std::abs(change);
        };
        for (std::size_t c = centre; c + 1 < size && c - centre < within; ++c) add_step(c, c + 1);
        for (std::size_t c = centre; c > 0 && centre - c < within; --c) add_step(c, c - 1);
    };
    for (std::size_t i = 0; i < map.length; ++i) {
        const std::size_t y = i / grid.cols;
        const std::size_t x = i % grid.cols;
        const double* row = map.values.data() + i * map.length;
        add_line(row + y * grid.cols, 1, grid.cols, x);
        add_line(row + x, grid.cols, grid.rows, y);
    }
    return total > 0.0 ? up / total : undefined;
}

} // namespace posiscope::core
