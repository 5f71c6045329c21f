// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/metrics/locality.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace posiscope::core {

double number_or_zero(double value)
{
    if (std::isnan(value)) return 0.0;
    return std::isinf(value) ? std::copysign(std::numeric_limits<double>::max(), value) : value;
}

double locality(const PositionMap& probabilities)
{
    const std::size_t length = probabilities.length;
    std::vector<double> weight(length);
    for (std::size_t d = 0; d < length; ++d) weight[d] = std::pow(0.5, static_cast<double>(d));
    double sum = 0.0;
    for (std::size_t i = 0; i < length; ++i)
        for (std::size_t j = 0; j < length; ++j)
            sum += number_or_zero(probabilities(i, j)) * weight[i > j ? i - j : j - i];
    return sum / static_cast<double>(length);
}

double locality_symmetry(const PositionMap& probabilities)
{
    constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
    const std::size_t length = probabilities.length;
    if (!std::all_of(probabilities.values.begin(), probabilities.values.end(),
                     [](double value) { return std::isfinite(value); }))
        return undefined;
    double sum = 0.0;
    std::size_t count = 0;
    for (std::size_t i = 1; i + 1 < length; ++i) {
        const double* row = probabilities.values.data() + i * length;
        const std::size_t pairs = std::min(i, length - 1 - i);
        double least = std::numeric_limits<double>::infinity();
        double most = 0.0;
        for (std::size_t d = 1; d <= pairs; ++d) {
            const double difference = std::abs(row[i - d] - row[i + d]);
            least = std::min(least, difference);
            most = std::max(most, difference);
        }
        count += pairs;
        const double span = most - least;
        if (!(span > 0.0)) continue;
        for (std::size_t d = 1; d <= pairs; ++d) sum += (std::abs(row[i - d] - row[i + d]) - least) / span;
    }
    return count > 0 ? 1.0 - sum / static_cast<double>(count) : undefined;
}

} // namespace posiscope::core
