// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tensor/host_tensor.h"

#include <cassert>
#include <utility>

namespace posiscope::core {

HostTensor::HostTensor(Shape shape) : m_shape(std::move(shape))
{
    const auto count = element_count(m_shape);
    assert(count);
    m_values.resize(static_cast<std::size_t>(count.value_or(0)));
}

HostTensor::HostTensor(Shape shape, std::vector<float> values)
    : m_shape(std::move(shape)), m_values(std::move(values))
{
    assert(element_count(m_shape) == m_values.size());
}

MatrixView HostTensor::matrix(std::size_t slice) const
{
    assert(m_shape.size() >= 2);
    const auto rows = static_cast<std::size_t>(m_shape[m_shape.size() - 2]);
    const auto cols = static_cast<std::size_t>(m_shape.back());
    assert((slice + 1) * rows * cols <= m_values.size());
    return {m_values.data() + slice * rows * cols, rows, cols, cols};
}

} // namespace posiscope::core
