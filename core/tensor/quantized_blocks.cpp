// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tensor/quantized_blocks.h"

#include <cassert>
#include <utility>

namespace posiscope::core {
namespace {

std::uint8_t byte_at(const std::byte* bytes, std::size_t at)
{
    return std::to_integer<std::uint8_t>(bytes[at]);
}

float half_at(const std::byte* bytes, std::size_t at)
{
    return half_to_float(static_cast<std::uint16_t>(byte_at(bytes, at) | (byte_at(bytes, at + 1) << 8)));
}

float signed_at(const std::byte* bytes, std::size_t at)
{
    return static_cast<float>(static_cast<std::int8_t>(byte_at(bytes, at)));
}

void decode_q8_0(const std::byte* block, float* out)
{
    const float scale = half_at(block, 0);
    for (std::size_t n = 0; n < 32; ++n) out[n] = scale * signed_at(block, 2 + n);
}

/// Four bits a number: the low halves of 16 bytes are numbers 0 to 15, the high halves 16 to 31. A fifth bit of number
/// n is bit n of a 32-bit word. Value = scale * (number - centre) + minimum.
void decode_nibbles(const std::byte* block, bool has_minimum, bool has_fifth_bit, float* out)
{
    const float scale = half_at(block, 0);
    const float minimum = has_minimum ? half_at(block, 2) : 0.0f;
    std::size_t at = has_minimum ? 4 : 2;
    std::uint32_t fifth = 0;
    if (has_fifth_bit) {
        for (std::size_t n = 4; n-- > 0;) fifth = (fifth << 8u) | byte_at(block, at + n);
        at += 4;
    }
    const int centre = has_minimum ? 0 : has_fifth_bit ? 16 : 8;
    for (std::size_t n = 0; n < 32; ++n) {
        const unsigned pair = byte_at(block, at + n % 16);
        const unsigned number = (n < 16 ? pair & 0xFu : pair >> 4u) | (((fifth >> n) & 1u) << 4u);
        out[n] = scale * static_cast<float>(static_cast<int>(number) - centre) + minimum;
    }
}

/// The 6-bit scale and minimum of sub-block n of eight, packed into 12 bytes.
std::pair<unsigned, unsigned> scale_and_minimum(const std::byte* packed, std::size_t n)
{
    if (n < 4) return {byte_at(packed, n) & 63u, byte_at(packed, n + 4) & 63u};
    const unsigned low = byte_at(packed, n + 4);
    return {(low & 0xFu) | ((byte_at(packed, n - 4) >> 6u) << 4u),
            (low >> 4u) | ((byte_at(packed, n) >> 6u) << 4u)};
}

/// 256 numbers in eight sub-blocks; Q5_K has 32 bytes of fifth bits before the nibbles.
void decode_k_nibbles(const std::byte* block, bool has_fifth_bit, float* out)
{
    const float scale = half_at(block, 0), minimum = half_at(block, 2);
    const std::byte* fifths = block + 16;
    const std::byte* nibbles = has_fifth_bit ? fifths + 32 : fifths;
    for (std::size_t sub = 0; sub < 8; ++sub) {
        const auto [sub_scale, sub_minimum] = scale_and_minimum(block + 4, sub);
        const float d = scale * static_cast<float>(sub_scale);
        const float m = minimum * static_cast<float>(sub_minimum);
        for (std::size_t n = 0; n < 32; ++n) {
            const unsigned pair = byte_at(nibbles, sub / 2 * 32 + n);
            unsigned number = sub % 2 == 0 ? pair & 0xFu : pair >> 4u;
            if (has_fifth_bit) number |= ((byte_at(fifths, n) >> sub) & 1u) << 4u;
            out[sub * 32 + n] = d * static_cast<float>(number) - m;
        }
    }
}

void decode_q6_k(const std::byte* block, float* out)
{
    const std::byte* high = block + 128;
    const std::byte* scales = high + 64;
    const float scale = half_at(block, 208);
    for (std::size_t n = 0; n < 256; ++n) {
        const std::size_t half = n / 128, quarter = n % 128 / 32, lane = n % 32;
        const unsigned pair = byte_at(block, half * 64 + quarter % 2 * 32 + lane);
        const unsigned low = quarter < 2 ? pair & 0xFu : pair >> 4u;
        const unsigned top = (byte_at(high, half * 32 + lane) >> (2 * quarter)) & 3u;
        const int number = static_cast<int>(low | (top << 4u)) - 32;
        out[n] = scale * signed_at(scales, n / 16) * static_cast<float>(number);
    }
}

} // namespace

void decode_blocks(DType dtype, std::span<const std::byte> bytes, std::span<float> out)
{
    const std::size_t block = dtype_block(dtype), size = dtype_size(dtype);
    assert(block > 1 && out.size() % block == 0);
    for (std::size_t n = 0; n < out.size() / block; ++n) {
        const std::byte* from = bytes.data() + n * size;
        float* to = out.data() + n * block;
        switch (dtype) {
        case DType::q8_0: decode_q8_0(from, to); break;
        case DType::q4_0: decode_nibbles(from, false, false, to); break;
        case DType::q4_1: decode_nibbles(from, true, false, to); break;
        case DType::q5_0: decode_nibbles(from, false, true, to); break;
        case DType::q5_1: decode_nibbles(from, true, true, to); break;
        case DType::q4_k: decode_k_nibbles(from, false, to); break;
        case DType::q5_k: decode_k_nibbles(from, true, to); break;
        case DType::q6_k: decode_q6_k(from, to); break;
        default: assert(false); return;
        }
    }
}

} // namespace posiscope::core
