// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace posiscope::core {

/// A matrix (and perhaps bias) of a checkpoint by the names it has there. Stored [out, in] unless `transposed`.
struct LinearNames {
    std::string weight;
    std::string bias; ///< empty: none
    bool transposed = false;
};

enum class NormKind { none, layer_norm, rms_norm };

struct NormNames {
    NormKind kind = NormKind::none;
    std::string gain; ///< empty: ones
    std::string bias; ///< empty: zeros
    double epsilon = 0.0;
};

/// One attention layer and what follows it, by tensor names. Names are those in the file; empty where the file
/// lacks the tensor (a partial checkpoint).
struct LayerNames {
    LinearNames query, key, value, attention_output;
    NormNames attention_norm; ///< post-norm families: after the attention's residual sum
    LinearNames feed_forward_in, feed_forward_out;
    NormNames feed_forward_norm;
};

/// One stack of Transformer layers as data: what differs between families, and the names of its weights.
struct Stack {
    std::string id;    ///< "encoder", "decoder", "text", "vision"
    std::string scheme_id;    ///< position scheme: "absolute_learned", ...
    std::string scheme_label; ///< "learned absolute"
    std::int64_t layers = 0;  ///< as the config says
    std::int64_t layers_present = 0; ///< leading layers whose query and key weights the file holds
    std::int64_t hidden_size = 0;
    std::int64_t heads = 0;
    std::int64_t head_dim = 0;
    double logit_scale = 1.0; ///< factor on query . key
    bool causal = false;
    std::string activation;

    std::string word_table;              ///< [vocabulary, hidden_size]
    std::string position_table;          ///< [rows, hidden_size]; empty: no absolute vectors
    std::int64_t first_position_row = 0; ///< row of the table that position 0 uses
    std::optional<std::int64_t> length_limit; ///< largest L; nothing: no limit by a table
    std::string token_type_table;        ///< its row 0 is added to every input row; empty: none
    NormNames embedding_norm;            ///< between the sum of embeddings and the first layer

    /// Ids around the words in the `special` variant, e.g. {[CLS]} and {[SEP]}; both empty: no such variant.
    std::vector<std::int64_t> special_leading, special_trailing;

    std::vector<LayerNames> layer_names; ///< `layers_present` entries
    /// Where `layers_present` < `layers`: the sentence that names the first missing tensor.
    std::string missing_tensor;
};

/// A network as data: read from config and tensor names, before any weight is read.
struct Architecture {
    std::string family_id;    ///< "bert"
    std::string family_label; ///< "BERT"
    std::vector<Stack> stacks; ///< default one first
    std::int64_t vocabulary_size = 0; ///< rows of the word table in this file
    std::optional<std::int64_t> pad_token_id;
    /// Ids (original vocabulary) that are special, and never drawn as the word.
    std::vector<std::int64_t> special_token_ids;
    std::vector<std::string> notes; ///< things people should know: missing layers, defaults taken, differences

    [[nodiscard]] const Stack* find_stack(const std::string& id) const
    {
        if (id.empty() && !stacks.empty()) return &stacks.front();
        for (const Stack& stack : stacks)
            if (stack.id == id) return &stack;
        return nullptr;
    }
};

} // namespace posiscope::core
