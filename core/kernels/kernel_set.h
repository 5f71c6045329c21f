// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "core/kernels/map_kernels.h"
#include "core/kernels/point_kernels.h"

namespace posiscope::core {

/// What the softmax of one word and one head needs, so that no [words, L, L] array is ever stored. With the row
/// classes of the closed form (core/probe/first_layer.h), the logits of row i are, for every key j,
///     alpha[i] * word_key[j] + word_query[i] * alpha[j] + beta[j] * (beta[i] * position_position[i, j] + constant_position[class_of_row[i], j])
///     + beta[i] * position_constant[i, j] + additive[i, j]
struct WordSoftmax {
    std::size_t length = 0;
    const float* alpha = nullptr;              ///< [L]
    const float* beta = nullptr;               ///< [L]
    const float* word_key = nullptr;           ///< [L]
    const float* word_query = nullptr;         ///< [L]
    const float* position_position = nullptr;  ///< [L, L]
    const float* constant_position = nullptr;  ///< [classes, L]
    const std::size_t* class_of_row = nullptr; ///< [L]
    const float* position_constant =
        nullptr;                     ///< [L, L], or null where constant in every row (softmax drops it)
    const float* additive = nullptr; ///< [L, L], or null; needed with position_constant
    std::size_t keys_before = static_cast<std::size_t>(-1); ///< how far behind a query its keys reach
    std::size_t keys_after = static_cast<std::size_t>(-1);  ///< how far ahead; 0: causal
    float* scratch = nullptr;                               ///< [L]
};

/// The numeric kernels of core: one source compiled for several instruction sets. All matrices are row-major with
/// a stride between rows; every function runs on the calling thread, in an order that depends on sizes only.
struct KernelSet {
    std::string_view name; ///< "x86-64-v3", for About and provenance

    /// c [m, n] = a [m, k] * b [n, k] transposed.
    void (*multiply_nt)(std::size_t m, std::size_t n, std::size_t k, const float* a, std::size_t a_stride,
                        const float* b, std::size_t b_stride, float* c, std::size_t c_stride);
    /// c [m, n] += a [m, k] * b [n, k] transposed.
    void (*add_multiply_nt)(std::size_t m, std::size_t n, std::size_t k, const float* a, std::size_t a_stride,
                            const float* b, std::size_t b_stride, float* c, std::size_t c_stride);
    /// c [m, n] = a [m, k] * b [k, n].
    void (*multiply_nn)(std::size_t m, std::size_t n, std::size_t k, const float* a, std::size_t a_stride,
                        const float* b, std::size_t b_stride, float* c, std::size_t c_stride);
    /// c [m, n] = a [k, m] transposed * b [k, n].
    void (*multiply_tn)(std::size_t m, std::size_t n, std::size_t k, const float* a, std::size_t a_stride,
                        const float* b, std::size_t b_stride, float* c, std::size_t c_stride);
    /// sum [L, L] += softmax over keys of one word's logits; keys outside the reach of a query get nothing.
    void (*add_word_softmax)(const WordSoftmax& word, float* sum);
    /// sum [keys] += softmax of logits [keys], which are overwritten.
    void (*add_row_softmax)(float* logits, std::size_t keys, float* sum);
    /// out [n] += values [n], out in double.
    void (*add_to_double)(const float* values, double* out, std::size_t n);

    const MapKernels* maps;     ///< never null
    const PointKernels* points; ///< never null
};

/// The kernels for this processor, chosen once; POSISCOPE_KERNELS=x86-64-v2 and so on asks for others.
const KernelSet& kernels();

/// Every kernel set that this processor can run, best first.
std::span<const KernelSet* const> available_kernels();

} // namespace posiscope::core
