// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace posiscope::core {

/// SHA-256 of bytes that come in pieces.
/// Source: FIPS 180-4, section 6.2.
class Sha256 {
public:
    void add(std::span<const std::byte> bytes);
    void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
    /// 64 hexadecimal digits. Nothing may be added afterwards.
    [[nodiscard]] std::string finish();

private:
    void block(const std::byte* bytes);

    std::array<std::uint32_t, 8> m_state{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<std::byte, 64> m_rest{};
    std::size_t m_rest_size = 0;
    std::uint64_t m_total = 0;
};

/// SHA-256 of a text, in hexadecimal digits.
std::string sha256_of(std::string_view text);

} // namespace posiscope::core
