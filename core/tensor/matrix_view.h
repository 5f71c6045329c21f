// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>

namespace posiscope::core {

/// A matrix somebody else owns: row-major, `stride` elements from one row to the next.
template <class T>
struct BasicMatrixView {
    const T* values = nullptr;
    std::size_t rows = 0;
    std::size_t cols = 0;
    std::size_t stride = 0;

    const T& operator()(std::size_t row, std::size_t col) const { return values[row * stride + col]; }
    [[nodiscard]] bool empty() const { return rows == 0 || cols == 0; }
};

using MatrixView = BasicMatrixView<float>;

} // namespace posiscope::core
