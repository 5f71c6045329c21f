// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>

#include "core/metrics/monotonicity.h"
#include "core/metrics/quantity.h"

namespace posiscope::core {

/// Preference for preceding over following keys, over mirrored pairs with 0 < |i - j| <= within; positive: attends
/// more to what precedes. In [-1, 1].
///     probabilities: (mass on preceding - mass on following) / their sum
///     otherwise:     (mean preceding - mean following) / (2 * standard deviation of those same entries),
///                    0 where that deviation is at most flat_tolerance * max|map|
/// NaN for a flat map and for a causal one.
/// Source of the property: Wang et al., "On Position Embeddings in BERT", ICLR 2021; the formula is this project's.
double direction_balance(const PositionMap& map, Quantity quantity, std::size_t within = all_offsets);

} // namespace posiscope::core
