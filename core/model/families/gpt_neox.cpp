// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>

#include "core/base/text.h"
#include "core/model/families/families.h"
#include "core/model/families/stack_reader.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"gpt_neox"};
constexpr std::array<std::string_view, 1> name_prefixes{"gpt_neox."};
constexpr std::array<std::string_view, 2> signature{"embed_in.weight",
                                                    "layers.0.attention.query_key_value.weight"};

/// GPT-NeoX: pre-norm decoder whose first features of every head are rotated (feature k with k + half of them); rows of the
/// packed matrix are [head][query|key|value].
/// Source: Black et al. 2022.
Result<Architecture> read_gpt_neox(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    Stack stack;
    stack.id = "decoder";
    stack.causal = true;
    stack.scheme_id = "rotary";
    stack.scheme_label = "rotary, part of each head";
    stack.hidden_size = reader.word_table(stack, "embed_in.weight", "hidden_size");
    stack.heads = reader.heads("num_attention_heads", stack.hidden_size);
    stack.head_dim = stack.hidden_size / stack.heads;
    stack.logit_scale = 1.0 / std::sqrt(static_cast<double>(stack.head_dim));
    stack.activation = reader.activation("hidden_act", "gelu");
    stack.parallel_feed_forward = reader.flag_or("use_parallel_residual", true);
    stack.rotary = reader.rotary(stack.head_dim, 10000.0, 0.25);
    stack.layers = reader.layers("num_hidden_layers", [](std::int64_t n) {
        return "layers." + std::to_string(n) + ".attention.query_key_value.weight";
    });
    LayerPattern layers{"layers.{}.",
                        "input_layernorm",
                        "attention.query_key_value",
                        "attention.query_key_value",
                        "attention.query_key_value",
                        "attention.dense",
                        {},
                        {},
                        {},
                        "post_attention_layernorm",
                        "mlp.dense_h_to_4h",
                        {},
                        "mlp.dense_4h_to_h",
                        {}};
    layers.epsilon = reader.epsilon("layer_norm_eps", 1e-5);
    layers.inner_size = reader.optional_integer("intermediate_size", 1, largest_hidden_size).value_or(-1);
    layers.packed_rows = 3 * stack.hidden_size;
    layers.query_outputs = outputs_by_head(stack.heads, stack.head_dim, 3, 0);
    layers.key_outputs = outputs_by_head(stack.heads, stack.head_dim, 3, 1);
    layers.value_outputs = outputs_by_head(stack.heads, stack.head_dim, 3, 2);
    read_layers_by_pattern(reader, stack, layers);
    reader.pad_token(std::nullopt);
    reader.special_by_config(stack, "bos_token_id", std::nullopt);
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily gpt_neox_family()
{
    return {"gpt_neox",
            "GPT-NeoX",
            model_types,
            name_prefixes,
            signature,
            read_gpt_neox,
            apply_angle_bracket_vocabulary};
}

} // namespace posiscope::core
