// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/position/sinusoidal.h"

#include <cmath>

namespace posiscope::core {

HostTensor sinusoidal_table(const SinusoidalScheme& scheme, std::int64_t first, std::int64_t length,
                            std::int64_t features)
{
    HostTensor table({length, features});
    const std::int64_t half = features / 2;
    const double divisor = static_cast<double>(scheme.last_frequency_is_base ? half - 1 : half);
    for (std::int64_t k = 0; k < half; ++k) {
        const double frequency = std::pow(scheme.base, -static_cast<double>(k) / divisor);
        const std::int64_t sine = scheme.interleaved ? 2 * k : k;
        const std::int64_t cosine = scheme.interleaved ? 2 * k + 1 : half + k;
        for (std::int64_t p = 0; p < length; ++p) {
            const double angle = static_cast<double>(first + p) * frequency;
            table.data()[p * features + sine] = static_cast<float>(std::sin(angle));
            table.data()[p * features + cosine] = static_cast<float>(std::cos(angle));
        }
    }
    return table;
}

} // namespace posiscope::core
