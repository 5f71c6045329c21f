// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/position/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace posiscope::core {
namespace {

double plain_frequency(double base, std::size_t pair, std::int64_t features)
{
    return std::pow(base, -2.0 * static_cast<double>(pair) / static_cast<double>(features));
}

} // namespace

std::vector<double> rotary_frequencies(const RotaryScheme& scheme, std::int64_t length)
{
    const bool is_long = static_cast<double>(length) > scheme.trained_length;
    double base = scheme.base;
    if (scheme.dynamic_factor > 0.0 && is_long) {
        const double d = static_cast<double>(scheme.features);
        const double stretch = scheme.dynamic_factor * static_cast<double>(length) / scheme.trained_length -
                               (scheme.dynamic_factor - 1.0);
        base *= std::pow(stretch, d / (d - 2.0));
    }
    const auto& divisors = is_long && !scheme.long_divisors.empty() ? scheme.long_divisors : scheme.divisors;
    std::vector<double> frequencies(static_cast<std::size_t>(scheme.features / 2));
    for (std::size_t k = 0; k < frequencies.size(); ++k)
        frequencies[k] = plain_frequency(base, k, scheme.features) / (divisors.empty() ? 1.0 : divisors[k]);
    return frequencies;
}

void rotary_tables(const RotaryScheme& scheme, std::int64_t length, HostTensor& cosines, HostTensor& sines)
{
    const std::vector<double> frequencies = rotary_frequencies(scheme, length);
    const auto pairs = static_cast<std::int64_t>(frequencies.size());
    cosines = HostTensor({length, pairs});
    sines = HostTensor({length, pairs});
    for (std::int64_t p = 0; p < length; ++p)
        for (std::int64_t k = 0; k < pairs; ++k) {
            const double angle = static_cast<double>(p) * frequencies[static_cast<std::size_t>(k)];
            cosines.data()[p * pairs + k] = static_cast<float>(scheme.attention_factor * std::cos(angle));
            sines.data()[p * pairs + k] = static_cast<float>(scheme.attention_factor * std::sin(angle));
        }
}

std::vector<double> llama3_divisors(const RotaryScheme& scheme, const Llama3Scaling& scaling)
{
    std::vector<double> divisors(static_cast<std::size_t>(scheme.features / 2));
    for (std::size_t k = 0; k < divisors.size(); ++k) {
        const double turns = scaling.trained_length * plain_frequency(scheme.base, k, scheme.features) /
                             (2.0 * std::numbers::pi); // within the trained length
        const double kept =
            std::clamp((turns - scaling.low_factor) / (scaling.high_factor - scaling.low_factor), 0.0, 1.0);
        divisors[k] = 1.0 / ((1.0 - kept) / scaling.factor + kept);
    }
    return divisors;
}

std::vector<double> yarn_divisors(const RotaryScheme& scheme, const YarnScaling& scaling)
{
    const double d = static_cast<double>(scheme.features);
    const auto pair_that_turns = [&](double turns) {
        return d * std::log(scaling.trained_length / (turns * 2.0 * std::numbers::pi)) /
               (2.0 * std::log(scheme.base));
    };
    double low = pair_that_turns(scaling.fast_turns), high = pair_that_turns(scaling.slow_turns);
    if (scaling.rounded_bounds) {
        low = std::floor(low);
        high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, d - 1.0);
    if (low == high) high += 0.001; // as in the released code
    std::vector<double> divisors(static_cast<std::size_t>(scheme.features / 2));
    for (std::size_t k = 0; k < divisors.size(); ++k) {
        const double divided = std::clamp((static_cast<double>(k) - low) / (high - low), 0.0, 1.0);
        divisors[k] = 1.0 / (divided / scaling.factor + 1.0 - divided);
    }
    return divisors;
}

double yarn_attention_factor(double factor, double weight)
{
    return factor <= 1.0 ? 1.0 : 0.1 * weight * std::log(factor) + 1.0;
}

} // namespace posiscope::core
