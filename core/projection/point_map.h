// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/tensor/matrix_view.h"

namespace posiscope::core {

/// Vectors as points of the plane, in the order of the vectors.
struct PointMap2D {
    std::vector<double> x, y;

    [[nodiscard]] std::size_t size() const { return x.size(); }
};

/// Whether vectors can be laid out in the plane: at least `least` of them, all finite, not all equal.
/// @param where  names the function for people
/// @error invalid_argument (too few; all equal), numeric_failure (names the first row that is not finite)
Result<void> check_vectors(MatrixView vectors, std::size_t least, std::string_view where);

/// For each point the `count` points nearest to it in the plane, nearest first; of equally near ones the lower index.
std::vector<std::vector<std::size_t>> nearest_points(const PointMap2D& map, std::size_t count);

/// How well the neighbours in the plane are neighbours among the vectors, 1 at best.
///     1 - 2 / (n k (2n - 3k - 1)) sum over i, over the points j among the k nearest of i in the plane only, of (r(i, j) - k),
/// r the rank of j among the vectors nearest to i.
/// Source: Venna and Kaski 2001; as in scikit-learn's trustworthiness. 2 k < n.
double trustworthiness(MatrixView vectors, const PointMap2D& map, std::size_t neighbours);

} // namespace posiscope::core
