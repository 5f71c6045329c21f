// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/metrics/quantity.h"

namespace posiscope::core {

/// Extra attention to the first position, as a factor: exp(mean over 1 <= i <= L - 2 of S_i0 - c_i - t_{-i}), with c
/// and t fitted without position 0 (query_constants), so that what decay alone gives the first position counts as 1.
/// S holds the logits, or the logarithms of the probabilities. NaN where there are fewer than 4 positions.
/// Source of the finding: Wang et al., "On Position Embeddings in BERT", ICLR 2021; the formula is this project's.
double first_position_extra(const PositionMap& map, Quantity quantity);

} // namespace posiscope::core
