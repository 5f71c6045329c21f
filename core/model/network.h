// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/model/architecture.h"
#include "core/tensor/host_tensor.h"

namespace posiscope::core {

/// y = x weight^T + bias
struct Linear {
    HostTensor weight; ///< [out, in]
    HostTensor bias;   ///< [out], or empty: zeros

    [[nodiscard]] bool empty() const { return weight.empty(); }
};

struct Norm {
    NormKind kind = NormKind::none;
    HostTensor gain; ///< empty: ones
    HostTensor bias; ///< empty: zeros
    double epsilon = 0.0;
};

/// What position does inside one self-attention. With scale = logit_scale, offsets counted as j - i + L - 1:
///     logit[h,i,j] = scale * (rotated query_i . rotated key_j + query_i . key_offsets[h, j - i] + key_j . query_offsets[h, j - i])
///                    + bias[h,i,j]
/// Every scheme of the table of families reduces to these arrays; what a scheme lacks is empty.
struct AttentionPositions {
    HostTensor bias; ///< [heads or 1, L, L]: T5, MPNet, ALiBi, TUPE, Swin, BEiT
    HostTensor
        key_offsets; ///< [heads or 1, 2L - 1, head_dim]: Shaw, BERT's relative keys, NEZHA, XLNet, DeBERTa
    HostTensor query_offsets; ///< [heads or 1, 2L - 1, head_dim]: BERT's relative_key_query, DeBERTa
    HostTensor value_offsets; ///< [heads or 1, 2L - 1, head_dim], added to the values: Shaw, NEZHA
    HostTensor rotary_cosines, rotary_sines; ///< [L, turned features / 2]: rotary
    bool rotary_interleaved = false;         ///< pairs (0, 1), (2, 3), ...; else feature k with k + half
    /// [L, L], added inside the softmax only (Swin's shifted windows).
    HostTensor mask;
};

/// One layer as arrays. Heads that share a key (grouped queries) have its rows repeated.
struct NetworkLayer {
    Norm attention_input_norm;
    Linear query, key, value, attention_output;
    Norm query_norm, key_norm;  ///< over the features of each head, before the rotation
    HostTensor logit_constants; ///< [heads], added to all logits (XLNet's segments), or empty
    /// Never null. Layers that have the same share it: a table of L x L is in memory once, on the GPU too.
    std::shared_ptr<const AttentionPositions> positions = std::make_shared<const AttentionPositions>();
    Norm attention_output_norm; ///< behind the residual sum

    Norm cross_input_norm;
    Linear cross_query, cross_key, cross_value, cross_output; ///< empty: no cross-attention
    Norm cross_output_norm;

    Norm feed_forward_input_norm;
    Linear feed_forward_in, feed_forward_gate, feed_forward_out; ///< gate empty: none
    /// Of the convolutions that stand in the place of the matrices: those are then [out, in * width].
    std::int64_t feed_forward_width = 1;
    std::string activation;
    Norm feed_forward_output_norm;
    bool parallel = false; ///< the feed-forward block reads what the attention read; both are added
    HostTensor attention_branch_scale, feed_forward_branch_scale; ///< [hidden_size] (LayerScale), or empty

    std::int64_t heads = 0, head_dim = 0; ///< where they are not the network's (Swin); 0: they are
    Norm merge_norm;
    Linear
        merge; ///< of four neighbours to one row of the next stage, before everything else (Swin), or empty
};

/// A stack of layers and its inputs as arrays. Row of word w at position i: the word's row (at a special position
/// the special content) plus position row i, then embedding_norm, then embedding_map.
struct Network {
    std::int64_t heads = 0; ///< of every layer that has none of its own
    std::int64_t head_dim = 0;
    double logit_scale = 1.0;
    bool causal = false;
    /// Largest j - i, and largest i - j, that a query attends to; -1: no limit.
    std::int64_t window_before = -1, window_after = -1;
    bool window_is_absence = false; ///< entries outside the window do not exist (Longformer), not only masked

    HostTensor word_rows;     ///< [words, embedding size], factor and token type row included
    HostTensor position_rows; ///< [L, embedding size]; zeros where there are no absolute vectors
    struct SpecialRow {
        std::int64_t position = 0;
        HostTensor row; ///< [embedding size]
    };
    std::vector<SpecialRow> special_rows;
    bool has_absolute_positions = false;

    Norm embedding_norm;
    Linear embedding_map;             ///< [hidden_size, embedding size], or empty
    std::vector<NetworkLayer> layers; ///< layers 0 .. the probed one
    Norm final_norm;                  ///< behind the last layer of an encoder that a decoder reads
    /// What cross-attention reads: row n of its words goes with row n of this network's. Null: none.
    std::shared_ptr<const Network> encoder;
};

} // namespace posiscope::core
