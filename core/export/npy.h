// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/checkpoint/byte_source.h"
#include "core/checkpoint/checkpoint.h"
#include "core/tensor/host_tensor.h"
#include "core/tensor/shape.h"

namespace posiscope::core {

/// An array read from a .npy file.
struct NpyArray {
    Shape shape;
    std::vector<double> values; ///< row-major, whatever the order in the file
};

/// Reads a .npy file, format versions 1 to 3: booleans, integers and floating-point numbers of 2, 4 and 8 bytes, both
/// byte orders, C and Fortran order. The header is parsed here and never evaluated; the size that it claims is held
/// against the bytes present before memory is taken.
/// Source: NumPy Enhancement Proposal 1, "A Simple File Format for NumPy Arrays", and numpy.lib.format.
/// @error unsupported_format (no .npy file, another version, objects, text, structures, complex numbers),
///        corrupt_file (header or data cut short, header that cannot be read), out_of_memory, unreadable
Result<NpyArray> read_npy(const ByteSource& source);

/// The bytes of a .npy file (version 1.0, little-endian, C order). values.size() is the product of the shape.
std::string npy_bytes(std::span<const std::int64_t> shape, std::span<const float> values);
std::string npy_bytes(std::span<const std::int64_t> shape, std::span<const double> values);

/// Writes a tensor as float32, whole or not at all (write_atomically).
/// @error unreadable
Result<void> write_npy(const std::filesystem::path& path, const HostTensor& tensor);

/// Writes a tensor of a checkpoint as float32 in its own shape, whole or not at all. Some rows at a time are held in
/// memory, so that the largest table can be written, and stopped.
/// @error not_found, unreadable, corrupt_file, cancelled
Result<void> write_tensor_npy(const std::filesystem::path& path, const Checkpoint& checkpoint,
                              std::string_view name, const RunContext& ctx);

} // namespace posiscope::core
