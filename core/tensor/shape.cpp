// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tensor/shape.h"

#include "core/base/checked_math.h"

namespace posiscope::core {

std::optional<std::uint64_t> element_count(std::span<const std::int64_t> shape)
{
    std::uint64_t count = 1;
    for (const std::int64_t size : shape) {
        if (size < 0) return std::nullopt;
        // A zero anywhere does not excuse an overflow before it: the claim is still absurd.
        const auto product = checked_multiply(count == 0 ? 1 : count, static_cast<std::uint64_t>(size));
        if (!product) return std::nullopt;
        count = count == 0 ? 0 : *product;
    }
    return count;
}

std::string shape_text(std::span<const std::int64_t> shape)
{
    std::string text = "[";
    for (std::size_t axis = 0; axis < shape.size() && axis < 8; ++axis)
        text += (axis ? ", " : "") + std::to_string(shape[axis]);
    if (shape.size() > 8) text += ", ...";
    return text + "]";
}

} // namespace posiscope::core
