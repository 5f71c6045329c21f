// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace posiscope::core {

/// The unsigned number that `Bytes` little-endian bytes from `at` on hold; the caller has checked that they are there.
template <std::size_t Bytes>
std::uint64_t little_endian(std::span<const std::byte> bytes, std::size_t at)
{
    std::uint64_t value = 0;
    for (std::size_t n = Bytes; n-- > 0;)
        value = (value << 8u) | std::to_integer<std::uint64_t>(bytes[at + n]);
    return value;
}

} // namespace posiscope::core
