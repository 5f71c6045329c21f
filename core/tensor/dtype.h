// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace posiscope::core {

/// How the numbers of a tensor are stored in its file. The last eight keep blocks of numbers with common scales (GGUF).
enum class DType {
    f64,
    f32,
    f16,
    bf16,
    f8_e4m3,
    f8_e5m2,
    i64,
    i32,
    i16,
    i8,
    u64,
    u32,
    u16,
    u8,
    boolean,
    q8_0,
    q4_0,
    q4_1,
    q5_0,
    q5_1,
    q4_k,
    q5_k,
    q6_k
};

/// The name used by safetensors ("F32", "BF16", "F8_E4M3", "BOOL"), which is also how a type is shown.
std::string_view dtype_name(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);

/// Bytes of one element, or of one block where numbers are kept in blocks.
std::size_t dtype_size(DType dtype);

/// Elements that are stored together: 1, or the length of a block, which begins at a multiple of it in each row.
std::size_t dtype_block(DType dtype);

/// Bytes that `count` elements take, or nothing where that does not fit 64 bits or is no whole number of blocks.
std::optional<std::uint64_t> stored_bytes(DType dtype, std::uint64_t count);

/// Whether weights may be of this type (integers hold ids and masks, not weights).
bool is_floating(DType dtype);

/// Converts little-endian elements to float32: exact for F32, F16, BF16 and F8, rounded to nearest for F64 and for
/// integers above 2^24. `bytes` holds out.size() elements, whole blocks of them.
void convert_to_float(DType dtype, std::span<const std::byte> bytes, std::span<float> out);

/// Turns big-endian elements into little-endian ones.
void swap_bytes(DType dtype, std::span<std::byte> bytes);

} // namespace posiscope::core
