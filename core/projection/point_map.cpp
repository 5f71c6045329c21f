// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/projection/point_map.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "core/base/text.h"
#include "core/kernels/kernel_set.h"
#include "core/kernels/thread_pool.h"

namespace posiscope::core {

Result<void> check_vectors(MatrixView vectors, std::size_t least, std::string_view where)
{
    const std::string place(where);
    if (vectors.rows < least)
        return Error{ErrorCode::invalid_argument,
                     "there " + std::string(vectors.rows == 1 ? "is " : "are ") +
                         counted(vectors.rows, "vector", "vectors") + "; a map by " + place +
                         " needs at least " + std::to_string(least),
                     place};
    if (vectors.cols == 0) return Error{ErrorCode::invalid_argument, "the vectors have no features", place};
    bool all_equal = true;
    for (std::size_t i = 0; i < vectors.rows; ++i)
        for (std::size_t f = 0; f < vectors.cols; ++f) {
            if (!std::isfinite(vectors(i, f)))
                return Error{ErrorCode::numeric_failure,
                             "row " + std::to_string(i) +
                                 " of the vectors holds a value that is not finite (NaN or infinite)",
                             place};
            all_equal = all_equal && vectors(i, f) == vectors(0, f);
        }
    if (all_equal)
        return Error{ErrorCode::invalid_argument,
                     "all " + std::to_string(vectors.rows) + " vectors are equal: there is nothing to map",
                     place};
    return {};
}

std::vector<std::vector<std::size_t>> nearest_points(const PointMap2D& map, std::size_t count)
{
    const std::size_t n = map.size();
    const std::size_t kept = std::min(count, n == 0 ? 0 : n - 1);
    std::vector<std::vector<std::size_t>> nearest(n);
    std::vector<double> distances(n);
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) {
            const double dx = map.x[i] - map.x[j], dy = map.y[i] - map.y[j];
            distances[j] = dx * dx + dy * dy;
        }
        order.clear();
        for (std::size_t j = 0; j < n; ++j)
            if (j != i) order.push_back(j);
        std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
                          [&](std::size_t a, std::size_t b) {
                              return distances[a] != distances[b] ? distances[a] < distances[b] : a < b;
                          });
        nearest[i].assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept));
    }
    return nearest;
}

double trustworthiness(MatrixView vectors, const PointMap2D& map, std::size_t neighbours)
{
    const std::size_t n = vectors.rows;
    const auto in_plane = nearest_points(map, neighbours);
    std::vector<double> excess(n, 0.0);
    parallel_blocks(n, [&](std::size_t i) {
        std::vector<float> distances(n);
        kernels().points->squared_distances(vectors.values + i * vectors.stride, vectors.values,
                                            vectors.stride, n, vectors.cols, distances.data());
        std::vector<std::size_t> order;
        for (std::size_t j = 0; j < n; ++j)
            if (j != i) order.push_back(j);
        std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return distances[a] != distances[b] ? distances[a] < distances[b] : a < b;
        });
        std::vector<std::size_t> rank(n, 0);
        for (std::size_t r = 0; r < order.size(); ++r) rank[order[r]] = r + 1;
        for (const std::size_t j : in_plane[i])
            if (rank[j] > neighbours) excess[i] += static_cast<double>(rank[j] - neighbours);
    });
    const double count = static_cast<double>(n), k = static_cast<double>(neighbours);
    return 1.0 - 2.0 / (count * k * (2.0 * count - 3.0 * k - 1.0)) *
                     std::accumulate(excess.begin(), excess.end(), 0.0);
}

} // namespace posiscope::core
