// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>

#include "core/base/text.h"
#include "core/model/families/families.h"
#include "core/model/families/stack_reader.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 5> model_types{"llama", "mistral", "qwen2", "qwen3", "gemma"};
constexpr std::array<std::string_view, 0> name_prefixes{};

/// LLaMA, Mistral, Qwen2, Qwen3, Gemma: pre-norm decoders with RMSNorm, rotary positions (feature k with k + half), gated
/// feed-forward blocks and key heads that several query heads share. Mistral: keys within a window. Qwen3: a norm on
/// every query and key head. Gemma: words times sqrt(hidden size), gains counted from 1.
/// Source: Touvron et al. 2023; Jiang et al. 2023; Yang et al. 2024, 2025; Gemma Team 2024; their released code.
Result<Architecture> read_llama(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    const std::string type = reader.text_or("model_type", "llama");
    const bool gemma = type == "gemma", qwen3 = type == "qwen3";
    Stack stack;
    stack.id = "decoder";
    stack.causal = true;
    stack.scheme_id = "rotary";
    stack.scheme_label = "rotary";
    stack.hidden_size = reader.word_table(stack, "embed_tokens.weight", "hidden_size");
    if (gemma) stack.word_factor = std::sqrt(static_cast<double>(stack.hidden_size));
    const auto head_dim = reader.optional_integer("head_dim", 1, largest_hidden_size);
    stack.heads = head_dim ? reader.integer("num_attention_heads", 1, largest_hidden_size)
                           : reader.heads("num_attention_heads", stack.hidden_size);
    stack.head_dim = head_dim.value_or(stack.hidden_size / stack.heads);
    stack.logit_scale = 1.0 / std::sqrt(static_cast<double>(stack.head_dim));
    LayerPattern layers{"layers.{}.",
                        "input_layernorm",
                        "self_attn.q_proj",
                        "self_attn.k_proj",
                        "self_attn.v_proj",
                        "self_attn.o_proj",
                        {},
                        {},
                        {},
                        "post_attention_layernorm",
                        "mlp.up_proj",
                        "mlp.gate_proj",
                        "mlp.down_proj",
                        {}};
    if (qwen3) {
        layers.query_norm = "self_attn.q_norm";
        layers.key_norm = "self_attn.k_norm";
    }
    layers.norm = NormKind::rms_norm;
    layers.epsilon = reader.epsilon("rms_norm_eps", 1e-6);
    layers.gain_offset = gemma ? 1.0 : 0.0;
    layers.key_heads = reader.integer_or("num_key_value_heads", stack.heads, 1, stack.heads);
    if (stack.heads % layers.key_heads != 0)
        reader.fail(
            reader.config().field_error("num_key_value_heads", "does not divide the number of heads"));
    layers.inner_size = reader.optional_integer("intermediate_size", 1, largest_hidden_size).value_or(-1);
    stack.activation = reader.activation(
        gemma && reader.config().has("hidden_activation") ? "hidden_activation" : "hidden_act",
        gemma ? "gelu_pytorch_tanh" : "silu");
    if (gemma && stack.activation == "gelu")
        stack.activation = "gelu_pytorch_tanh"; // the released models' meaning
    stack.rotary = reader.rotary(stack.head_dim, 10000.0);
    if (reader.flag_or("use_sliding_window", type == "mistral"))
        if (const auto window = reader.optional_integer("sliding_window", 1, 1 << 30))
            stack.window_before = *window - 1;
    stack.layers = reader.layers("num_hidden_layers", [](std::int64_t n) {
        return "layers." + std::to_string(n) + ".self_attn.q_proj.weight";
    });
    read_layers_by_pattern(reader, stack, layers);
    reader.pad_token(std::nullopt);
    reader.special_by_config(stack, "bos_token_id", std::nullopt);
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily llama_family()
{
    return {"llama", "LLaMA", model_types, name_prefixes, {}, read_llama, apply_angle_bracket_vocabulary};
}

} // namespace posiscope::core
