// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>

#include "core/base/text.h"
#include "core/model/families/families.h"
#include "core/model/families/stack_reader.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"falcon"};
constexpr std::array<std::string_view, 1> name_prefixes{"transformer."};

/// Falcon: pre-norm decoder, rotary positions (feature k with k + half), parallel feed-forward block. The 7B packs
/// [query heads][one key][one value]; the new architecture (40B) packs, for each group, [its query heads][key][value] and
/// has a norm of its own before each block.
/// Source: Almazrouei et al. 2023, and its released code.
Result<Architecture> read_falcon(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    Stack stack;
    stack.id = "decoder";
    stack.causal = true;
    stack.scheme_id = "rotary";
    stack.scheme_label = "rotary";
    stack.hidden_size = reader.word_table(stack, "word_embeddings.weight", "hidden_size");
    stack.heads = reader.heads("num_attention_heads", stack.hidden_size);
    stack.head_dim = stack.hidden_size / stack.heads;
    stack.logit_scale = 1.0 / std::sqrt(static_cast<double>(stack.head_dim));
    const bool grouped = reader.flag_or("new_decoder_architecture", false);
    if (reader.flag_or("alibi", false) || !reader.flag_or("parallel_attn", true) ||
        (!grouped && !reader.flag_or("multi_query", true)))
        reader.fail(
            Error{ErrorCode::unsupported_model,
                  in_quotes(reader.config().file_name()) +
                      ": a Falcon with 'alibi', without 'parallel_attn' or without 'multi_query' is not "
                      "supported; the 7B and 40B layouts are",
                  "recognising the network"});
    const std::int64_t groups = grouped ? reader.integer("num_kv_heads", 1, stack.heads) : 1;
    if (stack.heads % groups != 0)
        reader.fail(reader.config().field_error("num_kv_heads", "does not divide the number of heads"));
    stack.activation = reader.activation("activation", "gelu");
    stack.parallel_feed_forward = true;
    stack.rotary = reader.rotary(stack.head_dim, 10000.0);
    stack.layers = reader.layers("num_hidden_layers", [](std::int64_t n) {
        return "h." + std::to_string(n) + ".self_attention.query_key_value.weight";
    });
    const bool two_norms = grouped && reader.integer_or("num_ln_in_parallel_attn", 2, 1, 2) == 2;
    LayerPattern layers{"h.{}.",
                        two_norms ? "ln_attn" : "input_layernorm",
                        "self_attention.query_key_value",
                        "self_attention.query_key_value",
                        "self_attention.query_key_value",
                        "self_attention.dense",
                        {},
                        {},
                        {},
                        two_norms ? "ln_mlp" : "",
                        "mlp.dense_h_to_4h",
                        {},
                        "mlp.dense_4h_to_h",
                        {}};
    layers.epsilon = reader.epsilon("layer_norm_epsilon", 1e-5);
    layers.inner_size = reader.optional_integer("ffn_hidden_size", 1, largest_hidden_size).value_or(-1);
    const std::int64_t share = stack.heads / groups, n = stack.head_dim;
    layers.packed_rows = (stack.heads + 2 * groups) * n;
    for (std::int64_t h = 0; h < stack.heads; ++h) {
        const std::int64_t group = h / share * (share + 2) * n;
        for (std::int64_t f = 0; f < n; ++f) {
            layers.query_outputs.push_back(group + h % share * n + f);
            layers.key_outputs.push_back(group + share * n + f);
            layers.value_outputs.push_back(group + (share + 1) * n + f);
        }
    }
    read_layers_by_pattern(reader, stack, layers);
    reader.pad_token(std::nullopt);
    reader.special_by_config(stack, "bos_token_id", std::nullopt);
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily falcon_family()
{
    return {"falcon", "Falcon", model_types, name_prefixes, {}, read_falcon, apply_angle_bracket_vocabulary};
}

} // namespace posiscope::core
