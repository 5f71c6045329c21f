// SPDX-License-Identifier: GPL-3.0-or-later
// Compiled once for each instruction set (core/CMakeLists.txt), with POSISCOPE_KERNEL_SET naming it and `Eigen`
// renamed, so that the linker cannot take an inline function of one set for that of another.
#include "core/kernels/kernel_set.h"

#include <limits>

#include <Eigen/Core>

#include "core/kernels/vector_math.h"

namespace posiscope::core {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstMatrixMap = Eigen::Map<const Matrix, Eigen::Unaligned, Eigen::OuterStride<>>;
using MatrixMap = Eigen::Map<Matrix, Eigen::Unaligned, Eigen::OuterStride<>>;

Eigen::Index index(std::size_t n)
{
    return static_cast<Eigen::Index>(n);
}

ConstMatrixMap view(const float* values, std::size_t rows, std::size_t cols, std::size_t stride)
{
    return {values, index(rows), index(cols), Eigen::OuterStride<>(index(stride))};
}

MatrixMap view(float* values, std::size_t rows, std::size_t cols, std::size_t stride)
{
    return {values, index(rows), index(cols), Eigen::OuterStride<>(index(stride))};
}

void multiply_nt(std::size_t m, std::size_t n, std::size_t k, const float* a, std::size_t a_stride,
                 const float* b, std::size_t b_stride, float* c, std::size_t c_stride)
{
    view(c, m, n, c_stride).noalias() = view(a, m, k, a_stride) * view(b, n, k, b_stride).transpose();
}

void add_multiply_nt(std::size_t m, std::size_t n, std::size_t k, const float* a, std::size_t a_stride,
                     const float* b, std::size_t b_stride, float* c, std::size_t c_stride)
{
    view(c, m, n, c_stride).noalias() += view(a, m, k, a_stride) * view(b, n, k, b_stride).transpose();
}

void multiply_nn(std::size_t m, std::size_t n, std::size_t k, const float* a, std::size_t a_stride,
                 const float* b, std::size_t b_stride, float* c, std::size_t c_stride)
{
    view(c, m, n, c_stride).noalias() = view(a, m, k, a_stride) * view(b, k, n, b_stride);
}

void multiply_tn(std::size_t m, std::size_t n, std::size_t k, const float* a, std::size_t a_stride,
                 const float* b, std::size_t b_stride, float* c, std::size_t c_stride)
{
    view(c, m, n, c_stride).noalias() = view(a, k, m, a_stride).transpose() * view(b, k, n, b_stride);
}

/// sum [keys] += softmax of logits [keys], which are overwritten.
inline void add_softmax(float* __restrict logits, float largest, std::size_t keys, float* __restrict sum)
{
    float total = 0.0f;
    for (std::size_t j = 0; j < keys; ++j) {
        const float power = exp_of_negative(logits[j] - largest);
        logits[j] = power;
        total += power;
    }
    const float share = 1.0f / total;
    for (std::size_t j = 0; j < keys; ++j) sum[j] += logits[j] * share;
}

void add_row_softmax(float* logits, std::size_t keys, float* sum)
{
    float largest = logits[0];
    for (std::size_t j = 1; j < keys; ++j) largest = logits[j] > largest ? logits[j] : largest;
    add_softmax(logits, largest, keys, sum);
}

void add_word_softmax(const WordSoftmax& word, float* sum)
{
    const std::size_t L = word.length;
    float* __restrict logits = word.scratch;
    for (std::size_t i = 0; i < L; ++i) {
        const std::size_t first = i > word.keys_before ? i - word.keys_before : 0;
        const std::size_t end = word.keys_after < L - 1 - i ? i + word.keys_after + 1 : L;
        const std::size_t keys = end - first;
        const float* alpha = word.alpha + first;
        const float* beta = word.beta + first;
        const float* word_key = word.word_key + first;
        const float* position_position = word.position_position + i * L + first;
        const float* constant_position = word.constant_position + word.class_of_row[i] * L + first;
        const float row_alpha = word.alpha[i], row_beta = word.beta[i], row_word = word.word_query[i];
        float largest = -std::numeric_limits<float>::max();
        const auto keep = [&](std::size_t j, float logit) {
            logits[j] = logit;
            largest = logit > largest ? logit : largest;
        };
        const auto base = [&](std::size_t j) {
            return row_alpha * word_key[j] + row_word * alpha[j] +
                   beta[j] * (row_beta * position_position[j] + constant_position[j]);
        };
        if (word.position_constant != nullptr) {
            const float* position_constant = word.position_constant + i * L + first;
            const float* additive = word.additive + i * L + first;
            for (std::size_t j = 0; j < keys; ++j)
                keep(j, base(j) + row_beta * position_constant[j] + additive[j]);
        } else if (word.additive != nullptr) {
            const float* additive = word.additive + i * L + first;
            for (std::size_t j = 0; j < keys; ++j) keep(j, base(j) + additive[j]);
        } else {
            for (std::size_t j = 0; j < keys; ++j) keep(j, base(j));
        }
        add_softmax(logits, largest, keys, sum + i * L + first);
    }
}

void add_to_double(const float* values, double* out, std::size_t n)
{
    for (std::size_t k = 0; k < n; ++k) out[k] += static_cast<double>(values[k]);
}

} // namespace

#define POSISCOPE_JOIN_OF(a, b) a##b
#define POSISCOPE_JOIN(a, b) POSISCOPE_JOIN_OF(a, b)

extern const MapKernels POSISCOPE_JOIN(map_kernels_, POSISCOPE_KERNEL_SET);     // map_kernel_functions.cpp
extern const PointKernels POSISCOPE_JOIN(point_kernels_, POSISCOPE_KERNEL_SET); // point_kernel_functions.cpp
extern const KernelSet POSISCOPE_JOIN(kernel_set_, POSISCOPE_KERNEL_SET);
const KernelSet POSISCOPE_JOIN(kernel_set_, POSISCOPE_KERNEL_SET){
    POSISCOPE_KERNEL_NAME,
    multiply_nt,
    add_multiply_nt,
    multiply_nn,
    multiply_tn,
    add_word_softmax,
    add_row_softmax,
    add_to_double,
    &POSISCOPE_JOIN(map_kernels_, POSISCOPE_KERNEL_SET),
    &POSISCOPE_JOIN(point_kernels_, POSISCOPE_KERNEL_SET),
};

} // namespace posiscope::core
