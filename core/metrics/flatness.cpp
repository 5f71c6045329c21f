// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/metrics/flatness.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace posiscope::core {

bool is_flat(const PositionMap& map)
{
    double sum = 0.0;
    double largest = 0.0;
    std::size_t count = 0;
    for (const double value : map.values) {
        if (!std::isfinite(value)) continue;
        sum += value;
        largest = std::max(largest, std::abs(value));
        ++count;
    }
    if (count == 0) return true;
    const double mean = sum / static_cast<double>(count);
    double squares = 0.0;
    for (const double value : map.values)
        if (std::isfinite(value)) squares += (value - mean) * (value - mean);
    return std::sqrt(squares / static_cast<double>(count)) <= flat_tolerance * largest;
}

bool is_flat(const PositionMap& map, Quantity quantity)
{
    const bool falls_by_itself = quantity == Quantity::probabilities && is_causal(map);
    // Flat causal probabilities become 1 everywhere, and a single remaining position is flat either way.
    return is_flat(map) || (falls_by_itself && is_flat(unrolled(map)));
}

PositionMap unrolled(const PositionMap& probabilities)
{
    PositionMap out = probabilities;
    for (std::size_t i = 0; i < out.length; ++i) {
        double* row = out.values.data() + i * out.length;
        std::size_t keys = 0;
        for (std::size_t j = 0; j < out.length; ++j) keys += std::isfinite(row[j]) ? 1 : 0;
        for (std::size_t j = 0; j < out.length; ++j) row[j] *= static_cast<double>(keys);
    }
    return out;
}

bool is_causal(const PositionMap& map)
{
    if (map.length < 2) return false;
    for (std::size_t i = 0; i < map.length; ++i)
        for (std::size_t j = i + 1; j < map.length; ++j)
            if (std::isfinite(map(i, j))) return false;
    return true;
}

double largest_magnitude(const PositionMap& map)
{
    double largest = std::numeric_limits<double>::quiet_NaN();
    for (const double value : map.values) {
        const double magnitude = std::abs(value);
        if (std::isnan(largest) || magnitude > largest) largest = std::isnan(magnitude) ? largest : magnitude;
    }
    return largest;
}

} // namespace posiscope::core
