// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>

namespace posiscope::core {

/// Loops over rows of position maps, in double; a part of each KernelSet. No two arguments may overlap. Every place
/// of an output is summed in an order that depends on sizes only.
struct MapKernels {
    /// out [n] = (sum over r < count of weights[r] * rows[r][n]) / divisor
    void (*mix_rows)(const double* const* rows, const double* weights, std::size_t count, double divisor,
                     double* out, std::size_t n);
    /// sum [n] += row - constant; largest [n] = max(largest, |row - constant|)
    void (*add_to_diagonals)(const double* row, double constant, double* sum, double* largest, std::size_t n);
    /// squares [n] += (row - constant - mean)^2
    void (*add_squares)(const double* row, double constant, const double* mean, double* squares,
                        std::size_t n);
    /// For the n steps s between neighbours of row [n + 1], row[j + 1] - row[j] times `direction` (1 or -1):
    /// rise [n] += max(s, 0), change [n] += |s|, rising [n] += 1 where s > least, steps [n] += 1 where |s| > least
    void (*add_steps)(const double* row, double direction, double least, double* rise, double* change,
                      double* rising, double* steps, std::size_t n);
    /// out [n] = natural logarithm of values [n]; 0 gives minus infinity, negative numbers NaN
    void (*logarithms)(const double* values, double* out, std::size_t n);
    /// sums [n] += (weight + weights[n]) * row [n]
    void (*add_weighted)(const double* row, double weight, const double* weights, double* sums,
                         std::size_t n);
};

} // namespace posiscope::core
