// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/byte_source.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace posiscope::core {

/// A piece of a tensor that is stored in several: its elements follow those of the piece before.
struct TensorRun {
    std::size_t source = 0;
    std::uint64_t begin = 0;    ///< first byte in that source
    std::uint64_t elements = 0; ///< whole blocks of them
};

/// One axis of the way in which elements lie in a file.
struct StorageAxis {
    std::int64_t size = 0;
    std::int64_t stride = 0; ///< elements from one index to the next, not negative
    bool operator==(const StorageAxis&) const = default;
};

/// One tensor of a checkpoint: what its header says. Its bytes stay in the file until they are read.
struct TensorInfo {
    std::string name;
    DType dtype = DType::f32;
    Shape shape;
    std::size_t source = 0;  ///< which of the byte sources holds it
    std::uint64_t begin = 0; ///< first byte in that source
    std::uint64_t end = 0;   ///< one past the last byte

    /// Where elements do not lie in row-major order: walking these axes in row-major order gives the tensor in its own
    /// row-major order. Their sizes multiply to as many elements as the shape has. Empty: row-major without gaps.
    std::vector<StorageAxis> axes;
    std::vector<TensorRun> runs; ///< its pieces, in the place of source, begin and end; empty: one piece
    bool big_endian = false;
    std::string stored_name; ///< its name in the file, where `name` was translated from it; else empty
    std::optional<std::uint32_t> crc32c; ///< of all its bytes, where the file tells
    std::string fault;                   ///< why it cannot be read, to follow "tensor 'x' "; empty: it can
};

/// The tensors that a format's reader found, before a config or a vocabulary joins them.
struct TensorFile {
    std::string format; ///< id of the format, as in checkpoint_formats()
    std::vector<std::shared_ptr<const ByteSource>> sources;
    std::vector<TensorInfo> tensors; ///< in file order, names unique, byte ranges checked
    std::vector<std::string> warnings;
    /// The files that were opened, for messages and for counting bytes; empty: the sources are files.
    std::vector<std::shared_ptr<const ByteSource>> files;
    /// What would lie beside the weights, where the file itself holds it: "config.json", "vocab.txt".
    std::map<std::string, std::string, std::less<>> enclosed_files;
    std::map<std::string, std::string, std::less<>>
        absent; ///< tensors that are not read -> why, to follow "tensor 'x' "
};

/// The axes of a tensor as they are stored; those of row-major order where `axes` is empty.
std::vector<StorageAxis> storage_axes(const TensorInfo& info);

/// Exchanges the two axes of a matrix: the same bytes, read as [columns, rows]. Not for types kept in blocks.
void transpose(TensorInfo& info);

/// Puts the tensor's axes into another order: axis n of the outcome is axis order[n] of the tensor.
void permute(TensorInfo& info, const std::vector<std::size_t>& order);

/// Gives the tensor another shape with the same elements in row-major order.
void reshape(TensorInfo& info, Shape shape);

/// One past the last element that the axes reach, counted from the tensor's beginning; nothing where that does not fit
/// 64 bits. 0 for a tensor without elements.
std::optional<std::uint64_t> storage_extent(const std::vector<StorageAxis>& axes);

} // namespace posiscope::core
