// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstdio>

namespace posiscope::core {
namespace {

constexpr std::array<std::uint32_t, 64> round_constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

} // namespace

void Sha256::block(const std::byte* bytes)
{
    std::array<std::uint32_t, 64> words{};
    for (std::size_t n = 0; n < 16; ++n)
        for (std::size_t k = 0; k < 4; ++k)
            words[n] = (words[n] << 8u) | std::to_integer<std::uint32_t>(bytes[4 * n + k]);
    for (std::size_t n = 16; n < 64; ++n) {
        const std::uint32_t a = words[n - 15], b = words[n - 2];
        words[n] = words[n - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3u)) + words[n - 7] +
                   (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10u));
    }
    auto [a, b, c, d, e, f, g, h] = m_state;
    for (std::size_t n = 0; n < 64; ++n) {
        const std::uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                                    ((e & f) ^ (~e & g)) + round_constants[n] + words[n];
        const std::uint32_t second =
            (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + first;
        d = c;
        c = b;
        b = a;
        a = first + second;
    }
    const std::array<std::uint32_t, 8> added{a, b, c, d, e, f, g, h};
    for (std::size_t n = 0; n < added.size(); ++n) m_state[n] += added[n];
}

void Sha256::add(std::span<const std::byte> bytes)
{
    m_total += bytes.size();
    if (m_rest_size > 0) {
        const std::size_t taken = std::min(bytes.size(), m_rest.size() - m_rest_size);
        std::copy_n(bytes.begin(), taken, m_rest.begin() + static_cast<std::ptrdiff_t>(m_rest_size));
        m_rest_size += taken;
        bytes = bytes.subspan(taken);
        if (m_rest_size < m_rest.size()) return;
        block(m_rest.data());
        m_rest_size = 0;
    }
    for (; bytes.size() >= m_rest.size(); bytes = bytes.subspan(m_rest.size())) block(bytes.data());
    std::copy(bytes.begin(), bytes.end(), m_rest.begin());
    m_rest_size = bytes.size();
}

std::string Sha256::finish()
{
    const std::uint64_t bits = m_total * 8;
    std::array<std::byte, 72> end{std::byte{0x80}};
    const std::size_t zeros = (m_rest_size < 56 ? 56 : 120) - m_rest_size;
    for (std::size_t n = 0; n < 8; ++n) end[zeros + n] = static_cast<std::byte>(bits >> (56 - 8 * n));
    add(std::span(end).first(zeros + 8));
    std::string digits;
    for (const std::uint32_t word : m_state) {
        std::array<char, 9> text{};
        std::snprintf(text.data(), text.size(), "%08x", word);
        digits += text.data();
    }
    return digits;
}

std::string sha256_of(std::string_view text)
{
    Sha256 sum;
    sum.add(text);
    return sum.finish();
}

} // namespace posiscope::core
