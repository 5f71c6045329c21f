// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>

#include "core/base/text.h"
#include "core/model/families/families.h"
#include "core/model/families/stack_reader.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"openai-gpt"};
constexpr std::array<std::string_view, 1> name_prefixes{"transformer."};
constexpr std::array<std::string_view, 3> signature{"tokens_embed.weight", "positions_embed.weight",
                                                    "h.0.attn.c_attn.weight"};

/// GPT: post-norm decoder without a norm on the embeddings, learned absolute positions; packed as in GPT-2.
/// Source: Radford et al. 2018.
Result<Architecture> read_openai_gpt(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    Stack stack;
    stack.id = "decoder";
    stack.causal = true;
    stack.scheme_id = "absolute_learned";
    stack.scheme_label = "learned absolute";
    stack.hidden_size = reader.word_table(stack, "tokens_embed.weight", "n_embd");
    reader.position_table(stack, "positions_embed.weight", stack.hidden_size, "n_positions", 0, 0);
    stack.heads = reader.heads("n_head", stack.hidden_size);
    stack.head_dim = stack.hidden_size / stack.heads;
    stack.logit_scale = 1.0 / std::sqrt(static_cast<double>(stack.head_dim));
    // The released code calls the tanh form of GELU by the plain name.
    const std::string activation = reader.activation("afn", "gelu");
    stack.activation = activation == "gelu" ? "gelu_new" : activation;
    stack.layers = reader.layers(
        "n_layer", [](std::int64_t n) { return "h." + std::to_string(n) + ".attn.c_attn.weight"; });
    const std::int64_t d = stack.hidden_size;
    LayerPattern layers{
        "h.{}.",    {}, "attn.c_attn", "attn.c_attn", "attn.c_attn", "attn.c_proj", {}, {}, "ln_1", {},
        "mlp.c_fc", {}, "mlp.c_proj",  "ln_2"};
    layers.epsilon = reader.epsilon("layer_norm_epsilon", 1e-5);
    layers.transposed = true;
    layers.packed_rows = 3 * d;
    layers.query_outputs = run_of_outputs(0, d);
    layers.key_outputs = run_of_outputs(d, d);
    layers.value_outputs = run_of_outputs(2 * d, d);
    read_layers_by_pattern(reader, stack, layers);
    reader.pad_token(std::nullopt);
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily openai_gpt_family()
{
    return {"openai_gpt",
            "GPT",
            model_types,
            name_prefixes,
            signature,
            read_openai_gpt,
            apply_angle_bracket_vocabulary};
}

} // namespace posiscope::core
