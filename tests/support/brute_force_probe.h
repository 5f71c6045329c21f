// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/model/architecture.h"
#include "tests/support/checkpoint_builder.h"

namespace posiscope::tests {

/// A first layer as plain doubles. Matrices are row-major, weights [out, in].
struct ReferenceLayer {
    std::size_t features = 0, heads = 0, head_dim = 0, length = 0;
    double logit_scale = 1.0;
    std::size_t keys_before = static_cast<std::size_t>(-1); ///< how far behind a query its keys reach
    std::size_t keys_after = static_cast<std::size_t>(-1);  ///< how far ahead; 0: causal
    core::NormKind norm = core::NormKind::layer_norm;
    double epsilon = 1e-12;
    std::vector<double> gain, bias; ///< of the norm
    std::vector<double> query_weight, query_bias, key_weight, key_bias;
    std::vector<double> logit_bias;         ///< [heads, length, length], added to the logits, or empty
    std::vector<std::vector<double>> words; ///< rows of the words, token type included
    std::vector<double> positions;          ///< [length, features]
    std::vector<std::pair<std::size_t, std::vector<double>>> special; ///< position, row of its token
};

/// Means over words.
struct ReferenceMaps {
    std::vector<double> logits, probabilities; ///< [heads, length, length]
    std::map<std::string, std::vector<double>> terms;
};

/// The attention of a first layer as its definition has it: every word is put at every position, normed, projected,
/// multiplied and sent through the softmax, in double. Nothing is shared between words.
/// Terms: of x = a (g u + g v) + b (u, v: word and position without their feature means; a: the norm's factor), the
/// position's part is a g v, the word's part is all the rest, constants included; relative is the bias.
/// @param first, count  which of the words
ReferenceMaps brute_force(const ReferenceLayer& layer, std::size_t first, std::size_t count,
                          bool terms = false);

/// What a probe of a CheckpointBuilder's model reads.
struct ReferenceInput {
    std::vector<std::int64_t> word_ids;
    std::size_t length = 0;
    bool special = false;
    bool no_positions = false;
    bool causal = false;
};
ReferenceLayer reference_layer(const CheckpointBuilder& builder, const ReferenceInput& input);

} // namespace posiscope::tests
