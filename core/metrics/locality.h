// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/metrics/quantity.h"

namespace posiscope::core {

/// Mean over rows of sum_j P_ij / 2^|i-j|: 1 where every query attends to itself alone.
/// Source: Chen, Varoquaux & Suchanek, "The Locality and Symmetry of Positional Encodings", EMNLP Findings 2023.
double locality(const PositionMap& probabilities);

/// 1 - mean over rows and mirrored pairs of |left - right|, min-max scaled within the row. A row whose differences
/// are all equal contributes zeros; rows without both neighbours are skipped. NaN where nothing is left and where an
/// entry is undefined.
/// Source: as locality.
double locality_symmetry(const PositionMap& probabilities);

/// 0 for NaN, the largest number for an infinity, else the value itself.
double number_or_zero(double value);

} // namespace posiscope::core
