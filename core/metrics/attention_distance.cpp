// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/metrics/attention_distance.h"

#include <cmath>
#include <limits>

#include "core/metrics/locality.h"

namespace posiscope::core {

AttentionDistance attention_distance(const PositionMap& probabilities)
{
    AttentionDistance out;
    const std::size_t length = probabilities.length;
    out.distance.resize(length);
    out.ratio.resize(length);
    for (std::size_t i = 0; i < length; ++i) {
        double mass = 0.0;
        double moment = 0.0;
        double keys = 0.0;
        double uniform = 0.0;
        for (std::size_t j = 0; j < length; ++j) {
            const double value = number_or_zero(probabilities(i, j));
            const double apart = static_cast<double>(i > j ? i - j : j - i);
            mass += value;
            moment += value * apart;
            if (std::isfinite(probabilities(i, j))) {
                keys += 1.0;
                uniform += apart;
            }
        }
        uniform /= keys;
        out.distance[i] = moment / mass;
        out.ratio[i] = uniform > 0.0 ? out.distance[i] / uniform : std::numeric_limits<double>::quiet_NaN();
    }
    return out;
}

double mean_of_defined(const std::vector<double>& values)
{
    double sum = 0.0;
    std::size_t count = 0;
    for (const double value : values)
        if (!std::isnan(value)) {
            sum += value;
            ++count;
        }
    return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
}

} // namespace posiscope::core
