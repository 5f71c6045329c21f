// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/tensor/matrix_view.h"
#include "core/tensor/shape.h"

namespace posiscope::core {

/// A dense float32 array in memory, row-major: the only numbers that leave core.
class HostTensor {
public:
    HostTensor() = default;
    /// Zeros of the given shape. The caller has checked that the size is sane.
    explicit HostTensor(Shape shape);
    HostTensor(Shape shape, std::vector<float> values);

    [[nodiscard]] const Shape& shape() const { return m_shape; }
    [[nodiscard]] std::size_t size() const { return m_values.size(); }
    [[nodiscard]] bool empty() const { return m_values.empty(); }
    [[nodiscard]] std::int64_t dim(std::size_t axis) const { return m_shape[axis]; }

    [[nodiscard]] std::span<float> values() { return m_values; }
    [[nodiscard]] std::span<const float> values() const { return m_values; }
    float* data() { return m_values.data(); }
    [[nodiscard]] const float* data() const { return m_values.data(); }

    /// The whole of a rank-2 tensor, or one [rows, cols] slice of a tensor of higher rank, counted over the
    /// leading axes in row-major order (head h of [heads, L, L] is matrix(h)).
    [[nodiscard]] MatrixView matrix(std::size_t slice = 0) const;

private:
    Shape m_shape;
    std::vector<float> m_values;
};

} // namespace posiscope::core
