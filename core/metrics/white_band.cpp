// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/metrics/white_band.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace posiscope::core {

WhiteBand undefined_white_band()
{
    constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
    return {undefined, undefined, undefined, undefined, undefined};
}

WhiteBand white_band(const PositionMap& map, std::size_t within)
{
    return is_flat(map) ? undefined_white_band() : white_band(offset_profile(map), within);
}

WhiteBand white_band(const OffsetProfile& profile, std::size_t within)
{
    if (profile.offsets.empty()) return undefined_white_band();
    const std::size_t centre = profile.centre();
    const std::size_t reach = std::min(within, centre);
    const std::vector<double>& mean = profile.mean;
    const double self = mean[centre];

    constexpr double lowest = -std::numeric_limits<double>::infinity();
    double peak_before = lowest;
    double peak_after = lowest;
    double largest = lowest;
    double smallest = std::numeric_limits<double>::infinity();
    double sum = 0.0;
    double standard_errors = 0.0;
    std::size_t count = 0;
    for (std::size_t a = centre - reach; a <= centre + reach; ++a) {
        if (!std::isfinite(mean[a])) continue;
        if (a < centre) peak_before = std::max(peak_before, mean[a]);
        if (a > centre) peak_after = std::max(peak_after, mean[a]);
        largest = std::max(largest, mean[a]);
        smallest = std::min(smallest, mean[a]);
        sum += mean[a];
        standard_errors += profile.standard_deviation[a] / std::sqrt(static_cast<double>(profile.count[a]));
        ++count;
    }
    if (!std::isfinite(self) || (peak_before == lowest && peak_after == lowest))
        return undefined_white_band();
    double peak = std::min(peak_before, peak_after);
    if (peak == lowest) peak = std::max(peak_before, peak_after); // only one side exists
    if (self >= peak) return {};

    const double half_way = (self + peak) / 2.0;
    const auto is_low = [&](std::size_t a) { return std::isfinite(mean[a]) && mean[a] < half_way; };
    std::size_t first = centre;
    std::size_t last = centre;
    while (first > centre - reach && is_low(first - 1)) --first;
    while (last < centre + reach && is_low(last + 1)) ++last;
    const std::size_t width = last - first + 1;

    const double depth = peak - self;
    const double least =
        std::max(0.1 * (largest - smallest), 4.0 * standard_errors / static_cast<double>(count));
    if (depth <= least || static_cast<double>(width) > static_cast<double>(within) / 2.0 + 1.0) return {};
    double squares = 0.0;
    const double profile_mean = sum / static_cast<double>(count);
    for (std::size_t a = centre - reach; a <= centre + reach; ++a)
        if (std::isfinite(mean[a])) squares += (mean[a] - profile_mean) * (mean[a] - profile_mean);
    WhiteBand band;
    band.width = static_cast<double>(width);
    band.depth = depth;
    band.depth_sd = depth / std::sqrt(squares / static_cast<double>(count));
    band.first = static_cast<double>(first) - static_cast<double>(centre);
    band.last = static_cast<double>(last) - static_cast<double>(centre);
    return band;
}

} // namespace posiscope::core
