// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace posiscope::core {

/// Seeded random numbers whose values are the same with every compiler and library: mt19937_64 is fixed by the
/// C++ standard, the distributions are not, so they are written out here.
class Random {
public:
    explicit Random(std::uint64_t seed) : m_engine(seed) {}

    /// Uniform on 0 .. bound - 1; bound > 0. Without bias (rejection).
    std::uint64_t below(std::uint64_t bound);
    /// Uniform on [0, 1), 53 bits.
    double uniform();
    /// Standard normal (Box and Muller 1958).
    double normal();

private:
    std::mt19937_64 m_engine;
    bool m_has_spare = false;
    double m_spare = 0.0;
};

/// `count` different members of `population` in draw order (partial Fisher-Yates shuffle); all of them, shuffled,
/// where count is larger.
std::vector<std::int64_t> sample_without_replacement(std::vector<std::int64_t> population, std::size_t count,
                                                     std::uint64_t seed);

} // namespace posiscope::core
