// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/metrics/direction_balance.h"

#include <cmath>
#include <limits>

#include "core/metrics/flatness.h"

namespace posiscope::core {
namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

/// Calls visit(preceding, following) for every mirrored pair of defined entries up to `within` apart.
template <class Visit>
void for_each_pair(const PositionMap& map, std::size_t within, Visit visit)
{
    for (std::size_t i = 1; i < map.length; ++i)
        for (std::size_t j = i > within ? i - within : 0; j < i; ++j)
            if (std::isfinite(map(i, j)) && std::isfinite(map(j, i))) visit(map(i, j), map(j, i));
}

} // namespace

double direction_balance(const PositionMap& map, Quantity quantity, std::size_t within)
{
    double preceding_sum = 0.0;
    double following_sum = 0.0;
    std::size_t pairs = 0;
    for_each_pair(map, within, [&](double preceding, double following) {
        preceding_sum += preceding;
        following_sum += following;
        ++pairs;
    });
    if (pairs == 0 || is_flat(map)) return undefined;
    if (quantity == Quantity::probabilities)
        return (preceding_sum - following_sum) / (preceding_sum + following_sum);

    const double count = static_cast<double>(pairs);
    const double mean = (preceding_sum + following_sum) / (2.0 * count);
    double squares = 0.0;
    for_each_pair(map, within, [&](double preceding, double following) {
        squares += (preceding - mean) * (preceding - mean) + (following - mean) * (following - mean);
    });
    const double deviation = std::sqrt(squares / (2.0 * count));
    if (!(deviation > flat_tolerance * largest_magnitude(map))) return 0.0;
    return (preceding_sum / count - following_sum / count) / (2.0 * deviation);
}

} // namespace posiscope::core
