// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/architecture.h"
#include "core/model/families/config_checks.h"
#include "core/model/tensor_names.h"
#include "core/model/vocabulary.h"

namespace posiscope::core {

/// What every family reads in the same way: numbers of the config held against tensors, and names of tensors held
/// against their shapes. The first fault is kept and everything after it gives empty values, so that a family's file
/// can say in a row what the family looks like and ask for the fault once.
class StackReader {
public:
    StackReader(const TensorNames& names, Architecture& architecture);

    [[nodiscard]] const ConfigJson& config() const { return m_config; }
    /// Reads settings from an object inside the config from now on ("text_config").
    void enter_config(std::string_view key);
    [[nodiscard]] const TensorNames& names() const { return m_names; }
    [[nodiscard]] const std::optional<Error>& fault() const { return m_fault; }
    [[nodiscard]] bool ok() const { return !m_fault; }
    void fail(Error error);
    void note(std::string text);

    // Config. The first of several keys that is there is taken.
    std::int64_t integer(std::string_view key, std::int64_t least, std::int64_t most);
    std::optional<std::int64_t> optional_integer(std::string_view key, std::int64_t least, std::int64_t most);
    std::int64_t integer_or(std::string_view key, std::int64_t published_default, std::int64_t least,
                            std::int64_t most);
    double number_or(std::string_view key, double published_default, double least, double most);
    bool flag_or(std::string_view key, bool published_default);
    std::string text_or(std::string_view key, std::string_view published_default);
    double epsilon(std::string_view key, double published_default);
    std::string activation(std::string_view key, std::string_view published_default);
    std::int64_t heads(std::string_view key, std::int64_t hidden_size);
    /// Layers as the config says or, where it does not, as `first_of_layer` counts them; the published default, where
    /// there is one, for families whose layers share their weights.
    std::int64_t layers(std::string_view key, const std::function<std::string(std::int64_t)>& first_of_layer,
                        std::int64_t published_default = 0);

    /// Rotary positions from `rope_parameters`, or `rope_theta`, `rotary_pct` and `rope_scaling` of older configs.
    RotaryScheme rotary(std::int64_t head_dim, double published_base, double published_share = 1.0);

    // Tensors.
    /// The word table: sets the vocabulary size and returns its columns, held against the config.
    std::int64_t word_table(Stack& stack, std::string_view canonical, std::string_view size_key,
                            std::string_view vocabulary_key = "vocab_size");
    /// A position table [rows, columns]; rows before `first_row` are not used. The config's number of positions plus
    /// `rows_beside_config` is what the table should have.
    void position_table(Stack& stack, std::string_view canonical, std::int64_t columns, std::string_view key,
                        std::int64_t first_row, std::int64_t rows_beside_config);
    void token_types(Stack& stack, std::string_view canonical, std::int64_t columns);
    /// Must be there. The bias may be missing where `bias_optional`.
    NormNames norm(const std::string& canonical, NormKind kind, std::int64_t size, double epsilon,
                   bool bias_optional = false);
    LinearNames linear(const std::string& canonical, std::int64_t out, std::int64_t in,
                       bool transposed = false);
    /// The norm behind the last layer, which a decoder's cross-attention needs.
    void final_norm(Stack& stack, const std::string& canonical, NormKind kind, double epsilon);
    /// The same, but empty names where the tensor is missing: layers of a partial file.
    NormNames layer_norm_if_there(const std::string& canonical, NormKind kind, std::int64_t size,
                                  double epsilon);
    LinearNames linear_if_there(const std::string& canonical, std::int64_t out, std::int64_t in,
                                bool transposed = false);
    std::string tensor_if_there(const std::string& canonical, const Shape& shape);
    /// A matrix by its full name, without a bias, perhaps of a tensor with more dimensions.
    LinearNames tensor_linear_if_there(const std::string& canonical, const Shape& shape,
                                       bool transposed = false);

    /// Reads layers 0, 1, ... by `read_layer` until one lacks queries or keys.
    /// @param query, key  canonical names of the weights that must be there, for messages
    void read_layers(Stack& stack, const std::function<LayerNames(std::int64_t)>& read_layer,
                     const std::function<std::string(std::int64_t)>& query,
                     const std::function<std::string(std::int64_t)>& key);

    /// pad_token_id: the config's, or the family's where the config has no such key; null and -1: none.
    void pad_token(std::optional<std::int64_t> published_default);
    /// Special tokens around the words by their ids in the config; nothing where one of them is missing.
    void special_by_config(Stack& stack, std::optional<std::string_view> leading_key,
                           std::optional<std::string_view> trailing_key);

private:
    template <class T>
    T take(Result<T> result, T fallback)
    {
        if (m_fault) return fallback;
        if (result) return *std::move(result);
        m_fault = result.error();
        return fallback;
    }

    const TensorNames& m_names;
    Architecture& m_architecture;
    ConfigJson m_config;
    std::optional<Error> m_fault;
};

/// How a family calls the parts of layer N; "{}" in `layer` stands for N. An empty name: the family has no such part.
struct LayerPattern {
    std::string layer; ///< "encoder.layer.{}."
    std::string input_norm = {};
    std::string query, key, value, output;
    std::string query_norm = {}, key_norm = {};
    std::string output_norm = {};
    std::string feed_forward_input_norm = {};
    std::string feed_forward_in, feed_forward_gate = {}, feed_forward_out;
    std::string feed_forward_output_norm = {};
    NormKind norm = NormKind::layer_norm;
    double epsilon = 1e-5;
    double gain_offset = 0.0;
    std::int64_t key_heads = 0;   ///< 0: as many as heads
    std::int64_t inner_size = -1; ///< of the feed-forward block; -1: any
    bool transposed = false;      ///< matrices are stored [in, out]
    /// Where query, key and value are one packed matrix (all three names the same): outputs of each.
    std::int64_t packed_rows = 0;
    std::vector<std::int64_t> query_outputs = {}, key_outputs = {}, value_outputs = {};
    /// The attention to the encoder.
    std::string cross_input_norm = {};
    std::string cross_query = {}, cross_key = {}, cross_value = {}, cross_output = {};
    std::string cross_output_norm = {};
    std::string attention_branch_scale = {}, feed_forward_branch_scale = {}; ///< full names behind `layer`
};

/// Reads the layers of a stack by their names.
void read_layers_by_pattern(StackReader& reader, Stack& stack, const LayerPattern& pattern);

/// 0, 1, ..., count - 1 shifted by `first`.
std::vector<std::int64_t> run_of_outputs(std::int64_t first, std::int64_t count);

/// Outputs of one of `parts` packed parts, for weights whose rows are [head][part][head_dim].
std::vector<std::int64_t> outputs_by_head(std::int64_t heads, std::int64_t head_dim, std::int64_t parts,
                                          std::int64_t part);

/// Outputs that repeat every key head for the query heads that share it.
std::vector<std::int64_t> outputs_of_shared_heads(std::int64_t heads, std::int64_t key_heads,
                                                  std::int64_t head_dim);

/// What a layer's attention and feed-forward block lack, as the name of the first missing weight; empty: nothing.
std::string first_missing(const std::vector<std::pair<std::string, const LinearNames*>>& parts);

/// Marks words of vocabularies whose special tokens stand in brackets "[CLS]" and whose "##" continues a word.
void apply_word_piece_vocabulary(Architecture& architecture, std::vector<Vocabulary::Entry>& entries);

/// Marks words of vocabularies whose special tokens stand in angle brackets "<s>".
void apply_angle_bracket_vocabulary(Architecture& architecture, std::vector<Vocabulary::Entry>& entries);

/// The same for families that read <s> words </s>, which are known by their texts where the config lacks their ids.
void apply_roberta_vocabulary(Architecture& architecture, std::vector<Vocabulary::Entry>& entries);

/// Special tokens around the words of every stack by their texts; nothing where one of them is missing.
void special_by_text(Architecture& architecture, const std::vector<Vocabulary::Entry>& entries,
                     std::string_view leading, std::string_view trailing);

} // namespace posiscope::core
