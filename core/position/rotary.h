// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/host_tensor.h"

namespace posiscope::core {

/// Rotary positions, scaled or not to lengths beyond the trained one. Feature pair k turns by p * f_k at position p,
///     f_k = base^(-2k / features) / divisors[k]
/// and cosines and sines are multiplied by `attention_factor`, so that logits of turned features get its square.
/// Source: Su et al. 2021, "RoFormer"; the scalings below.
struct RotaryScheme {
    std::int64_t features = 0; ///< of each head that are turned
    double base = 10000.0;
    bool interleaved = false;

    std::vector<double> divisors = {}; ///< of each frequency; empty: none is divided
    /// LongRoPE: instead of `divisors` in inputs longer than `trained_length`; empty: the same.
    std::vector<double> long_divisors = {};
    double trained_length = 0.0;
    /// Dynamic NTK scaling: in inputs longer than `trained_length` the base grows with the length; 0: it does not.
    double dynamic_factor = 0.0;
    double attention_factor = 1.0;
};

/// The frequency of each pair of features for inputs of this length.
/// Dynamic NTK: base * (factor * L / trained - (factor - 1))^(d / (d - 2)).
std::vector<double> rotary_frequencies(const RotaryScheme& scheme, std::int64_t length);

/// Cosines and sines of p * f_k, p = 0 .. length - 1, times the attention factor: [length, features / 2] each.
void rotary_tables(const RotaryScheme& scheme, std::int64_t length, HostTensor& cosines, HostTensor& sines);

/// Llama 3.1: wavelengths above trained / low_factor are divided by `factor`, those below trained / high_factor stay,
/// and between them the divisor changes smoothly.
/// Source: Meta's released code of Llama 3.1.
struct Llama3Scaling {
    double factor = 8.0, low_factor = 1.0, high_factor = 4.0, trained_length = 8192.0;
};
std::vector<double> llama3_divisors(const RotaryScheme& scheme, const Llama3Scaling& scaling);

/// YaRN: pairs that turn more than `fast_turns` times within the trained length stay, those that turn less than
/// `slow_turns` times are divided by `factor`, with a ramp between them.
/// Source: Peng et al. 2023, "YaRN", sec. 3.2, and its released code (bounds rounded outwards).
struct YarnScaling {
    double factor = 1.0, fast_turns = 32.0, slow_turns = 1.0, trained_length = 0.0;
    bool rounded_bounds = true;
};
std::vector<double> yarn_divisors(const RotaryScheme& scheme, const YarnScaling& scaling);

/// 0.1 * weight * ln(factor) + 1, YaRN's attention factor; 1 where nothing is stretched.
double yarn_attention_factor(double factor, double weight = 1.0);

} // namespace posiscope::core
