// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/families/stack_reader.h"

namespace posiscope::core {

/// What BERT's relatives share: word, position and token type tables under "embeddings.", a LayerNorm behind them, and
/// post-norm layers under "encoder.layer.N.". Differences are told here.
struct BertBody {
    std::string_view words = "embeddings.word_embeddings.weight";
    std::string_view positions = "embeddings.position_embeddings.weight";     ///< empty: none
    std::string_view token_types = "embeddings.token_type_embeddings.weight"; ///< empty: none
    std::string_view embedding_size_key = "hidden_size"; ///< config's columns of the tables
    std::string_view size_key = "hidden_size";
    std::string_view heads_key = "num_attention_heads";
    std::string_view layers_key = "num_hidden_layers";
    std::int64_t published_layers = 0; ///< where layers share their weights and cannot be counted
    std::string_view inner_key = "intermediate_size";
    std::string_view activation_key = "hidden_act";
    double published_epsilon = 1e-12;
    bool epsilon_in_config = true;
    std::int64_t first_position_row = 0;
    /// Name of the map from embedding to hidden size; must be there where the sizes differ. Empty: sizes are equal.
    std::string_view embedding_map = {};
    LayerPattern layers = {"encoder.layer.{}.",
                           {},
                           "attention.self.query",
                           "attention.self.key",
                           "attention.self.value",
                           "attention.output.dense",
                           {},
                           {},
                           "attention.output.LayerNorm",
                           {},
                           "intermediate.dense",
                           {},
                           "output.dense",
                           "output.LayerNorm"};
};

/// Reads such a stack; the reader keeps the first fault.
Stack read_bert_body(StackReader& reader, const BertBody& body);

} // namespace posiscope::core
