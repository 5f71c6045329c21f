// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

namespace posiscope::core {

std::uint64_t Random::below(std::uint64_t bound)
{
    constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();
    const std::uint64_t limit = largest - largest % bound;
    std::uint64_t drawn = m_engine();
    while (drawn >= limit) drawn = m_engine();
    return drawn % bound;
}

double Random::uniform()
{
    return static_cast<double>(m_engine() >> 11u) * 0x1.0p-53;
}

double Random::normal()
{
    if (m_has_spare) {
        m_has_spare = false;
        return m_spare;
    }
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    const double angle = 2.0 * std::numbers::pi * uniform();
    m_spare = radius * std::sin(angle);
    m_has_spare = true;
    return radius * std::cos(angle);
}

std::vector<std::int64_t> sample_without_replacement(std::vector<std::int64_t> population, std::size_t count,
                                                     std::uint64_t seed)
{
    Random random(seed);
    count = std::min(count, population.size());
    for (std::size_t n = 0; n < count; ++n) {
        const std::size_t other = n + static_cast<std::size_t>(random.below(population.size() - n));
        std::swap(population[n], population[other]);
    }
    population.resize(count);
    return population;
}

} // namespace posiscope::core
