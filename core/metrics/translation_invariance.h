// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/metrics/grid.h"
#include "core/metrics/quantity.h"

namespace posiscope::core {

/// Share of the map's variance that its diagonals do not explain: 1 - R^2 of the nearest Toeplitz matrix. 0: the map
/// depends on the offset alone; noise gives about 1 - 2 / (L + 1). NaN for a flat map.
/// Source of the property: Wang et al., "On Position Embeddings in BERT", ICLR 2021; the formula is this project's.
double translation_invariance_violation(const PositionMap& map);

/// The same with the two-dimensional offset (dy, dx) of a grid of patches. NaN for a flat map and where an entry is
/// undefined. @param map over grid.rows * grid.cols positions, else NaN
double translation_invariance_violation_2d(const PositionMap& map, Grid grid);

} // namespace posiscope::core
