// SPDX-License-Identifier: GPL-3.0-or-later
// Compiled once for each instruction set (core/CMakeLists.txt), with POSISCOPE_KERNEL_SET naming it and `Eigen`
// renamed, so that the linker cannot take an inline function of one set for that of another.
#include "core/kernels/kernel_set.h"

#include <Eigen/Core>

namespace posiscope::core {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstMatrixMap = Eigen::Map<const Matrix, Eigen::Unaligned, Eigen::OuterStride<>>;
using MatrixMap = Eigen::Map<Matrix, Eigen::Unaligned, Eigen::OuterStride<>>;
using ConstRow = Eigen::Map<const Eigen::Array<float, 1, Eigen::Dynamic>>;
using Row = Eigen::Map<Eigen::Array<float, 1, Eigen::Dynamic>>;

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

void multiply_tn(std::size_t m, std::size_t n, std::size_t k, const float* a, std::size_t a_stride,
                 const float* b, std::size_t b_stride, float* c, std::size_t c_stride)
{
    view(c, m, n, c_stride).noalias() = view(a, k, m, a_stride).transpose() * view(b, k, n, b_stride);
}

void add_word_softmax(const WordSoftmax& word, float* sum)
{
    for (std::size_t i = 0; i < word.length; ++i) {
        const Eigen::Index keys = index(word.causal ? i + 1 : word.length);
        const auto row_of = [&](const float* matrix) { return ConstRow(matrix + i * word.length, keys); };
        const ConstRow alpha(word.alpha, keys);
        const ConstRow beta(word.beta, keys);
        const ConstRow word_key(word.word_key, keys);
        const ConstRow constant_position(word.constant_position + word.class_of_row[i] * word.length, keys);
        Row logits(word.scratch, keys);
        logits = word.alpha[i] * word_key + word.word_query[i] * alpha +
                 beta * (word.beta[i] * row_of(word.position_position) + constant_position);
        if (word.position_constant != nullptr) logits += word.beta[i] * row_of(word.position_constant);
        if (word.additive != nullptr) logits += row_of(word.additive);
        logits = (logits - logits.maxCoeff()).exp();
        Row(sum + i * word.length, keys) += logits * (1.0f / logits.sum());
    }
}

void add_to_double(const float* values, double* out, std::size_t n)
{
    for (std::size_t k = 0; k < n; ++k) out[k] += static_cast<double>(values[k]);
}

} // namespace

#define POSISCOPE_JOIN_OF(a, b) a##b
#define POSISCOPE_JOIN(a, b) POSISCOPE_JOIN_OF(a, b)

extern const MapKernels POSISCOPE_JOIN(map_kernels_, POSISCOPE_KERNEL_SET); // map_kernel_functions.cpp
extern const KernelSet POSISCOPE_JOIN(kernel_set_, POSISCOPE_KERNEL_SET);
const KernelSet POSISCOPE_JOIN(kernel_set_, POSISCOPE_KERNEL_SET){
    POSISCOPE_KERNEL_NAME, multiply_nt,   multiply_tn,
    add_word_softmax,      add_to_double, &POSISCOPE_JOIN(map_kernels_, POSISCOPE_KERNEL_SET),
};

} // namespace posiscope::core
