// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>

#include "core/model/families/families.h"
#include "core/model/families/stack_reader.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"opt"};
constexpr std::array<std::string_view, 1> name_prefixes{"decoder."};

/// OPT: pre-norm decoder, learned absolute positions whose table has two rows more: position i is row i + 2. The one of
/// 350M norms behind its blocks, and maps words from a smaller size.
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
    const std::int64_t columns = reader.word_table(stack, "embed_tokens.weight", "word_embed_proj_dim");
    stack.hidden_size = reader.integer_or("hidden_size", columns, 1, largest_hidden_size);
    if (columns != stack.hidden_size) {
        // Words are mapped before the positions join them: one cluster that holds the whole vocabulary.
        stack.word_clusters.push_back(
            {0, stack.word_rows, stack.word_table, reader.linear("project_in", stack.hidden_size, columns)});
        stack.word_table.clear();
    }
    reader.position_table(stack, "embed_positions.weight", stack.hidden_size, "max_position_embeddings", 2,
                          2);
    stack.heads = reader.heads("num_attention_heads", stack.hidden_size);
    stack.head_dim = stack.hidden_size / stack.heads;
    stack.logit_scale = 1.0 / std::sqrt(static_cast<double>(stack.head_dim));
    stack.activation = reader.activation("activation_function", "relu");
    stack.layers = reader.layers("num_hidden_layers", [](std::int64_t n) {
        return "layers." + std::to_string(n) + ".self_attn.q_proj.weight";
    });
    LayerPattern layers;
    layers.layer = "layers.{}.";
    layers.query = "self_attn.q_proj";
    layers.key = "self_attn.k_proj";
    layers.value = "self_attn.v_proj";
    layers.output = "self_attn.out_proj";
    layers.feed_forward_in = "fc1";
    layers.feed_forward_out = "fc2";
    const bool norms_before = reader.flag_or("do_layer_norm_before", true);
    (norms_before ? layers.input_norm : layers.output_norm) = "self_attn_layer_norm";
    (norms_before ? layers.feed_forward_input_norm : layers.feed_forward_output_norm) = "final_layer_norm";
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
