// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>

#include "core/base/text.h"
#include "core/model/families/families.h"
#include "core/model/families/stack_reader.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"opt"};
constexpr std::array<std::string_view, 1> name_prefixes{"decoder."};

/// OPT: pre-norm decoder, learned absolute positions whose table has two rows more: position i is row i + 2.
/// Source: Zhang et al. 2022, and its released code for the rows.
Result<Architecture> read_opt(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    Stack stack;
    stack.id = "decoder";
    stack.causal = true;
    stack.scheme_id = "absolute_learned";
    stack.scheme_label = "learned absolute";
    if (!reader.flag_or("do_layer_norm_before", true))
        reader.fail(Error{ErrorCode::unsupported_model,
                          in_quotes(reader.config().file_name()) +
                              ": 'do_layer_norm_before' is false (OPT 350M); true was expected",
                          "recognising the network"});
    const std::int64_t columns = reader.word_table(stack, "embed_tokens.weight", "word_embed_proj_dim");
    stack.hidden_size = reader.integer_or("hidden_size", columns, 1, largest_hidden_size);
    if (columns != stack.hidden_size)
        reader.fail(Error{ErrorCode::unsupported_model,
                          in_quotes(reader.config().file_name()) +
                              ": 'word_embed_proj_dim' differs from 'hidden_size'; the same was expected",
                          "recognising the network"});
    reader.position_table(stack, "embed_positions.weight", columns, "max_position_embeddings", 2, 2);
    stack.heads = reader.heads("num_attention_heads", stack.hidden_size);
    stack.head_dim = stack.hidden_size / stack.heads;
    stack.logit_scale = 1.0 / std::sqrt(static_cast<double>(stack.head_dim));
    stack.activation = reader.activation("activation_function", "relu");
    stack.layers = reader.layers("num_hidden_layers", [](std::int64_t n) {
        return "layers." + std::to_string(n) + ".self_attn.q_proj.weight";
    });
    LayerPattern layers{"layers.{}.",
                        "self_attn_layer_norm",
                        "self_attn.q_proj",
                        "self_attn.k_proj",
                        "self_attn.v_proj",
                        "self_attn.out_proj",
                        {},
                        {},
                        {},
                        "final_layer_norm",
                        "fc1",
                        {},
                        "fc2",
                        {}};
    layers.inner_size = reader.optional_integer("ffn_dim", 1, largest_hidden_size).value_or(-1);
    read_layers_by_pattern(reader, stack, layers);
    reader.pad_token(1);
    reader.special_by_config(stack, "bos_token_id", std::nullopt);
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily opt_family()
{
    return {"opt", "OPT", model_types, name_prefixes, {}, read_opt, apply_angle_bracket_vocabulary};
}

} // namespace posiscope::core
