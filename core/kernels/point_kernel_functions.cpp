// SPDX-License-Identifier: GPL-3.0-or-later
// Compiled once for each instruction set, as kernel_functions.cpp is, and with its liberty to sum over the lanes of
// vectors.
#include "core/kernels/point_kernels.h"

#include "core/kernels/vector_math.h"

namespace posiscope::core {
namespace {

void squared_distances(const float* row, const float* rows, std::size_t stride, std::size_t n, std::size_t d,
                       float* out)
{
    // Four rows at a time: each part of `row` is loaded once for four.
    std::size_t j = 0;
    for (; j + 4 <= n; j += 4) {
        const float* a = rows + j * stride;
        const float* b = a + stride;
        const float* c = b + stride;
        const float* e = c + stride;
        float sum_a = 0.0f, sum_b = 0.0f, sum_c = 0.0f, sum_e = 0.0f;
        for (std::size_t f = 0; f < d; ++f) {
            const float value = row[f];
            sum_a += (value - a[f]) * (value - a[f]);
            sum_b += (value - b[f]) * (value - b[f]);
            sum_c += (value - c[f]) * (value - c[f]);
            sum_e += (value - e[f]) * (value - e[f]);
        }
        out[j] = sum_a;
        out[j + 1] = sum_b;
        out[j + 2] = sum_c;
        out[j + 3] = sum_e;
    }
    for (; j < n; ++j) {
        const float* a = rows + j * stride;
        float sum = 0.0f;
        for (std::size_t f = 0; f < d; ++f) sum += (row[f] - a[f]) * (row[f] - a[f]);
        out[j] = sum;
    }
}

GaussianSums gaussian(const float* __restrict distances, float precision, std::size_t n,
                      float* __restrict out)
{
    float weight = 0.0f, moment = 0.0f;
    for (std::size_t j = 0; j < n; ++j) {
        const float power = exp_of_negative(-precision * distances[j]);
        out[j] = power;
        weight += power;
        moment += power * distances[j];
    }
    return {weight, moment};
}

PointForces dense_forces(float x, float y, const float* p, const float* xs, const float* ys, std::size_t n)
{
    float attraction_x = 0.0f, attraction_y = 0.0f, repulsion_x = 0.0f, repulsion_y = 0.0f, weight = 0.0f;
    for (std::size_t j = 0; j < n; ++j) {
        const float dx = x - xs[j], dy = y - ys[j];
        const float w = 1.0f / (1.0f + dx * dx + dy * dy);
        const float pull = p[j] * w, push = w * w;
        attraction_x += pull * dx;
        attraction_y += pull * dy;
        repulsion_x += push * dx;
        repulsion_y += push * dy;
        weight += w;
    }
    return {attraction_x, attraction_y, repulsion_x, repulsion_y, weight};
}

PointForces repulsion(float x, float y, const float* xs, const float* ys, std::size_t n)
{
    float repulsion_x = 0.0f, repulsion_y = 0.0f, weight = 0.0f;
    for (std::size_t j = 0; j < n; ++j) {
        const float dx = x - xs[j], dy = y - ys[j];
        const float w = 1.0f / (1.0f + dx * dx + dy * dy);
        repulsion_x += w * w * dx;
        repulsion_y += w * w * dy;
        weight += w;
    }
    return {0.0f, 0.0f, repulsion_x, repulsion_y, weight};
}

PointForces repulsion_of_masses(float x, float y, const float* xs, const float* ys, const float* masses,
                                std::size_t n)
{
    float repulsion_x = 0.0f, repulsion_y = 0.0f, weight = 0.0f;
    for (std::size_t j = 0; j < n; ++j) {
        const float dx = x - xs[j], dy = y - ys[j];
        const float w = 1.0f / (1.0f + dx * dx + dy * dy);
        const float mass = masses[j] * w;
        repulsion_x += mass * w * dx;
        repulsion_y += mass * w * dy;
        weight += mass;
    }
    return {0.0f, 0.0f, repulsion_x, repulsion_y, weight};
}

PointForces sparse_attraction(float x, float y, const float* p, const std::uint32_t* neighbours,
                              std::size_t n, const float* xs, const float* ys)
{
    float attraction_x = 0.0f, attraction_y = 0.0f;
    for (std::size_t k = 0; k < n; ++k) {
        const std::size_t j = neighbours[k];
        const float dx = x - xs[j], dy = y - ys[j];
        const float pull = p[k] / (1.0f + dx * dx + dy * dy);
        attraction_x += pull * dx;
        attraction_y += pull * dy;
    }
    return {attraction_x, attraction_y, 0.0f, 0.0f, 0.0f};
}

} // namespace

#define POSISCOPE_JOIN_OF(a, b) a##b
#define POSISCOPE_JOIN(a, b) POSISCOPE_JOIN_OF(a, b)

extern const PointKernels POSISCOPE_JOIN(point_kernels_, POSISCOPE_KERNEL_SET);
const PointKernels POSISCOPE_JOIN(point_kernels_, POSISCOPE_KERNEL_SET){
    squared_distances, gaussian, dense_forces, repulsion, repulsion_of_masses, sparse_attraction,
};

} // namespace posiscope::core
