// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/position/grid_bias.h"
#include "core/position/relative_position_bias.h"
#include "core/position/relative_vectors.h"
#include "core/position/rotary.h"
#include "core/position/sinusoidal.h"

namespace posiscope::core {

/// A matrix (and perhaps bias) of a checkpoint by the names it has there. Stored [out, in] unless `transposed`;
/// a tensor of more dimensions is read as the matrix of its first (transposed: last) dimensions' rows.
struct LinearNames {
    std::string weight;
    std::string bias; ///< empty: none
    bool transposed = false;
    /// Which outputs belong to this projection, in order; empty: all. Packed queries, keys and values, interleaved
    /// heads and keys shared between heads are all told by this list.
    std::vector<std::int64_t> outputs;
    bool bias_is_packed =
        true; ///< `outputs` picks from the bias too; else the bias is of this projection alone

    [[nodiscard]] bool empty() const { return weight.empty(); }
};

enum class NormKind { none, layer_norm, rms_norm };

struct NormNames {
    NormKind kind = NormKind::none;
    std::string gain; ///< empty: ones
    std::string bias; ///< empty: zeros
    double epsilon = 0.0;
    double gain_offset = 0.0; ///< added to the gain (Gemma: 1)
};

/// One attention layer and what follows it, by tensor names. Names are those in the file; empty where the family has
/// no such part or the file lacks the tensor (a partial checkpoint).
struct LayerNames {
    NormNames attention_input_norm; ///< pre-norm families
    LinearNames query, key, value, attention_output;
    NormNames query_norm, key_norm;  ///< over the features of each head
    NormNames attention_output_norm; ///< post-norm families: behind the attention's residual sum
    NormNames feed_forward_input_norm;
    LinearNames feed_forward_in, feed_forward_gate, feed_forward_out;
    NormNames feed_forward_output_norm;
    std::string relative_bias_table; ///< [rows, heads] of a bias by bucket or by offset on a grid

    // Relative vectors (RelativeVectors of the stack).
    std::string key_table, query_table, value_table; ///< [rows, features] of this layer, or of all
    LinearNames key_map, query_map; ///< from a row's features to heads * head_dim; empty: none
    /// Transformer-XL and XLNet: [heads, head_dim], added to the query where it meets keys, positions and segments.
    std::string word_query_bias, position_query_bias, segment_query_bias;
    std::string segment_table; ///< [segments, heads, head_dim]

    NormNames cross_input_norm; ///< the attention to the encoder's rows
    LinearNames cross_query, cross_key, cross_value, cross_output;
    NormNames cross_output_norm;

    std::string attention_branch_scale, feed_forward_branch_scale; ///< [hidden_size] (LayerScale)
    /// Swin: heads of this layer where they are not the stack's, and what joins four neighbours before it.
    std::int64_t heads = 0, head_dim = 0;
    NormNames merge_norm;
    LinearNames merge;
    std::int64_t window_shift = 0;
    std::int64_t grid_rows = 0, grid_columns = 0; ///< patches of the whole image at this layer
    /// Canonical name of the first tensor behind the queries and keys that the file lacks; empty: complete.
    std::string lacks;
};

/// TUPE's matrix of position against position, the same for all words and layers, and its bias by bucket.
struct UntiedPositions {
    std::string table; ///< [rows, hidden size]; row 0 is [CLS] to others, row i + 1 position i
    NormNames norm;
    LinearNames query, key;
    std::string bias_table; ///< [buckets + 1, heads]: the last row is others to [CLS]
    std::int64_t buckets = 32, max_distance = 128;
    bool resets_first = true; ///< position 0 is the [CLS] slot
    double scale = 1.0;       ///< on position query . position key
};

/// Part of a vocabulary with columns of its own (adaptive input): word `first` + r is row r of `table`.
struct WordCluster {
    std::int64_t first = 0, rows = 0;
    std::string table;
    LinearNames map;
};

/// What stands at every position of the probe: a word, an image's patch or a vector of an encoder without words.
enum class InputContent { words, patches, vectors };

/// Where the vectors that are added to the words come from.
enum class AbsolutePositions { none, table, sinusoidal };

/// One stack of Transformer layers as data: what differs between families, and the names of its weights.
struct Stack {
    std::string id;                  ///< "encoder", "decoder", "text", "vision"
    std::string scheme_id;           ///< position scheme: "absolute_learned", ...
    std::string scheme_label;        ///< "learned absolute"
    std::int64_t layers = 0;         ///< as the config says
    std::int64_t layers_present = 0; ///< leading layers whose query and key weights the file holds
    std::int64_t hidden_size = 0;
    std::int64_t embedding_size = 0; ///< of the tables, where it differs from hidden_size; 0: the same
    std::int64_t heads = 0;
    std::int64_t head_dim = 0;
    double logit_scale = 1.0; ///< factor on query . key
    bool causal = false;
    std::int64_t window_before = -1, window_after = -1; ///< as in Network
    bool window_is_absence = false;
    std::string activation;

    InputContent content = InputContent::words;
    LinearNames patch_map; ///< [embedding size, channels * side * side]
    std::int64_t patch_channels = 0, patch_side = 0;
    NormNames content_norm;                       ///< on the content alone, before positions
    std::int64_t grid_rows = 0, grid_columns = 0; ///< of an image's patches; 0: no image
    std::vector<std::string> prefix_rows;         ///< vectors before the patches in `special` (class token)
    bool needs_prefix = false;                    ///< only `special` exists (BEiT)

    std::string word_table;                 ///< [vocabulary, embedding size]
    std::int64_t word_rows = 0;             ///< of that table, or of all clusters
    std::vector<WordCluster> word_clusters; ///< instead of word_table
    double word_factor = 1.0;               ///< on the word's row (Marian: sqrt(d))
    std::string token_type_table;           ///< its row 0 is added to every input row; empty: none

    AbsolutePositions absolute = AbsolutePositions::none;
    std::string position_table;          ///< [rows, embedding size]
    std::int64_t first_position_row = 0; ///< row that position 0 uses
    SinusoidalScheme sinusoidal;
    std::optional<BucketedBias> bucketed_bias;
    std::optional<RotaryScheme> rotary;
    std::optional<AlibiScheme> alibi;
    std::optional<RelativeVectors> relative_vectors;
    NormNames relative_norm; ///< of the rows of relative vectors
    std::optional<UntiedPositions> untied;
    std::optional<GridBias> grid_bias;
    std::optional<std::int64_t> length_limit; ///< largest L; nothing: no limit by a table

    NormNames embedding_norm;  ///< between the sum of embeddings and the first layer
    LinearNames embedding_map; ///< from embedding_size to hidden_size, behind embedding_norm
    bool parallel_feed_forward = false;
    bool has_cross_attention = false;    ///< behind the self-attention of every layer
    NormNames final_norm;                ///< behind the last layer; a decoder reads what it gives
    std::string final_norm_lacks;        ///< canonical name of its tensor where the file lacks it
    std::int64_t cross_length = 0;       ///< of the encoder's input; 0: as long as the decoder's
    std::int64_t feed_forward_width = 1; ///< of convolutions in the place of the feed-forward matrices

    /// Ids around the words in the `special` variant, e.g. {[CLS]} and {[SEP]}; both empty: no such variant.
    std::vector<std::int64_t> special_leading, special_trailing;

    std::vector<LayerNames> layer_names; ///< `layers_present` entries
    /// Where `layers_present` < `layers`: the sentence that names the first missing tensor.
    std::string missing_tensor;

    /// Whether the `special` and the `plain` variant exist.
    [[nodiscard]] bool has_special_input() const
    {
        return !special_leading.empty() || !special_trailing.empty() || !prefix_rows.empty();
    }
    [[nodiscard]] bool has_plain_input() const { return !needs_prefix; }

    [[nodiscard]] std::int64_t heads_of(std::int64_t layer) const
    {
        const bool own = layer >= 0 && layer < static_cast<std::int64_t>(layer_names.size()) &&
                         layer_names[static_cast<std::size_t>(layer)].heads > 0;
        return own ? layer_names[static_cast<std::size_t>(layer)].heads : heads;
    }

    [[nodiscard]] std::int64_t input_size() const
    {
        return embedding_size > 0 ? embedding_size : hidden_size;
    }
};

/// A network as data: read from config and tensor names, before any weight is read.
struct Architecture {
    std::string family_id;            ///< "bert"
    std::string family_label;         ///< "BERT"
    std::vector<Stack> stacks;        ///< default one first
    std::int64_t vocabulary_size = 0; ///< rows of the word table in this file
    std::optional<std::int64_t> pad_token_id;
    /// Ids (original vocabulary) that are special, and never drawn as the word.
    std::vector<std::int64_t> special_token_ids;
    std::vector<std::string>
        notes; ///< things people should know: missing layers, defaults taken, differences

    [[nodiscard]] const Stack* find_stack(const std::string& id) const
    {
        if (id.empty() && !stacks.empty()) return &stacks.front();
        for (const Stack& stack : stacks)
            if (stack.id == id) return &stack;
        return nullptr;
    }
};

} // namespace posiscope::core
