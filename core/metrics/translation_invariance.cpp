// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/metrics/translation_invariance.h"

#include <cmath>
#include <limits>
#include <vector>

#include "core/metrics/flatness.h"
#include "core/metrics/offset_profile.h"

namespace posiscope::core {
namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

} // namespace

double translation_invariance_violation(const PositionMap& map)
{
    if (is_flat(map)) return undefined;
    double sum = 0.0;
    std::size_t count = 0;
    for (const double value : map.values)
        if (std::isfinite(value)) {
            sum += value;
            ++count;
        }
    const double mean = sum / static_cast<double>(count);
    double total = 0.0;
    for (const double value : map.values)
        if (std::isfinite(value)) total += (value - mean) * (value - mean);

    const OffsetProfile profile = offset_profile(map);
    double within = 0.0;
    for (std::size_t a = 0; a < profile.offsets.size(); ++a)
        if (profile.count[a] > 0)
            within += static_cast<double>(profile.count[a]) * profile.standard_deviation[a] *
                      profile.standard_deviation[a];
    return within / total;
}

double translation_invariance_violation_2d(const PositionMap& map, Grid grid)
{
    const std::size_t length = map.length;
    if (grid.rows * grid.cols != length || is_flat(map)) return undefined;
    const std::size_t width = 2 * grid.cols - 1;
    const auto offset_of = [&](std::size_t i, std::size_t j) {
        const std::size_t dy = j / grid.cols + grid.rows - 1 - i / grid.cols;
        const std::size_t dx = j % grid.cols + grid.cols - 1 - i % grid.cols;
        return dy * width + dx;
    };
    std::vector<double> mean((2 * grid.rows - 1) * width, 0.0);
    std::vector<std::size_t> count(mean.size(), 0);
    double sum = 0.0;
    for (std::size_t i = 0; i < length; ++i)
        for (std::size_t j = 0; j < length; ++j) {
            const std::size_t k = offset_of(i, j);
            mean[k] += map(i, j);
            ++count[k];
            sum += map(i, j);
        }
    for (std::size_t k = 0; k < mean.size(); ++k)
        if (count[k] > 0) mean[k] /= static_cast<double>(count[k]);
    const double map_mean = sum / static_cast<double>(length * length);
    double within = 0.0;
    double total = 0.0;
    for (std::size_t i = 0; i < length; ++i)
        for (std::size_t j = 0; j < length; ++j) {
            const double inside = map(i, j) - mean[offset_of(i, j)];
            const double overall = map(i, j) - map_mean;
            within += inside * inside;
            total += overall * overall;
        }
    return within / total;
}

} // namespace posiscope::core
