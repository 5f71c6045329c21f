// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "core/metrics/map_summary.h"
#include "core/metrics/quantity.h"

namespace posiscope::core {

/// Extra attention to the first position, as a factor: exp(mean over 1 <= i <= L - 2 of S_i0 - c_i - t_{-i}), with c
/// and t fitted without position 0 (query_constants), so that what decay alone gives the first position counts as 1.
/// S holds the logits, or the logarithms of the probabilities. NaN where there are fewer than 4 positions.
/// Source of the finding: Wang et al., "On Position Embeddings in BERT", ICLR 2021; the formula is this project's.
double first_position_extra(const PositionMap& map, Quantity quantity);

/// Its logarithm: linear in the logits.
double first_position_log_extra(const PositionMap& map, Quantity quantity);

/// The same as sums with fixed weights, for many maps of one size and pattern whose entries are all finite: the mean
/// of S_i0 over 1 <= i <= L - 2, plus sum_i row[i] * (sum of row i) + sum_k offset[k] * (sum of diagonal k), both over
/// the L - 1 positions without the first.
struct FirstPositionWeights {
    std::vector<double> row;    ///< [length - 1]
    std::vector<double> offset; ///< [2 * length - 3]
};

/// @param length  at least 4
FirstPositionWeights first_position_weights(std::size_t length, MapPattern pattern);

} // namespace posiscope::core
