// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/projection/point_map.h"

namespace posiscope::core {

/// How near vectors are to each other: p_ij = (p_j|i + p_i|j) / (2 n), p_j|i a Gaussian around vector i whose width
/// gives the wanted perplexity (2 to the power of its entropy in bits). Symmetric, sums to 1.
/// Source: van der Maaten and Hinton 2008, sec. 2; of each vector's neighbours only the 3 * perplexity nearest where
/// there are many vectors (van der Maaten 2014, sec. 4.1).
struct Affinities {
    std::size_t count = 0; ///< n

    /// [n, n], 0 on the diagonal, elsewhere at least 1e-12 (smaller numbers would be denormal products, which are
    /// slow); empty where the lists below are used.
    std::vector<float> dense;

    /// Row i: entries first[i] .. first[i + 1] - 1.
    std::vector<std::size_t> first;
    std::vector<std::uint32_t> neighbours; ///< ascending in each row
    std::vector<float> values;

    /// Of all pairs, for the exact divergence: [n, n] and [n]; empty where there are too many vectors.
    std::vector<float> squared_distances;
    std::vector<double>
        precisions; ///< p_j|i is proportional to exp(-precisions[i] * squared_distances[i, j])
};

/// Up to this many vectors all pairs attract each other; above, the nearest ones.
inline constexpr std::size_t most_dense = 1024;
/// Up to this many vectors the divergence is over all pairs; above, p is 0 but for the nearest ones.
inline constexpr std::size_t most_exact = 4096;

/// @param vectors  checked (check_vectors), at least 4
/// @param perplexity  1 .. (n - 1) / 3
/// @error cancelled, numeric_failure (the vectors are too large for float32)
Result<Affinities> find_affinities(MatrixView vectors, double perplexity, const RunContext& ctx);

/// The Kullback-Leibler divergence of the plane's affinities q from p, in nats: sum over i != j of p_ij log(p_ij / q_ij),
/// q_ij = (1 + |y_i - y_j|^2)^-1 / Z. Over all pairs in double; above most_exact vectors over the pairs in the lists,
/// with the exact Z.
double divergence(const Affinities& affinities, std::span<const double> xs, std::span<const double> ys);

} // namespace posiscope::core
