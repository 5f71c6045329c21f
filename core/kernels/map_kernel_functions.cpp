// SPDX-License-Identifier: GPL-3.0-or-later
// Compiled once for each instruction set, as kernel_functions.cpp is. The loops write to as many places as they read,
// so the compiler vectorises them without changing the order of any sum.
#include "core/kernels/map_kernels.h"

#include <cmath>

#include <Eigen/Core>

namespace posiscope::core {
namespace {

void mix_rows(const double* const* rows, const double* weights, std::size_t count, double divisor,
              double* out, std::size_t n)
{
    // As many sums as stay in registers while all rows are gone through.
    constexpr std::size_t width = 16;
    using Sums = Eigen::Array<double, width, 1>;
    std::size_t k = 0;
    for (; k + width <= n; k += width) {
        Sums sums = Sums::Zero();
        for (std::size_t r = 0; r < count; ++r) sums += weights[r] * Eigen::Map<const Sums>(rows[r] + k);
        Eigen::Map<Sums> target(out + k);
        target = sums / divisor;
    }
    for (; k < n; ++k) {
        double sum = 0.0;
        for (std::size_t r = 0; r < count; ++r) sum += weights[r] * rows[r][k];
        out[k] = sum / divisor;
    }
}

void add_to_diagonals(const double* __restrict row, double constant, double* __restrict sum,
                      double* __restrict largest, std::size_t n)
{
    for (std::size_t k = 0; k < n; ++k) {
        const double value = row[k] - constant;
        const double magnitude = std::abs(value);
        sum[k] += value;
        largest[k] = magnitude > largest[k] ? magnitude : largest[k];
    }
}

void add_squares(const double* __restrict row, double constant, const double* __restrict mean,
                 double* __restrict squares, std::size_t n)
{
    for (std::size_t k = 0; k < n; ++k) {
        const double deviation = row[k] - constant - mean[k];
        squares[k] += deviation * deviation;
    }
}

void add_steps(const double* __restrict row, double direction, double least, double* __restrict rise,
               double* __restrict change, double* __restrict rising, double* __restrict steps, std::size_t n)
{
    for (std::size_t k = 0; k < n; ++k) {
        const double step = direction * (row[k + 1] - row[k]);
        const double magnitude = std::abs(step);
        rise[k] += step > 0.0 ? step : 0.0;
        change[k] += magnitude;
        rising[k] += step > least ? 1.0 : 0.0;
        steps[k] += magnitude > least ? 1.0 : 0.0;
    }
}

void logarithms(const double* values, double* out, std::size_t n)
{
    // Always in vectors of one width, the last one filled up: Eigen's logarithm of a single number may differ in the
    // last bit, and which numbers of an array it takes singly depends on where the array lies in memory.
    constexpr std::size_t width = 8;
    using Values = Eigen::Array<double, width, 1>;
    std::size_t k = 0;
    for (; k + width <= n; k += width) {
        const Values logs = Eigen::Map<const Values>(values + k).log();
        Eigen::Map<Values> target(out + k);
        target = logs;
    }
    if (k == n) return;
    Values rest = Values::Ones();
    for (std::size_t r = 0; k + r < n; ++r) rest(static_cast<Eigen::Index>(r)) = values[k + r];
    rest = rest.log().eval();
    for (std::size_t r = 0; k + r < n; ++r) out[k + r] = rest(static_cast<Eigen::Index>(r));
}

void add_weighted(const double* __restrict row, double weight, const double* __restrict weights,
                  double* __restrict sums, std::size_t n)
{
    for (std::size_t k = 0; k < n; ++k) sums[k] += (weight + weights[k]) * row[k];
}

} // namespace

#define POSISCOPE_JOIN_OF(a, b) a##b
#define POSISCOPE_JOIN(a, b) POSISCOPE_JOIN_OF(a, b)

extern const MapKernels POSISCOPE_JOIN(map_kernels_, POSISCOPE_KERNEL_SET);
const MapKernels POSISCOPE_JOIN(map_kernels_, POSISCOPE_KERNEL_SET){
    mix_rows, add_to_diagonals, add_squares, add_steps, logarithms, add_weighted,
};

} // namespace posiscope::core
