// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>
#include <string>

#include "core/base/text.h"
#include "core/model/families/config_checks.h"
#include "core/model/families/families.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"bert"};
constexpr std::array<std::string_view, 1> name_prefixes{"bert."};
constexpr std::array<std::string_view, 3> signature{
    "embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight",
    "encoder.layer.0.attention.self.query.weight"};

/// Reads the names of one layer; absent tensors leave empty names, tensors of a wrong shape are an error.
class LayerReader {
public:
    LayerReader(const TensorNames& names, std::string prefix, double epsilon)
        : m_names(names), m_prefix(std::move(prefix)), m_epsilon(epsilon)
    {
    }

    LinearNames linear(const std::string& name, std::int64_t out, std::int64_t in)
    {
        return {tensor(name + ".weight", {out, in}), tensor(name + ".bias", {out}), false};
    }

    NormNames norm(const std::string& name, std::int64_t size)
    {
        return {NormKind::layer_norm, tensor(name + ".weight", {size}), tensor(name + ".bias", {size}), m_epsilon};
    }

    std::optional<Error> fault; ///< the first one met

private:
    std::string tensor(const std::string& name, const Shape& shape)
    {
        const auto found = m_names.optional(m_prefix + name, shape);
        if (!found) {
            if (!fault) fault = found.error();
            return {};
        }
        return *found == nullptr ? std::string{} : (*found)->name;
    }

    const TensorNames& m_names;
    std::string m_prefix;
    double m_epsilon;
};

Result<void> read_layers(const TensorNames& names, Stack& stack, std::int64_t intermediate_size)
{
    const std::int64_t d = stack.hidden_size;
    for (std::int64_t layer = 0; layer < stack.layers; ++layer) {
        LayerReader reader(names, "encoder.layer." + std::to_string(layer) + ".", stack.embedding_norm.epsilon);
        LayerNames found;
        found.query = reader.linear("attention.self.query", d, d);
        found.key = reader.linear("attention.self.key", d, d);
        found.value = reader.linear("attention.self.value", d, d);
        found.attention_output = reader.linear("attention.output.dense", d, d);
        found.attention_norm = reader.norm("attention.output.LayerNorm", d);
        found.feed_forward_in = reader.linear("intermediate.dense", intermediate_size, d);
        found.feed_forward_out = reader.linear("output.dense", d, intermediate_size);
        found.feed_forward_norm = reader.norm("output.LayerNorm", d);
        if (reader.fault) return *reader.fault;
        if (found.query.weight.empty() || found.key.weight.empty()) {
            const char* lacking = found.query.weight.empty() ? "query" : "key";
            stack.missing_tensor = names.missing("encoder.layer." + std::to_string(layer) + ".attention.self." +
                                                 lacking + ".weight").message;
            return {};
        }
        stack.layer_names.push_back(std::move(found));
        ++stack.layers_present;
    }
    return {};
}

/// Number of layers: the config's or, where it has none, those in the file.
Result<std::int64_t> layer_count(const TensorNames& names, std::vector<std::string>& notes)
{
    const auto wanted = names.checkpoint().config().optional_integer("num_hidden_layers", 1, most_layers);
    if (!wanted) return wanted.error();
    if (*wanted) return **wanted;
    std::int64_t count = 0;
    while (names.find("encoder.layer." + std::to_string(count) + ".attention.self.query.weight") != nullptr) ++count;
    if (count == 0) return names.checkpoint().config().field_error("num_hidden_layers", "is missing");
    notes.push_back(in_quotes(names.checkpoint().config().file_name()) + " has no 'num_hidden_layers'; " +
                    std::to_string(count) + " was counted from the tensor names");
    return count;
}

/// BERT: post-norm, learned absolute positions, token type row 0 added to every input row.
/// Source: Devlin et al. 2019; attention after Vaswani et al. 2017 with logit_scale = 1 / sqrt(head_dim).
Result<Architecture> read_bert(const TensorNames& names)
{
    const Checkpoint& checkpoint = names.checkpoint();
    const ConfigJson& config = checkpoint.config();
    Architecture architecture;
    std::vector<std::string>& notes = architecture.notes;
    notes = names.warnings();

    const auto scheme = config.optional_text("position_embedding_type");
    if (!scheme) return scheme.error();
    if (*scheme && **scheme != "absolute")
        return Error{ErrorCode::unsupported_model,
                     in_quotes(config.file_name()) + ": the position_embedding_type " + in_quotes(**scheme, 60) +
                         " is not known; 'absolute' was expected",
                     "recognising the network"};

    const auto words = names.require("embeddings.word_embeddings.weight", {-1, -1});
    if (!words) return words.error();
    const auto hidden = checked_hidden_size(checkpoint, "hidden_size", **words, notes);
    if (!hidden) return hidden.error();
    const auto vocabulary =
        checked_rows(checkpoint, "vocab_size", **words, has_cut_vocabulary(checkpoint), notes);
    if (!vocabulary) return vocabulary.error();
    const auto positions = names.require("embeddings.position_embeddings.weight", {-1, *hidden});
    if (!positions) return positions.error();
    const auto rows = checked_rows(checkpoint, "max_position_embeddings", **positions, false, notes);
    if (!rows) return rows.error();
    const auto token_types = names.optional("embeddings.token_type_embeddings.weight", {-1, *hidden});
    if (!token_types) return token_types.error();
    const auto norm_gain = names.require("embeddings.LayerNorm.weight", {*hidden});
    if (!norm_gain) return norm_gain.error();
    const auto norm_bias = names.require("embeddings.LayerNorm.bias", {*hidden});
    if (!norm_bias) return norm_bias.error();
    const auto heads = checked_heads(checkpoint, "num_attention_heads", *hidden);
    if (!heads) return heads.error();
    const auto layers = layer_count(names, notes);
    if (!layers) return layers.error();
    const auto intermediate = config.optional_integer("intermediate_size", 1, largest_hidden_size);
    if (!intermediate) return intermediate.error();
    const auto epsilon = checked_epsilon(checkpoint, "layer_norm_eps", 1e-12, notes);
    if (!epsilon) return epsilon.error();
    const auto activation = checked_activation(checkpoint, "hidden_act", "gelu", notes);
    if (!activation) return activation.error();
    const auto decoder = config.optional_flag("is_decoder");
    if (!decoder) return decoder.error();
    const auto pad = config.optional_integer("pad_token_id", -1, INT64_MAX);
    if (!pad) return pad.error();

    Stack stack;
    stack.causal = decoder->value_or(false);
    stack.id = stack.causal ? "decoder" : "encoder";
    stack.scheme_id = "absolute_learned";
    stack.scheme_label = "learned absolute";
    stack.layers = *layers;
    stack.hidden_size = *hidden;
    stack.heads = *heads;
    stack.head_dim = *hidden / *heads;
    stack.logit_scale = 1.0 / std::sqrt(static_cast<double>(stack.head_dim));
    stack.activation = *activation;
    stack.word_table = (*words)->name;
    stack.position_table = (*positions)->name;
    stack.length_limit = *rows;
    if (*token_types != nullptr && (*token_types)->shape[0] > 0) stack.token_type_table = (*token_types)->name;
    stack.embedding_norm = {NormKind::layer_norm, (*norm_gain)->name, (*norm_bias)->name, *epsilon};
    if (auto read = read_layers(names, stack, intermediate->value_or(-1)); !read) return read.error();
    if (stack.layers_present == 0)
        notes.push_back(stack.missing_tensor + "; no layer can be probed");
    else if (stack.layers_present < stack.layers)
        notes.push_back("this file holds " + counted(static_cast<std::size_t>(stack.layers_present), "layer", "layers") +
                        " of " + std::to_string(stack.layers));

    architecture.vocabulary_size = *vocabulary;
    // -1 and null mean that there is none; a missing key is BERT's own 0.
    if (*pad && **pad >= 0) architecture.pad_token_id = **pad;
    else if (!config.root().contains("pad_token_id")) architecture.pad_token_id = 0;
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

/// BERT's WordPiece vocabularies: special and unused entries stand in square brackets, "##" continues a word.
void apply_bert_vocabulary(Architecture& architecture, std::vector<Vocabulary::Entry>& entries)
{
    std::optional<std::int64_t> cls, sep;
    for (Vocabulary::Entry& entry : entries) {
        const bool bracketed = entry.text.size() > 2 && entry.text.front() == '[' && entry.text.back() == ']';
        if (bracketed) architecture.special_token_ids.push_back(entry.id);
        if (bracketed || entry.text.starts_with("##")) entry.drawable = false;
        if (entry.text == "[CLS]") cls = entry.id;
        if (entry.text == "[SEP]") sep = entry.id;
    }
    if (!cls || !sep) return;
    for (Stack& stack : architecture.stacks) {
        stack.special_leading = {*cls};
        stack.special_trailing = {*sep};
    }
}

} // namespace

ModelFamily bert_family()
{
    return {"bert", "BERT", model_types, name_prefixes, signature, read_bert, apply_bert_vocabulary};
}

} // namespace posiscope::core
