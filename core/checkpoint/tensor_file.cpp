// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/tensor_file.h"

#include <cassert>
#include <utility>

#include "core/base/checked_math.h"

namespace posiscope::core {
namespace {

/// The storage axes cut so that they are those of the shape, where that can be done.
std::optional<std::vector<StorageAxis>> axes_of_shape(const TensorInfo& info)
{
    if (info.axes.empty() || info.axes.size() == info.shape.size()) {
        auto axes = storage_axes(info);
        for (std::size_t n = 0; n < axes.size(); ++n)
            if (axes[n].size != info.shape[n]) return std::nullopt;
        return axes;
    }
    return std::nullopt;
}

} // namespace

std::vector<StorageAxis> storage_axes(const TensorInfo& info)
{
    if (!info.axes.empty()) return info.axes;
    std::vector<StorageAxis> axes(info.shape.size());
    std::int64_t stride = 1;
    for (std::size_t n = axes.size(); n-- > 0;) {
        axes[n] = {info.shape[n], stride};
        stride *= info.shape[n] > 0 ? info.shape[n] : 1;
    }
    return axes;
}

void permute(TensorInfo& info, const std::vector<std::size_t>& order)
{
    assert(dtype_block(info.dtype) == 1 && order.size() == info.shape.size());
    const auto axes = axes_of_shape(info);
    assert(axes);
    std::vector<StorageAxis> permuted;
    Shape shape;
    for (const std::size_t axis : order) {
        permuted.push_back((*axes)[axis]);
        shape.push_back(info.shape[axis]);
    }
    info.axes = std::move(permuted);
    info.shape = std::move(shape);
}

void transpose(TensorInfo& info)
{
    permute(info, {1, 0});
}

void reshape(TensorInfo& info, Shape shape)
{
    assert(element_count(shape) == element_count(info.shape));
    // The axes are kept: walking them in row-major order is all that reading needs.
    if (!info.axes.empty() || info.shape.empty()) {
        if (info.axes.empty()) info.axes = {{1, 1}};
        info.shape = std::move(shape);
        // Later changes of order look for axes like the shape's: cut or join them where that is possible.
        std::vector<StorageAxis> fitted;
        std::size_t at = 0;
        std::int64_t left = info.axes.empty() ? 1 : info.axes[0].size;
        for (const std::int64_t size : info.shape) {
            if (at >= info.axes.size() || size == 0 || left % size != 0) return;
            left /= size;
            fitted.push_back({size, info.axes[at].stride * left});
            if (left == 1 && ++at < info.axes.size()) left = info.axes[at].size;
        }
        if (at == info.axes.size()) info.axes = std::move(fitted);
        return;
    }
    info.shape = std::move(shape);
}

std::optional<std::uint64_t> storage_extent(const std::vector<StorageAxis>& axes)
{
    std::uint64_t last = 0;
    for (const StorageAxis& axis : axes) {
        if (axis.size < 0 || axis.stride < 0) return std::nullopt;
        if (axis.size == 0) return 0;
    }
    for (const StorageAxis& axis : axes) {
        const auto step = checked_multiply(static_cast<std::uint64_t>(axis.size - 1),
                                           static_cast<std::uint64_t>(axis.stride));
        const auto sum = step ? checked_add(last, *step) : std::nullopt;
        if (!sum) return std::nullopt;
        last = *sum;
    }
    return checked_add(last, 1);
}

} // namespace posiscope::core
