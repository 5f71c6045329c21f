// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tensor/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/checked_math.h"
#include "core/tensor/quantized_blocks.h"

namespace posiscope::core {
namespace {

struct DTypeRow {
    DType dtype;
    std::string_view name;
    std::size_t size;
    bool floating;
    std::size_t block = 1;
};

constexpr std::array dtype_rows{
    DTypeRow{DType::f64, "F64", 8, true},          DTypeRow{DType::f32, "F32", 4, true},
    DTypeRow{DType::f16, "F16", 2, true},          DTypeRow{DType::bf16, "BF16", 2, true},
    DTypeRow{DType::f8_e4m3, "F8_E4M3", 1, true},  DTypeRow{DType::f8_e5m2, "F8_E5M2", 1, true},
    DTypeRow{DType::i64, "I64", 8, false},         DTypeRow{DType::i32, "I32", 4, false},
    DTypeRow{DType::i16, "I16", 2, false},         DTypeRow{DType::i8, "I8", 1, false},
    DTypeRow{DType::u64, "U64", 8, false},         DTypeRow{DType::u32, "U32", 4, false},
    DTypeRow{DType::u16, "U16", 2, false},         DTypeRow{DType::u8, "U8", 1, false},
    DTypeRow{DType::boolean, "BOOL", 1, false},    DTypeRow{DType::q8_0, "Q8_0", 34, true, 32},
    DTypeRow{DType::q4_0, "Q4_0", 18, true, 32},   DTypeRow{DType::q4_1, "Q4_1", 20, true, 32},
    DTypeRow{DType::q5_0, "Q5_0", 22, true, 32},   DTypeRow{DType::q5_1, "Q5_1", 24, true, 32},
    DTypeRow{DType::q4_k, "Q4_K", 144, true, 256}, DTypeRow{DType::q5_k, "Q5_K", 176, true, 256},
    DTypeRow{DType::q6_k, "Q6_K", 210, true, 256},
};

const DTypeRow& row_of(DType dtype)
{
    for (const DTypeRow& row : dtype_rows)
        if (row.dtype == dtype) return row;
    assert(false);
    return dtype_rows[0];
}

template <class Stored>
void convert_all(std::span<const std::byte> bytes, std::span<float> out)
{
    static_assert(std::endian::native == std::endian::little,
                  "files are little-endian; swap here on other machines");
    for (std::size_t n = 0; n < out.size(); ++n) {
        Stored stored{};
        std::memcpy(&stored, bytes.data() + n * sizeof(Stored), sizeof(Stored));
        out[n] = static_cast<float>(stored);
    }
}

float bfloat_to_float(std::uint16_t stored)
{
    return std::bit_cast<float>(static_cast<std::uint32_t>(stored) << 16u);
}

/// OCP 8-bit floating point, E4M3FN: bias 7, no infinities, S.1111.111 is NaN.
float e4m3_to_float(std::uint8_t stored)
{
    const int exponent = (stored >> 3) & 0xF;
    const int mantissa = stored & 0x7;
    const float sign = (stored & 0x80u) ? -1.0f : 1.0f;
    if (exponent == 15 && mantissa == 7) return std::numeric_limits<float>::quiet_NaN();
    if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -9);
    return sign * std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
}

/// OCP E5M2 is binary16 with eight mantissa bits cut off.
float e5m2_to_float(std::uint8_t stored)
{
    return half_to_float(static_cast<std::uint16_t>(stored << 8u));
}

template <class Stored, float (*decode)(Stored)>
void decode_all(std::span<const std::byte> bytes, std::span<float> out)
{
    for (std::size_t n = 0; n < out.size(); ++n) {
        Stored stored{};
        std::memcpy(&stored, bytes.data() + n * sizeof(Stored), sizeof(Stored));
        out[n] = decode(stored);
    }
}

} // namespace

float half_to_float(std::uint16_t half)
{
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16u;
    const std::uint32_t exponent = (half >> 10u) & 0x1Fu;
    const std::uint32_t mantissa = half & 0x3FFu;
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13u));
    if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112u) << 23u) | (mantissa << 13u));
    const float magnitude = static_cast<float>(mantissa) * 0x1.0p-24f;
    return sign ? -magnitude : magnitude;
}

std::string_view dtype_name(DType dtype)
{
    return row_of(dtype).name;
}

std::optional<DType> dtype_from_name(std::string_view name)
{
    for (const DTypeRow& row : dtype_rows)
        if (row.name == name) return row.dtype;
    return std::nullopt;
}

std::size_t dtype_size(DType dtype)
{
    return row_of(dtype).size;
}

std::size_t dtype_block(DType dtype)
{
    return row_of(dtype).block;
}

std::optional<std::uint64_t> stored_bytes(DType dtype, std::uint64_t count)
{
    const DTypeRow& row = row_of(dtype);
    if (count % row.block != 0) return std::nullopt;
    return checked_multiply(count / row.block, row.size);
}

bool is_floating(DType dtype)
{
    return row_of(dtype).floating;
}

void swap_bytes(DType dtype, std::span<std::byte> bytes)
{
    const std::size_t size = dtype_size(dtype);
    if (size == 1 || dtype_block(dtype) != 1) return;
    for (std::size_t at = 0; at + size <= bytes.size(); at += size)
        std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                     bytes.begin() + static_cast<std::ptrdiff_t>(at + size));
}

void convert_to_float(DType dtype, std::span<const std::byte> bytes, std::span<float> out)
{
    assert(bytes.size() >= stored_bytes(dtype, out.size()).value_or(SIZE_MAX));
    switch (dtype) {
    case DType::f64: return convert_all<double>(bytes, out);
    case DType::f32: return convert_all<float>(bytes, out);
    case DType::f16: return decode_all<std::uint16_t, half_to_float>(bytes, out);
    case DType::bf16: return decode_all<std::uint16_t, bfloat_to_float>(bytes, out);
    case DType::f8_e4m3: return decode_all<std::uint8_t, e4m3_to_float>(bytes, out);
    case DType::f8_e5m2: return decode_all<std::uint8_t, e5m2_to_float>(bytes, out);
    case DType::i64: return convert_all<std::int64_t>(bytes, out);
    case DType::i32: return convert_all<std::int32_t>(bytes, out);
    case DType::i16: return convert_all<std::int16_t>(bytes, out);
    case DType::i8: return convert_all<std::int8_t>(bytes, out);
    case DType::u64: return convert_all<std::uint64_t>(bytes, out);
    case DType::u32: return convert_all<std::uint32_t>(bytes, out);
    case DType::u16: return convert_all<std::uint16_t>(bytes, out);
    case DType::u8:
    case DType::boolean: return convert_all<std::uint8_t>(bytes, out);
    case DType::q8_0:
    case DType::q4_0:
    case DType::q4_1:
    case DType::q5_0:
    case DType::q5_1:
    case DType::q4_k:
    case DType::q5_k:
    case DType::q6_k: return decode_blocks(dtype, bytes, out);
    }
}

} // namespace posiscope::core
