// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>

#include "core/base/text.h"
#include "core/model/families/families.h"
#include "core/model/families/stack_reader.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"gptj"};
constexpr std::array<std::string_view, 1> name_prefixes{"transformer."};

/// GPT-J: pre-norm decoder whose first rotary_dim features of every head are rotated, neighbours in pairs; one norm feeds
/// attention and feed-forward block, both are added.
/// Source: Wang and Komatsuzaki 2021.
Result<Architecture> read_gptj(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    Stack stack;
    stack.id = "decoder";
    stack.causal = true;
    stack.scheme_id = "rotary";
    stack.scheme_label = "rotary, part of each head";
    stack.hidden_size = reader.word_table(stack, "wte.weight", "n_embd");
    stack.heads = reader.heads("n_head", stack.hidden_size);
    stack.head_dim = stack.hidden_size / stack.heads;
    stack.logit_scale = 1.0 / std::sqrt(static_cast<double>(stack.head_dim));
    stack.activation = reader.activation("activation_function", "gelu_new");
    stack.parallel_feed_forward = true;
    const std::int64_t turned =
        reader.optional_integer("rotary_dim", 2, stack.head_dim).value_or(stack.head_dim);
    stack.rotary = RotaryScheme{turned, 10000.0, true};
    stack.layers = reader.layers(
        "n_layer", [](std::int64_t n) { return "h." + std::to_string(n) + ".attn.q_proj.weight"; });
    LayerPattern layers{"h.{}.",
                        "ln_1",
                        "attn.q_proj",
                        "attn.k_proj",
                        "attn.v_proj",
                        "attn.out_proj",
                        {},
                        {},
                        {},
                        {},
                        "mlp.fc_in",
                        {},
                        "mlp.fc_out",
                        {}};
    layers.epsilon = reader.epsilon("layer_norm_epsilon", 1e-5);
    layers.inner_size =
        reader.optional_integer("n_inner", 1, largest_hidden_size).value_or(4 * stack.hidden_size);
    read_layers_by_pattern(reader, stack, layers);
    reader.pad_token(std::nullopt);
    reader.special_by_config(stack, "bos_token_id", std::nullopt);
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily gptj_family()
{
    return {"gptj", "GPT-J", model_types, name_prefixes, {}, read_gptj, apply_angle_bracket_vocabulary};
}

} // namespace posiscope::core
