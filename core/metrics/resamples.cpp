// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/metrics/resamples.h"

#include <cmath>
#include <limits>

#include "core/base/random.h"

namespace posiscope::core {

Resamples draw_resamples(std::span<const std::size_t> word_counts, std::size_t count, std::uint64_t seed)
{
    Resamples resamples{word_counts.size(), count, std::vector<double>(count * word_counts.size(), 0.0),
                        std::vector<double>(count, 0.0)};
    Random random(seed);
    for (std::size_t r = 0; r < count; ++r)
        for (std::size_t draw = 0; draw < resamples.groups; ++draw) {
            const auto group = static_cast<std::size_t>(random.below(resamples.groups));
            const double words = static_cast<double>(word_counts[group]);
            resamples.weights[r * resamples.groups + group] += words;
            resamples.totals[r] += words;
        }
    return resamples;
}

double standard_error_of(std::span<const double> resampled_values)
{
    // Deviations from the first value: values that are all equal give exactly 0.
    double origin = 0.0;
    double sum = 0.0;
    std::size_t count = 0;
    for (const double value : resampled_values) {
        if (!std::isfinite(value)) continue;
        if (count == 0) origin = value;
        sum += value - origin;
        ++count;
    }
    if (count < 2) return std::numeric_limits<double>::quiet_NaN();
    const double mean = sum / static_cast<double>(count);
    double squares = 0.0;
    for (const double value : resampled_values)
        if (std::isfinite(value)) squares += (value - origin - mean) * (value - origin - mean);
    return std::sqrt(squares / static_cast<double>(count - 1));
}

} // namespace posiscope::core
