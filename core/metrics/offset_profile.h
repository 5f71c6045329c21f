// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <vector>

#include "core/metrics/quantity.h"

namespace posiscope::core {

/// Mean and spread of each diagonal of a map. Offset k = j - i, negative: the key precedes the query. All vectors
/// have 2 * length - 1 entries, from offset -(length - 1) on.
struct OffsetProfile {
    std::vector<int> offsets;
    std::vector<double> mean;               ///< of the defined entries; NaN where there are none
    std::vector<double> standard_deviation; ///< population (divided by n); NaN where there are none
    std::vector<std::size_t> count;         ///< defined entries

    /// Index of offset 0; only where the profile is not empty.
    [[nodiscard]] std::size_t centre() const { return offsets.size() / 2; }
};

OffsetProfile offset_profile(const PositionMap& map);

/// An offset profile with what the choice of words adds to its uncertainty.
struct OffsetProfileOverWords {
    OffsetProfile profile;
    /// Standard error of each offset's mean over words, from the spread between the groups of words; NaN where
    /// there are fewer than two groups.
    ///     sqrt(G / (G - 1) * sum_g w_g^2 (m_g - m)^2), w_g the group's share of the words, m = sum_g w_g m_g
    std::vector<double> standard_error;
};

/// The profile of one quantity of one head (or mean_of_heads) of a probe. Empty where the probe lacks the quantity.
OffsetProfileOverWords offset_profile_over_words(const ProbeResult& probe, Quantity quantity, int head,
                                                 PositionChoice positions);

} // namespace posiscope::core
