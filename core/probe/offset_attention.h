// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <vector>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/model/network.h"
#include "core/probe/attention_maps.h"

namespace posiscope::core {

/// Attention of a layer whose positions act inside the attention only (rotary, relative keys, biases): one row per
/// word, and one per special token, stands for all positions, so that a logit depends on the two contents and the
/// offset:
///     logit[h,i,j] = pair(q_i, k_j, j - i) + bias[h,i,j],
///     pair(q, k, o) = scale * (q . k, rotated by o, + q . key_offsets[o] + k . query_offsets[o]).
/// pair is bilinear in contents, so mean logits need the sums over words of pair at 2L - 1 offsets only.
/// Terms: word_word is the logit with everything positional taken out, relative is the rest.
/// @param word_rows     [words, hidden size], as they enter the layer
/// @param special_rows  [special tokens, hidden size], in the order of network.special_rows
/// @error cancelled
Result<AttentionMaps> offset_attention(const Network& network, const NetworkLayer& layer,
                                       const HostTensor& word_rows, const HostTensor& special_rows,
                                       const MapOptions& options, const RunContext& ctx);

} // namespace posiscope::core
