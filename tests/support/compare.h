// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace posiscope::tests {

/// Largest |value|.
template <class Values>
double largest_magnitude(const Values& values)
{
    double largest = 0.0;
    for (const auto value : values) largest = std::max(largest, std::abs(static_cast<double>(value)));
    return largest;
}

/// Largest |found - wanted|; infinite where the sizes differ or a difference is no number.
template <class Found, class Wanted>
double largest_difference(const Found& found, const Wanted& wanted)
{
    if (found.size() != wanted.size()) return std::numeric_limits<double>::infinity();
    double largest = 0.0;
    for (std::size_t n = 0; n < wanted.size(); ++n) {
        const double difference = std::abs(static_cast<double>(found[n]) - static_cast<double>(wanted[n]));
        if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
        largest = std::max(largest, difference);
    }
    return largest;
}

/// Largest difference in units of the wanted values' largest magnitude.
template <class Found, class Wanted>
double relative_error(const Found& found, const Wanted& wanted)
{
    const double magnitude = largest_magnitude(wanted);
    const double difference = largest_difference(found, wanted);
    return magnitude > 0.0 ? difference / magnitude : difference;
}

} // namespace posiscope::tests
