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

/// Reads what a probe of layers up to `last_layer` needs, and nothing else: the rows of the words and special tokens, L
/// rows of positions, layers 0 .. last_layer, of which the last only as far as its queries and keys. Position tables and
/// biases that no file holds are computed. With `options.no_positions` vectors and biases are zero and nothing turns.
/// Grouped heads, packed projections and the factor on words are resolved here: what comes back is plain arrays. Behind
/// cross-attention the whole encoder comes along, over the same words.
/// @param special_positions  filled with the positions that hold special tokens, ascending
/// @error not_found (a tensor, with the file), numeric_failure (NaN or infinite weights), invalid_argument
///        (no room for special tokens, content of another shape), unreadable, cancelled
Result<Network> read_network(const OpenModel& model, const Stack& stack, const ProbeOptions& options,
                             std::int64_t last_layer, const ProbeInput& input,
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
