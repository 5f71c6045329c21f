// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/model/families/fairseq_layers.h"
#include "core/model/families/families.h"

namespace posiscope::core {
namespace {

// Such files have no config.json: the settings lie in the file itself, and names tell the family.
constexpr std::array<std::string_view, 3> transformer_signature{
    "encoder.embed_tokens.weight", "decoder.embed_tokens.weight",
    "decoder.layers.0.encoder_attn.k_proj.weight"};
constexpr std::array<std::string_view, 3> fconv_signature{
    "encoder.embed_positions.weight", "encoder.convolutions.0.weight_v", "decoder.convolutions.0.weight_v"};

/// fairseq's padding index: the first words are <s>, <pad>, </s> and <unk>, and the first position is the one behind.
constexpr std::int64_t padding = 1;

/// Newer files keep the model's settings in a part of their own.
void enter_model_settings(StackReader& reader)
{
    const auto& root = reader.config().root();
    if (const auto model = root.find("model"); model != root.end() && model->is_object())
        reader.enter_config("model");
}

/// Vectors by clipped offset for keys and values, a pair of tables in each layer.
void read_relative_tables(StackReader& reader, Stack& stack, std::int64_t furthest)
{
    RelativeVectors vectors;
    vectors.rows = 2 * furthest + 1;
    vectors.centre = furthest;
    vectors.features = stack.head_dim;
    vectors.for_keys = vectors.for_values = true;
    stack.relative_vectors = vectors;
    stack.scheme_id = "relative_key_value";
    stack.scheme_label = "relative keys and values";
    for (std::size_t n = 0; n < stack.layer_names.size() && reader.ok(); ++n) {
        const std::string attention = stack.id + ".layers." + std::to_string(n) + ".self_attn.";
        LayerNames& layer = stack.layer_names[n];
        for (const auto& [name, table] : {std::pair("relative_positions_keys.weight", &layer.key_table),
                                          {"relative_positions_values.weight", &layer.value_table}}) {
            *table = reader.tensor_if_there(attention + name, {vectors.rows, stack.head_dim});
            if (table->empty() && reader.ok()) reader.fail(reader.names().missing(attention + name));
        }
    }
}

void read_absolute_positions(StackReader& reader, Stack& stack)
{
    stack.first_position_row = padding + 1;
    const bool has_table = reader.names().find(stack.id + ".embed_positions.weight") != nullptr;
    if (reader.flag_or(stack.id + "_learned_pos", has_table)) {
        stack.scheme_id = "absolute_learned";
        stack.scheme_label = "learned absolute";
        reader.position_table(stack, stack.id + ".embed_positions.weight", stack.hidden_size, "", padding + 1,
                              0);
        return;
    }
    stack.scheme_id = "absolute_sinusoidal";
    stack.scheme_label = "sinusoidal, computed";
    stack.absolute = AbsolutePositions::sinusoidal;
    stack.sinusoidal.last_frequency_is_base = true;
}

Stack read_stack(StackReader& reader, const std::string& id)
{
    Stack stack;
    stack.id = id;
    stack.causal = stack.has_cross_attention = id == "decoder";
    stack.hidden_size = reader.word_table(stack, id + ".embed_tokens.weight", id + "_embed_dim");
    if (!reader.flag_or("no_scale_embedding", false))
        stack.word_factor = std::sqrt(static_cast<double>(stack.hidden_size));
    stack.heads = reader.heads(id + "_attention_heads", stack.hidden_size);
    stack.head_dim = stack.hidden_size / stack.heads;
    stack.logit_scale = 1.0 / std::sqrt(static_cast<double>(stack.head_dim));
    stack.activation = reader.activation("activation_fn", "relu");
    const bool pre_norm = reader.flag_or(id + "_normalize_before", false);
    LayerPattern layers = fairseq_layers(id, pre_norm);
    layers.inner_size = reader.optional_integer(id + "_ffn_embed_dim", 1, largest_hidden_size).value_or(-1);
    stack.layers = reader.layers(id + "_layers", [&](std::int64_t n) {
        return id + ".layers." + std::to_string(n) + ".self_attn.q_proj.weight";
    });
    read_layers_by_pattern(reader, stack, layers);
    if (pre_norm) reader.final_norm(stack, id + ".layer_norm", NormKind::layer_norm, layers.epsilon);
    if (reader.names().find(id + ".layernorm_embedding.weight") != nullptr)
        stack.embedding_norm =
            reader.norm(id + ".layernorm_embedding", NormKind::layer_norm, stack.hidden_size, layers.epsilon);
    if (!reader.flag_or("no_token_positional_embeddings", false)) read_absolute_positions(reader, stack);
    if (const auto furthest = reader.optional_integer("max_relative_positions", 1, 1 << 24))
        read_relative_tables(reader, stack, *furthest);
    if (stack.scheme_id.empty()) stack.scheme_id = stack.scheme_label = "none";
    return stack;
}

/// fairseq's Transformer: sinusoidal positions (sines before cosines, the first position is row 2), learned ones, or
/// relative keys and values; words times sqrt(d).
/// Source: Ott et al. 2019; Vaswani et al. 2017; Shaw et al. 2018.
Result<Architecture> read_transformer(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    enter_model_settings(reader);
    // BART and its relatives carry the same names, but other scales and norms.
    if (reader.config().has("d_model") && !reader.config().has("encoder_embed_dim"))
        reader.fail(
            Error{ErrorCode::unsupported_model,
                  in_quotes(reader.config().file_name()) +
                      " has 'd_model', as BART and its relatives have, but no 'model_type' that tells "
                      "which of them it is",
                  "recognising the network"});
    for (const std::string id : {"encoder", "decoder"}) {
        if (!reader.ok()) return *reader.fault();
        Stack stack = read_stack(reader, id);
        if (!reader.ok()) return *reader.fault();
        architecture.stacks.push_back(std::move(stack));
    }
    architecture.pad_token_id = padding;
    return architecture;
}

/// ConvS2S: convolutions, so that there is no attention to probe; its position tables can be looked at.
/// Source: Gehring et al. 2017, sec. 3.1, and the released code (position i is row i + 2).
Result<Architecture> read_fconv(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    enter_model_settings(reader);
    for (const std::string id : {"encoder", "decoder"}) {
        Stack stack;
        stack.id = id;
        stack.causal = id == "decoder";
        stack.heads = 1;
        stack.hidden_size = stack.head_dim =
            reader.word_table(stack, id + ".embed_tokens.weight", id + "_embed_dim");
        stack.scheme_id = "absolute_learned";
        stack.scheme_label = "learned absolute";
        reader.position_table(stack, id + ".embed_positions.weight", stack.hidden_size, "", padding + 1, 0);
        stack.missing_tensor = "ConvS2S has convolutions in the place of self-attention";
        if (!reader.ok()) return *reader.fault();
        architecture.stacks.push_back(std::move(stack));
    }
    reader.note(
        "ConvS2S has convolutions in the place of self-attention: its position tables can be viewed, but no "
        "layer can be probed");
    architecture.pad_token_id = padding;
    return architecture;
}

} // namespace

ModelFamily fairseq_family()
{
    return {"fairseq",        "fairseq Transformer",         {}, {}, transformer_signature,
            read_transformer, apply_angle_bracket_vocabulary};
}

ModelFamily fconv_family()
{
    return {"fconv", "ConvS2S", {}, {}, fconv_signature, read_fconv, apply_angle_bracket_vocabulary};
}

} // namespace posiscope::core
