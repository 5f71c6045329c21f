// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <optional>

#include "core/metrics/flatness.h"
#include "core/metrics/grid.h"
#include "core/metrics/quantity.h"

namespace posiscope::core {

/// Every offset of a map counts, not only the near ones.
inline constexpr std::size_t all_offsets = static_cast<std::size_t>(-1);

/// Share of the variation away from the query that goes up instead of down: r being the changes of the map when the
/// key moves one position away from the query, up to `within` offsets in both directions,
///     sum max(r, 0) / sum |r|
/// 0: strictly decreasing; 1/2: no trend; 1: strictly increasing. NaN for a flat map.
/// Source of the property: Wang et al., "On Position Embeddings in BERT", ICLR 2021; the formula is this project's.
double monotonicity_violation(const PositionMap& map, std::size_t within = local_offsets);

/// Share of those steps that go up, each counted once; steps of at most flat_tolerance * max|map| are left out.
/// 0 where none is larger, NaN for a flat map.
double monotonicity_violation_steps(const PositionMap& map, std::size_t within = local_offsets);

/// Share of the variation that goes up when the key moves one patch away from the query along its row or column of
/// the grid. NaN for a flat map and where an entry is undefined.
/// @param map over grid.rows * grid.cols positions, else NaN
double monotonicity_violation_2d(const PositionMap& map, Grid grid, std::size_t within = all_offsets);

} // namespace posiscope::core
