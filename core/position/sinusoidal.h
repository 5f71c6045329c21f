// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

#include "core/tensor/host_tensor.h"

namespace posiscope::core {

/// A sinusoidal table: feature k of the first half (or 2k, interleaved) is sin(p * f_k), its partner the cosine,
/// f_k = base^(-k / (half - (last_frequency_is_base ? 1 : 0))), half = features / 2.
struct SinusoidalScheme {
    bool interleaved = false;
    bool last_frequency_is_base = false;
    double base = 10000.0;
};

/// Rows first .. first + length - 1 of a sinusoidal position table.
///     angle(p, k) = p * base^(-k / (half - c)), half = features / 2, c = 1 where the last frequency is 1 / base
/// Halves: sines in the first half of the features, cosines in the second; interleaved: sine and cosine in turn.
/// Source: Vaswani et al. 2017, sec. 3.5 (interleaved, c = 0); Marian: halves, c = 0; fairseq, Whisper: halves, c = 1.
/// @return [length, features], float32 from double; an odd last feature is 0
HostTensor sinusoidal_table(const SinusoidalScheme& scheme, std::int64_t first, std::int64_t length,
                            std::int64_t features);

} // namespace posiscope::core
