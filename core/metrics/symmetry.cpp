// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/metrics/symmetry.h"

#include <cmath>
#include <limits>

#include "core/metrics/flatness.h"

namespace posiscope::core {
namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

/// Calls visit(preceding, following) for every mirrored pair of defined entries.
template <class Visit>
void for_each_pair(const PositionMap& map, Visit visit)
{
    for (std::size_t i = 1; i < map.length; ++i)
        for (std::size_t j = 0; j < i; ++j)
            if (std::isfinite(map(i, j)) && std::isfinite(map(j, i))) visit(map(i, j), map(j, i));
}

} // namespace

double symmetry_violation(const PositionMap& map)
{
    double sum = 0.0;
    std::size_t pairs = 0;
    for_each_pair(map, [&](double preceding, double following) {
        sum += preceding + following;
        ++pairs;
    });
    if (pairs == 0 || is_flat(map)) return undefined;
    const double mean = sum / static_cast<double>(2 * pairs);
    double antisymmetric = 0.0;
    double energy = 0.0;
    for_each_pair(map, [&](double preceding, double following) {
        antisymmetric += (preceding - following) * (preceding - following);
        energy += (preceding - mean) * (preceding - mean) + (following - mean) * (following - mean);
    });
    return energy > 0.0 ? antisymmetric / 2.0 / energy : undefined;
}

} // namespace posiscope::core
