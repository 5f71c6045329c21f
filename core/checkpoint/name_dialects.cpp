// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/name_dialects.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/text.h"

namespace posiscope::core {
namespace {

struct NameRule {
    std::string_view from, to; ///< "{}" in both: any number
    bool turned = false;       ///< the matrix is stored transposed
};

// ---------------------------------------------------------------------------------------------------- GGUF

constexpr std::array bert_rules{
    NameRule{"token_embd", "embeddings.word_embeddings"},
    NameRule{"position_embd", "embeddings.position_embeddings"},
    NameRule{"token_types", "embeddings.token_type_embeddings"},
    NameRule{"token_embd_norm", "embeddings.LayerNorm"},
    NameRule{"blk.{}.attn_q", "encoder.layer.{}.attention.self.query"},
    NameRule{"blk.{}.attn_k", "encoder.layer.{}.attention.self.key"},
    NameRule{"blk.{}.attn_v", "encoder.layer.{}.attention.self.value"},
    NameRule{"blk.{}.attn_output", "encoder.layer.{}.attention.output.dense"},
    NameRule{"blk.{}.attn_output_norm", "encoder.layer.{}.attention.output.LayerNorm"},
    NameRule{"blk.{}.ffn_up", "encoder.layer.{}.intermediate.dense"},
    NameRule{"blk.{}.ffn_down", "encoder.layer.{}.output.dense"},
    NameRule{"blk.{}.layer_output_norm", "encoder.layer.{}.output.LayerNorm"},
};

constexpr std::array llama_rules{
    NameRule{"token_embd", "model.embed_tokens"},
    NameRule{"output_norm", "model.norm"},
    NameRule{"output", "lm_head"},
    NameRule{"blk.{}.attn_norm", "model.layers.{}.input_layernorm"},
    NameRule{"blk.{}.attn_q", "model.layers.{}.self_attn.q_proj"},
    NameRule{"blk.{}.attn_k", "model.layers.{}.self_attn.k_proj"},
    NameRule{"blk.{}.attn_v", "model.layers.{}.self_attn.v_proj"},
    NameRule{"blk.{}.attn_output", "model.layers.{}.self_attn.o_proj"},
    NameRule{"blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_norm"},
    NameRule{"blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_norm"},
    NameRule{"blk.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"},
    NameRule{"blk.{}.ffn_gate", "model.layers.{}.mlp.gate_proj"},
    NameRule{"blk.{}.ffn_up", "model.layers.{}.mlp.up_proj"},
    NameRule{"blk.{}.ffn_down", "model.layers.{}.mlp.down_proj"},
};

constexpr std::array gpt2_rules{
    NameRule{"token_embd", "wte"},
    NameRule{"position_embd", "wpe"},
    NameRule{"output_norm", "ln_f"},
    NameRule{"output", "lm_head"},
    NameRule{"blk.{}.attn_norm", "h.{}.ln_1"},
    NameRule{"blk.{}.attn_qkv", "h.{}.attn.c_attn", true},
    NameRule{"blk.{}.attn_output", "h.{}.attn.c_proj", true},
    NameRule{"blk.{}.ffn_norm", "h.{}.ln_2"},
    NameRule{"blk.{}.ffn_up", "h.{}.mlp.c_fc", true},
    NameRule{"blk.{}.ffn_down", "h.{}.mlp.c_proj", true},
};

constexpr std::array t5_rules{
    NameRule{"token_embd", "shared"},
    NameRule{"output", "lm_head"},
    NameRule{"enc.output_norm", "encoder.final_layer_norm"},
    NameRule{"dec.output_norm", "decoder.final_layer_norm"},
    NameRule{"enc.blk.{}.attn_norm", "encoder.block.{}.layer.0.layer_norm"},
    NameRule{"enc.blk.{}.attn_q", "encoder.block.{}.layer.0.SelfAttention.q"},
    NameRule{"enc.blk.{}.attn_k", "encoder.block.{}.layer.0.SelfAttention.k"},
    NameRule{"enc.blk.{}.attn_v", "encoder.block.{}.layer.0.SelfAttention.v"},
    NameRule{"enc.blk.{}.attn_o", "encoder.block.{}.layer.0.SelfAttention.o"},
    NameRule{"enc.blk.{}.attn_rel_b", "encoder.block.{}.layer.0.SelfAttention.relative_attention_bias"},
    NameRule{"enc.blk.{}.ffn_norm", "encoder.block.{}.layer.1.layer_norm"},
    NameRule{"enc.blk.{}.ffn_gate", "encoder.block.{}.layer.1.DenseReluDense.wi_0"},
    NameRule{"enc.blk.{}.ffn_up", "encoder.block.{}.layer.1.DenseReluDense.wi_1"},
    NameRule{"enc.blk.{}.ffn_down", "encoder.block.{}.layer.1.DenseReluDense.wo"},
    NameRule{"dec.blk.{}.attn_norm", "decoder.block.{}.layer.0.layer_norm"},
    NameRule{"dec.blk.{}.attn_q", "decoder.block.{}.layer.0.SelfAttention.q"},
    NameRule{"dec.blk.{}.attn_k", "decoder.block.{}.layer.0.SelfAttention.k"},
    NameRule{"dec.blk.{}.attn_v", "decoder.block.{}.layer.0.SelfAttention.v"},
    NameRule{"dec.blk.{}.attn_o", "decoder.block.{}.layer.0.SelfAttention.o"},
    NameRule{"dec.blk.{}.attn_rel_b", "decoder.block.{}.layer.0.SelfAttention.relative_attention_bias"},
    NameRule{"dec.blk.{}.cross_attn_norm", "decoder.block.{}.layer.1.layer_norm"},
    NameRule{"dec.blk.{}.cross_attn_q", "decoder.block.{}.layer.1.EncDecAttention.q"},
    NameRule{"dec.blk.{}.cross_attn_k", "decoder.block.{}.layer.1.EncDecAttention.k"},
    NameRule{"dec.blk.{}.cross_attn_v", "decoder.block.{}.layer.1.EncDecAttention.v"},
    NameRule{"dec.blk.{}.cross_attn_o", "decoder.block.{}.layer.1.EncDecAttention.o"},
    NameRule{"dec.blk.{}.ffn_norm", "decoder.block.{}.layer.2.layer_norm"},
    NameRule{"dec.blk.{}.ffn_gate", "decoder.block.{}.layer.2.DenseReluDense.wi_0"},
    NameRule{"dec.blk.{}.ffn_up", "decoder.block.{}.layer.2.DenseReluDense.wi_1"},
    NameRule{"dec.blk.{}.ffn_down", "decoder.block.{}.layer.2.DenseReluDense.wo"},
};

struct GgufArchitecture {
    std::string_view id; ///< general.architecture
    std::span<const NameRule> rules;
    bool interleaved_rotation =
        false; ///< rows of queries and keys were put in another order by the conversion
};

constexpr std::array gguf_architectures{
    GgufArchitecture{"bert", bert_rules},   GgufArchitecture{"llama", llama_rules, true},
    GgufArchitecture{"qwen2", llama_rules}, GgufArchitecture{"qwen3", llama_rules},
    GgufArchitecture{"gpt2", gpt2_rules},   GgufArchitecture{"t5", t5_rules},
};

/// `name` by a rule, or empty where it does not fit.
std::string name_by_rule(const NameRule& rule, std::string_view name)
{
    const std::size_t hole = rule.from.find("{}");
    if (hole == std::string_view::npos) return name == rule.from ? std::string(rule.to) : std::string{};
    if (!name.starts_with(rule.from.substr(0, hole))) return {};
    name.remove_prefix(hole);
    const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
    if (digits == 0 || name.substr(digits) != rule.from.substr(hole + 2)) return {};
    std::string out(rule.to);
    return out.replace(out.find("{}"), 2, name.substr(0, digits));
}

/// Conversion to GGUF turned the two halves of each head (rotary pairs k, k + half) into neighbours; this reads them back.
void undo_interleaving(TensorInfo& info, std::int64_t heads)
{
    const bool is_matrix = info.shape.size() == 2;
    if (heads < 1 || (!is_matrix && info.shape.size() != 1) || info.shape[0] % (2 * heads) != 0) return;
    const std::int64_t half = info.shape[0] / heads / 2, cols = is_matrix ? info.shape[1] : 1;
    info.axes = {{heads, 2 * half * cols}, {2, cols}, {half, 2 * cols}, {cols, 1}};
}

void translate_gguf(TensorFile& file)
{
    const auto config = file.enclosed_files.find("config.json");
    if (config == file.enclosed_files.end()) return;
    const auto root = nlohmann::json::parse(config->second, nullptr, false);
    if (!root.is_object() || !root.contains("model_type")) return;
    const auto id = root["model_type"].get<std::string>();
    const auto* architecture = std::find_if(gguf_architectures.begin(), gguf_architectures.end(),
                                            [&](const GgufArchitecture& row) { return row.id == id; });
    if (architecture == gguf_architectures.end()) return;
    const auto count = [&](const char* key, std::int64_t fallback) {
        const auto at = root.find(key);
        return at != root.end() && at->is_number_integer() ? at->get<std::int64_t>() : fallback;
    };
    // T5 v1.0 has one matrix in the place of a gate and its partner.
    const bool gated = root.value("feed_forward_proj", std::string()) != "relu";
    const std::int64_t heads = count("num_attention_heads", 0),
                       key_heads = count("num_key_value_heads", heads);
    for (TensorInfo& info : file.tensors) {
        const std::size_t dot = info.name.rfind('.');
        if (dot == std::string::npos) continue;
        const std::string_view stem = std::string_view(info.name).substr(0, dot),
                               leaf = std::string_view(info.name).substr(dot);
        for (const NameRule& rule : architecture->rules) {
            std::string name = name_by_rule(rule, stem);
            if (name.empty()) continue;
            if (!gated && name.ends_with(".DenseReluDense.wi_1")) name.resize(name.size() - 2);
            name += leaf;
            if (rule.turned && info.shape.size() == 2) {
                info.axes = {{info.shape[1], 1}, {info.shape[0], info.shape[1]}};
                std::swap(info.shape[0], info.shape[1]);
            }
            if (architecture->interleaved_rotation && name.ends_with(".q_proj.weight"))
                undo_interleaving(info, heads);
            if (architecture->interleaved_rotation && name.ends_with(".k_proj.weight"))
                undo_interleaving(info, key_heads);
            info.stored_name = std::exchange(info.name, std::move(name));
            break;
        }
    }
}

// ---------------------------------------------------------------------------------- TensorFlow, Keras, Flax, JAX

/// Parts of paths that PyTorch's BERT calls otherwise.
struct PartName {
    std::string_view from, to;
};
constexpr std::array part_names{
    // Hugging Face's Keras models, by the names of their attributes.
    PartName{"self_attention", "self"},
    PartName{"dense_output", "output"},
    PartName{"bert_output", "output"},
    // Google's ALBERT. One group of one layer is what was published.
    PartName{"attention_1", "attention"},
    // TensorFlow's model garden.
    PartName{"_attention_layer", "attention.self"},
    PartName{"_attention_layer_norm", "attention.output.LayerNorm"},
    PartName{"_attention_output_dense", "attention.output.dense"},
    PartName{"_query_dense", "query"},
    PartName{"_key_dense", "key"},
    PartName{"_value_dense", "value"},
    PartName{"_intermediate_dense", "intermediate.dense"},
    PartName{"_output_dense", "output.dense"},
    PartName{"_output_layer_norm", "output.LayerNorm"},
};

constexpr std::array vit_rules{
    NameRule{"cls", "embeddings.cls_token"},
    NameRule{"embedding", "embeddings.patch_embeddings.projection"},
    NameRule{"Transformer.posembed_input.pos_embedding", "embeddings.position_embeddings"},
    NameRule{"Transformer.encoder_norm", "layernorm"},
    NameRule{"Transformer.encoderblock_{}.LayerNorm_0", "encoder.layer.{}.layernorm_before"},
    NameRule{"Transformer.encoderblock_{}.LayerNorm_2", "encoder.layer.{}.layernorm_after"},
    NameRule{"Transformer.encoderblock_{}.MultiHeadDotProductAttention_1.query",
             "encoder.layer.{}.attention.attention.query"},
    NameRule{"Transformer.encoderblock_{}.MultiHeadDotProductAttention_1.key",
             "encoder.layer.{}.attention.attention.key"},
    NameRule{"Transformer.encoderblock_{}.MultiHeadDotProductAttention_1.value",
             "encoder.layer.{}.attention.attention.value"},
    NameRule{"Transformer.encoderblock_{}.MultiHeadDotProductAttention_1.out",
             "encoder.layer.{}.attention.output.dense"},
    NameRule{"Transformer.encoderblock_{}.MlpBlock_3.Dense_0", "encoder.layer.{}.intermediate.dense"},
    NameRule{"Transformer.encoderblock_{}.MlpBlock_3.Dense_1", "encoder.layer.{}.output.dense"},
    NameRule{"head", "classifier"},
};

/// ALBERT's shared layer, behind "encoder.".
constexpr std::array albert_rules{
    NameRule{"transformer.group_{}.inner_group_0.attention.self.query",
             "albert_layer_groups.{}.albert_layers.0.attention.query"},
    NameRule{"transformer.group_{}.inner_group_0.attention.self.key",
             "albert_layer_groups.{}.albert_layers.0.attention.key"},
    NameRule{"transformer.group_{}.inner_group_0.attention.self.value",
             "albert_layer_groups.{}.albert_layers.0.attention.value"},
    NameRule{"transformer.group_{}.inner_group_0.attention.output.dense",
             "albert_layer_groups.{}.albert_layers.0.attention.dense"},
    NameRule{"transformer.group_{}.inner_group_0.LayerNorm",
             "albert_layer_groups.{}.albert_layers.0.attention.LayerNorm"},
    NameRule{"transformer.group_{}.inner_group_0.LayerNorm_1",
             "albert_layer_groups.{}.albert_layers.0.full_layer_layer_norm"},
    NameRule{"transformer.group_{}.inner_group_0.ffn_1.intermediate.dense",
             "albert_layer_groups.{}.albert_layers.0.ffn"},
    NameRule{"transformer.group_{}.inner_group_0.ffn_1.intermediate.output.dense",
             "albert_layer_groups.{}.albert_layers.0.ffn_output"},
};

bool is_number(std::string_view text)
{
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// "layer_12" -> 12 for the stem "layer"; nothing for other parts.
std::string_view number_behind(std::string_view part, std::string_view stem)
{
    if (!part.starts_with(stem)) return {};
    part.remove_prefix(stem.size());
    return is_number(part) ? part : std::string_view{};
}

/// One part of a path as PyTorch says it.
std::string translated_part(std::string_view part)
{
    for (const PartName& row : part_names)
        if (part == row.from) return std::string(row.to);
    // tf.keras numbers layers without a name of their own.
    if (part == "layer_normalization" || !number_behind(part, "layer_normalization_").empty())
        return "LayerNorm";
    if (const auto number = number_behind(part, "layer_"); !number.empty())
        return "layer." + std::string(number);
    return std::string(part);
}

/// The place that a numbered layer of a Keras model of the model garden has in BERT; leaves the parts behind it.
std::string garden_layer(std::size_t number)
{
    constexpr std::array<std::string_view, 4> first{
        "embeddings.word_embeddings", "embeddings.position_embeddings", "embeddings.token_type_embeddings",
        "embeddings.LayerNorm"};
    return number < first.size() ? std::string(first[number])
                                 : "encoder.layer." + std::to_string(number - first.size());
}

/// Turns a kernel as Flax and TensorFlow keep it ([in, out], heads apart, picture last) into PyTorch's order.
void turn_kernel(TensorInfo& info, std::string_view owner)
{
    const Shape shape = info.shape;
    if (shape.size() == 2) {
        transpose(info);
    } else if (shape.size() == 3) {
        const bool heads_first = owner.ends_with("dense") || owner.ends_with("out");
        reshape(info,
                heads_first ? Shape{shape[0] * shape[1], shape[2]} : Shape{shape[0], shape[1] * shape[2]});
        transpose(info);
    } else if (shape.size() == 4) {
        permute(info, {3, 2, 0, 1});
    }
}

struct Leaf {
    std::string_view from, to;
};
constexpr std::array leaves{
    Leaf{"kernel", "weight"},    Leaf{"bias", "bias"},         Leaf{"weight", "weight"},
    Leaf{"gamma", "weight"},     Leaf{"beta", "bias"},         Leaf{"scale", "weight"},
    Leaf{"embedding", "weight"}, Leaf{"embeddings", "weight"},
};

void translate_path(TensorInfo& info, bool is_vit)
{
    constexpr std::string_view keras_ending = "/.ATTRIBUTES/VARIABLE_VALUE";
    std::string_view path = info.name;
    if (path.ends_with(keras_ending)) path.remove_suffix(keras_ending.size());
    auto parts = split(path, '/');
    while (parts.size() > 1 &&
           (parts.front() == "params" || parts.front() == "model" || parts.front() == "target"))
        parts.erase(parts.begin());
    const std::string_view last = parts.back();
    const auto* leaf =
        std::find_if(leaves.begin(), leaves.end(), [&](const Leaf& row) { return row.from == last; });
    std::string owner;
    const std::size_t owners = leaf == leaves.end() ? parts.size() : parts.size() - 1;
    for (std::size_t n = 0; n < owners; ++n) {
        std::string part = is_vit ? std::string(parts[n]) : translated_part(parts[n]);
        if (const auto number = number_behind(parts[n], "layer_with_weights-");
            !number.empty() && number.size() < 6) {
            owner.clear();
            part = garden_layer(std::stoul(std::string(number)));
        }
        owner += (owner.empty() ? "" : ".") + part;
    }
    std::string name;
    if (is_vit) {
        for (const NameRule& rule : vit_rules)
            if (name = name_by_rule(rule, owner); !name.empty()) break;
    } else if (const std::size_t at = owner.find("encoder.transformer.group_"); at != std::string::npos) {
        for (const NameRule& rule : albert_rules)
            if (const std::string found = name_by_rule(rule, std::string_view(owner).substr(at + 8));
                !found.empty()) {
                name = owner.substr(0, at + 8) + found;
                break;
            }
    }
    if (name.empty()) name = owner;
    if (name.empty()) return;
    if (leaf != leaves.end()) {
        // Keras calls the table of words itself "weight" of the embeddings.
        if (last == "weight" && name.ends_with("embeddings") && name.find("_embeddings") == std::string::npos)
            name += ".word_embeddings";
        name += "." + std::string(leaf->to);
    } else if (name.ends_with("_embeddings") && info.shape.size() == 2) {
        name += ".weight";
    }
    if (last == "kernel") turn_kernel(info, owner);
    if (last == "bias" && info.shape.size() == 2) reshape(info, {info.shape[0] * info.shape[1]});
    if (name != info.name) info.stored_name = std::exchange(info.name, std::move(name));
}

void translate_paths(TensorFile& file)
{
    const bool is_vit = std::any_of(file.tensors.begin(), file.tensors.end(), [](const TensorInfo& info) {
        return info.name == "Transformer/posembed_input/pos_embedding";
    });
    for (TensorInfo& info : file.tensors)
        if (info.name.find('/') != std::string::npos || (is_vit && info.name == "cls"))
            translate_path(info, is_vit);
    std::map<std::string, std::string, std::less<>> absent;
    for (const auto& [name, reason] : file.absent) {
        TensorInfo stand_in;
        stand_in.name = name;
        stand_in.shape = {1, 1};
        if (name.find('/') != std::string::npos) translate_path(stand_in, is_vit);
        absent.emplace(stand_in.name, reason);
    }
    file.absent = std::move(absent);
}

} // namespace

void translate_names(TensorFile& file)
{
    if (file.format == "gguf")
        translate_gguf(file);
    else if (file.format == "tensorflow" || file.format == "flax_msgpack" || file.format == "npz")
        translate_paths(file);
    // Two names that became one: the later keeps that of the file.
    std::set<std::string, std::less<>> names;
    for (TensorInfo& info : file.tensors)
        if (!names.insert(info.name).second && !info.stored_name.empty())
            info.name = std::exchange(info.stored_name, {});
}

} // namespace posiscope::core
