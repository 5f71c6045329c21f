// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>

namespace posiscope::core {

/// Sums over the points around one point of a map, with the weight w = 1 / (1 + distance^2) of Student's distribution.
struct PointForces {
    float attraction_x = 0.0f; ///< sum over j of p_j w_j (x - x_j)
    float attraction_y = 0.0f;
    float repulsion_x = 0.0f; ///< sum over j of m_j w_j^2 (x - x_j)
    float repulsion_y = 0.0f;
    float weight = 0.0f; ///< sum over j of m_j w_j
};

/// Sums over the neighbours of one row, for the width of its Gaussian.
struct GaussianSums {
    float weight = 0.0f; ///< sum over j of exp(-precision * distance_j)
    float moment = 0.0f; ///< sum over j of distance_j exp(-precision * distance_j)
};

/// Loops over points for t-SNE, in float32; a part of each KernelSet. Every sum is taken in an order that depends on
/// sizes only. Masses m_j are 1 where none are given.
struct PointKernels {
    /// out [n] = squared distances of row [d] to rows [n, d], which lie `stride` apart.
    void (*squared_distances)(const float* row, const float* rows, std::size_t stride, std::size_t n,
                              std::size_t d, float* out);
    /// out [n] = exp(-precision * distances [n]); distances are not negative.
    GaussianSums (*gaussian)(const float* distances, float precision, std::size_t n, float* out);
    /// Both forces on (x, y) from n points, with p [n].
    PointForces (*dense_forces)(float x, float y, const float* p, const float* xs, const float* ys,
                                std::size_t n);
    /// The repulsion and the weight only.
    PointForces (*repulsion)(float x, float y, const float* xs, const float* ys, std::size_t n);
    PointForces (*repulsion_of_masses)(float x, float y, const float* xs, const float* ys,
                                       const float* masses, std::size_t n);
    /// The attraction only, of the points neighbours [n] with p [n].
    PointForces (*sparse_attraction)(float x, float y, const float* p, const std::uint32_t* neighbours,
                                     std::size_t n, const float* xs, const float* ys);
};

} // namespace posiscope::core
