// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/base/random.h"
#include "core/metrics/quantity.h"

namespace posiscope::test {

inline constexpr double no_value = std::numeric_limits<double>::quiet_NaN();
inline constexpr double infinity = std::numeric_limits<double>::infinity();

inline core::PositionMap map_of(std::size_t length, std::vector<double> values)
{
    core::PositionMap map;
    map.length = length;
    map.values = std::move(values);
    return map;
}

/// 1 and 0 like a chess board, but corners that tell the orientation: 0.2 at the top left (query 0, key 0), 0.4 at
/// the top right, 0.6 at the bottom left, 0.8 at the bottom right.
inline core::PositionMap corner_board(std::size_t length)
{
    core::PositionMap map = map_of(length, std::vector<double>(length * length));
    for (std::size_t n = 0; n < map.values.size(); ++n)
        map.values[n] = static_cast<double>((n / length + n % length) % 2);
    map(0, 0) = 0.2;
    map(0, length - 1) = 0.4;
    map(length - 1, 0) = 0.6;
    map(length - 1, length - 1) = 0.8;
    return map;
}

/// Noise: the map that compresses worst.
inline core::PositionMap noise(std::size_t length)
{
    core::Random random(7);
    core::PositionMap map = map_of(length, std::vector<double>(length * length));
    for (double& value : map.values) value = random.uniform();
    return map;
}

} // namespace posiscope::test
