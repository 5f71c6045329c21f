// SPDX-License-Identifier: GPL-3.0-or-later
// For the sources that are compiled once for each instruction set, and for no others: the anonymous namespace keeps
// the linker from taking the code of one set for that of another.
#pragma once

#include <bit>
#include <cstdint>

namespace posiscope::core {
namespace {

/// exp(x) for x <= 0, relative error below 2e-7; e^-87 below -87. 2^n * e^f with n whole and |f| <= ln(2) / 2, e^f by its
/// Taylor polynomial of degree 7 in Horner's form: plain arithmetic that compilers turn into vectors.
inline float exp_of_negative(float x)
{
    constexpr float log2_e = 1.44269504088896341f;
    constexpr float ln2_high = 0.693145751953125f; // few bits: n * ln2_high is exact
    constexpr float ln2_low = 1.42860682030941723e-6f;
    constexpr float smallest = -87.0f;
    const float clamped = x > smallest ? x : smallest;
    const auto whole = static_cast<std::int32_t>(clamped * log2_e - 0.5f);
    const auto n = static_cast<float>(whole);
    const float f = (clamped - n * ln2_high) - n * ln2_low;
    float power = 1.98412698e-4f;
    power = power * f + 1.38888889e-3f;
    power = power * f + 8.33333333e-3f;
    power = power * f + 4.16666667e-2f;
    power = power * f + 1.66666667e-1f;
    power = power * f + 0.5f;
    power = power * f + 1.0f;
    power = power * f + 1.0f;
    // 2^n by its bits; what is clamped comes out as e^-87, which no sum of float32 notices.
    return power * std::bit_cast<float>((whole + 127) << 23);
}

} // namespace
} // namespace posiscope::core
