// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>

namespace posiscope::core {

/// a + b, or nothing where it does not fit.
inline std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b)
{
    std::uint64_t out = 0;
    if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
    return out;
}

/// a * b, or nothing where it does not fit.
inline std::optional<std::uint64_t> checked_multiply(std::uint64_t a, std::uint64_t b)
{
    std::uint64_t out = 0;
    if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
    return out;
}

} // namespace posiscope::core
