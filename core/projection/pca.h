// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <vector>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/projection/point_map.h"

namespace posiscope::core {

/// Vectors seen along their two directions of largest variance.
struct PcaMap {
    PointMap2D points;                             ///< in the unit of the vectors, centred at the mean vector
    std::array<double, 2> variance_share{};        ///< of the total variance, 0 .. 1
    std::vector<double> mean;                      ///< vector at the origin of the map
    std::array<std::vector<double>, 2> directions; ///< of its axes, of length 1; empty with a single feature
    double seconds = 0.0;
};

/// The first two principal components, by subspace iteration from fixed starting vectors. Of the two signs of each
/// axis that one is taken which makes its largest loading positive. The same bits on any number of threads.
/// Source: Pearson 1901; Halko, Martinsson and Tropp 2011, sec. 4.5 (subspace iteration).
/// @param vectors  at least 2, finite, not all equal
/// @error invalid_argument, numeric_failure, cancelled
Result<PcaMap> pca(MatrixView vectors, const RunContext& ctx);

} // namespace posiscope::core
