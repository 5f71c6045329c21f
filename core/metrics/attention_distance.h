// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "core/metrics/quantity.h"

namespace posiscope::core {

/// How far each query looks.
struct AttentionDistance {
    std::vector<double> distance; ///< [length], in positions
    std::vector<double> ratio;    ///< [length], 1: as a uniform row; NaN for a row with one key
};

/// Expected |i - j| of each query of a probability map, its row renormalised over the defined keys, and its ratio to
/// a uniform row over the same keys.
AttentionDistance attention_distance(const PositionMap& probabilities);

/// Mean of the entries that are not NaN; NaN where there are none.
double mean_of_defined(const std::vector<double>& values);

} // namespace posiscope::core
