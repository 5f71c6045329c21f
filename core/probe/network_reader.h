// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/model/network.h"
#include "core/model/open_model.h"
#include "core/probe/probe_result.h"

namespace posiscope::core {

/// What stands at the positions: words, or as many contents (patches, vectors) where the stack reads no words.
struct ProbeInput {
    std::vector<const Vocabulary::Entry*> words;
    std::size_t count = 0;
};

/// Whether a stage up to layer `last` joins rows (Swin): core's own kernels only do that.
bool merges_rows(const Stack& stack, std::int64_t last);

/// Whether the probe goes by one row per word: nothing positional reaches the hidden states up to layer `last`, nor those of
/// an encoder that it reads, so that equal words stay equal. Only the layers asked for need their positions then.
bool goes_by_one_row(const OpenModel& model, const Stack& stack, const ProbeOptions& options,
                     std::int64_t last);

/// Reads what a probe of `layers` (ascending) needs, and nothing else: the rows of the words and special tokens, L rows of
/// positions, all layers to the last one asked for, of which that one only as far as its queries and keys. What position
/// does inside a layer is read for every layer that uses it, and once for those that have the same. Position tables and
/// biases that no file holds are computed. With `options.no_positions` vectors and biases are zero and nothing turns.
/// Grouped heads, packed projections and the factor on words are resolved here: what comes back is plain arrays. Behind
/// cross-attention the whole encoder comes along, over the same words.
/// @param special_positions  filled with the positions that hold special tokens, ascending
/// @error not_found (a tensor, with the file), numeric_failure (NaN or infinite weights), invalid_argument
///        (no room for special tokens, content of another shape), unreadable, cancelled
Result<Network> read_network(const OpenModel& model, const Stack& stack, const ProbeOptions& options,
                             const std::vector<int>& layers, const ProbeInput& input,
                             std::vector<std::int64_t>& special_positions, const RunContext& ctx);

/// What one layer's scheme does without any word: its biases, vectors of offsets and rotations, and the constant parts of
/// its queries and keys, which meet the vectors. Reads none of the large matrices.
struct LayerPositions {
    AttentionPositions positions;
    HostTensor query_constant, key_constant; ///< [heads * head_dim], or empty: zeros
    std::int64_t heads = 0, head_dim = 0;
};
/// @param layer  a layer may be missing whose relative bias the stack shares
/// @error not_found, numeric_failure, unreadable
Result<LayerPositions> read_layer_positions(const OpenModel& model, const Stack& stack, int layer,
                                            std::int64_t length);

} // namespace posiscope::core
