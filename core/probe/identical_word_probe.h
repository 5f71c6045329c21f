// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/model/open_model.h"
#include "core/probe/probe_result.h"

namespace posiscope::core {

/// Runs the identical-word probe: L copies of one word through the network, the attention of one layer averaged
/// over words, so that what is left is what position does.
/// Source: Wang et al., "On Position Embeddings in BERT", ICLR 2021 (identical-word probing).
/// The first layer is computed in closed form (first_layer.h); the engine is opened only where a forward pass is
/// needed or asked for.
/// @error invalid_argument (length over the table, no such layer or stack, padding token as the word, unknown id or
///        word), not_found (a missing weight), shape_mismatch, numeric_failure (NaN or infinite weights, with the
///        tensor), unreadable, out_of_memory, cancelled
Result<ProbeResult> run_identical_word_probe(const OpenModel& model, const ProbeOptions& options,
                                             const RunContext& ctx);

/// The same of several layers in one pass through the network (options.layer is not looked at): results ascending by
/// layer. `seconds` of each is that of the whole pass.
Result<std::vector<ProbeResult>> run_identical_word_probe(const OpenModel& model, const ProbeOptions& options,
                                                          std::vector<int> layers, const RunContext& ctx);

/// `wanted`, or what the stack has room for: rows of its table; the tokens of an image, which has no other length.
std::int64_t default_length(const Stack& stack, InputVariant variant, std::int64_t wanted);
/// Whether a length may be chosen: not for images.
bool has_free_length(const Stack& stack);

} // namespace posiscope::core
