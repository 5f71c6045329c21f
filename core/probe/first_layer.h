// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/model/architecture.h"
#include "core/probe/attention_maps.h"
#include "core/tensor/host_tensor.h"

namespace posiscope::core {

/// A special token in the input: which position it holds and its embedding (token type row included).
struct SpecialContent {
    std::size_t position = 0;
    HostTensor row; ///< [hidden_size]
};

/// Everything the closed form of the first layer needs, as plain arrays.
/// The input row of word w at position i is norm(word_rows[w] + position_rows[i]); at a special position the special
/// content stands in the place of the word's row.
struct FirstLayer {
    std::size_t heads = 0;
    std::size_t head_dim = 0;
    double logit_scale = 1.0;
    std::size_t keys_before = static_cast<std::size_t>(-1); ///< how far behind a query its keys reach
    std::size_t keys_after = static_cast<std::size_t>(-1);  ///< how far ahead; 0: causal
    HostTensor word_rows;     ///< [words, hidden_size], in draw order, token type row included
    HostTensor position_rows; ///< [L, hidden_size]
    std::vector<SpecialContent> special_content;
    NormKind norm = NormKind::layer_norm;
    double norm_epsilon = 0.0;
    HostTensor norm_gain;                ///< [hidden_size], or empty: ones
    HostTensor norm_bias;                ///< [hidden_size], or empty: zeros
    HostTensor query_weight, key_weight; ///< [heads * head_dim, hidden_size]
    HostTensor query_bias, key_bias;     ///< [heads * head_dim], or empty: zeros
    HostTensor bias;                     ///< [heads or 1, L, L], added to the logits, or empty
};

/// First-layer attention of L copies of each word, from N + L + 1 projected rows instead of N * L.
/// With u_w = C(word row), v_i = C(position row) and C the removal of the feature mean (none for RMSNorm),
///     x_wi = a_wi * g * (u_w + v_i) + b,    a_wi = 1 / sqrt((|u_w|^2 + 2 u_w.v_i + |v_i|^2) / d + epsilon),
/// so the query is a_wi (Qw + Qi) + q0 with Qw, Qi, q0 the projections of g u_w, g v_i and b (plus the bias), the key
/// alike, and every mean logit is a sum of scalar products of those. A special token's content is constant.
/// Terms: the factor a_wi stays with what it multiplies, constants belong to the word part, so that word_word +
/// word_position + position_word + position_position (+ relative, the bias) are the logits.
/// Sums over words: float32 products within fixed blocks of words, double between blocks. Bit-identical whatever the
/// thread count.
/// @error cancelled
Result<AttentionMaps> first_layer_attention(const FirstLayer& layer, const MapOptions& options,
                                            const RunContext& ctx);

} // namespace posiscope::core
