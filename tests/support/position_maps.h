// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "core/base/random.h"
#include "core/metrics/quantity.h"

namespace posiscope::tests {

inline constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

/// A map from its entries, row by row.
inline core::PositionMap map_of(std::size_t length, std::vector<double> values)
{
    return core::PositionMap{length, std::move(values), 0};
}

/// The map whose entry at offset k is profile(k).
template <class Profile>
core::PositionMap toeplitz(std::size_t length, Profile profile)
{
    core::PositionMap map{length, std::vector<double>(length * length), 0};
    for (std::size_t i = 0; i < length; ++i)
        for (std::size_t j = 0; j < length; ++j)
            map(i, j) = profile(static_cast<int>(j) - static_cast<int>(i));
    return map;
}

inline core::PositionMap noise(std::size_t length, std::uint64_t seed)
{
    core::Random random(seed);
    core::PositionMap map{length, std::vector<double>(length * length), 0};
    for (double& value : map.values) value = random.normal();
    return map;
}

/// The map without its future.
inline core::PositionMap causal(core::PositionMap map)
{
    for (std::size_t i = 0; i < map.length; ++i)
        for (std::size_t j = i + 1; j < map.length; ++j) map(i, j) = undefined;
    return map;
}

inline core::PositionMap transposed(const core::PositionMap& map)
{
    core::PositionMap out = map;
    for (std::size_t i = 0; i < map.length; ++i)
        for (std::size_t j = 0; j < map.length; ++j) out(i, j) = map(j, i);
    return out;
}

inline bool close(double found, double wanted, double tolerance = 1e-12)
{
    return std::abs(found - wanted) <= tolerance * std::max(1.0, std::abs(wanted));
}

} // namespace posiscope::tests
