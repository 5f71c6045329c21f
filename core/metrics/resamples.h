// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace posiscope::core {

/// Bootstrap resamples of groups of words: each draws as many groups as there are, with replacement.
struct Resamples {
    std::size_t groups = 0;
    std::size_t count = 0;
    std::vector<double> weights; ///< [count, groups]: words that a group contributes, whole numbers
    std::vector<double> totals;  ///< [count]: sum of the weights

    [[nodiscard]] std::span<const double> weights_of(std::size_t resample) const
    {
        return std::span(weights).subspan(resample * groups, groups);
    }
};

/// The same seed and number of groups give the same draws, whatever is measured on them: differences between heads,
/// quantities and models are paired. Each of the groups' maps counts with its words.
Resamples draw_resamples(std::span<const std::size_t> word_counts, std::size_t count, std::uint64_t seed);

/// Standard deviation (n - 1) of the values that are finite; NaN where there are fewer than two.
double standard_error_of(std::span<const double> resampled_values);

} // namespace posiscope::core
