// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>

#include "core/base/text.h"
#include "core/model/families/families.h"
#include "core/model/families/torch_attention.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"torch-nn-transformer"};

Stack read_stack(StackReader& reader, const std::string& id)
{
    Stack stack;
    stack.id = id;
    stack.causal = stack.has_cross_attention = id == "decoder";
    stack.hidden_size = reader.word_table(stack, "embed.char_embed.weight", "d_model");
    const std::int64_t d = stack.hidden_size;
    if (reader.flag_or("scale_embedding", false)) stack.word_factor = std::sqrt(static_cast<double>(d));
    stack.heads = reader.heads(id + "_attention_heads", d);
    stack.head_dim = d / stack.heads;
    stack.logit_scale = 1.0 / std::sqrt(static_cast<double>(stack.head_dim));
    stack.activation = reader.activation("activation_function", "relu");
    stack.scheme_id = "absolute_sinusoidal";
    const std::int64_t rows = reader.integer("max_position_embeddings", 1, 1 << 28);
    stack.position_table = reader.tensor_if_there("embed.pos_encoding", {1, rows, d});
    stack.length_limit = rows;
    if (stack.position_table.empty()) {
        // The buffer need not be saved: it is the original's, sines and cosines in turn.
        stack.scheme_label = "sinusoidal, computed";
        stack.absolute = AbsolutePositions::sinusoidal;
        stack.sinusoidal.interleaved = true;
        stack.length_limit.reset();
    } else {
        stack.scheme_label = "sinusoidal, stored";
        stack.absolute = AbsolutePositions::table;
    }
    const bool pre_norm = reader.flag_or("normalize_before", false);
    const double epsilon = reader.number_or("layer_norm_eps", 1e-5, 0.0, 1.0);
    const std::int64_t inner = reader.optional_integer(id + "_ffn_dim", 1, largest_hidden_size).value_or(-1);
    const auto prefix_of = [&](std::int64_t n) {
        return "transformer." + id + ".layers." + std::to_string(n) + ".";
    };
    stack.layers = reader.layers(id + "_layers",
                                 [&](std::int64_t n) { return prefix_of(n) + "self_attn.in_proj_weight"; });
    const auto read = [&](std::int64_t number) {
        const std::string prefix = prefix_of(number);
        const auto norm = [&](const std::string& name) {
            return reader.layer_norm_if_there(prefix + name, NormKind::layer_norm, d, epsilon);
        };
        LayerNames layer;
        const TorchAttention attention = read_torch_attention(reader, prefix + "self_attn.", d);
        layer.query = attention.query;
        layer.key = attention.key;
        layer.value = attention.value;
        layer.attention_output = attention.output;
        (pre_norm ? layer.attention_input_norm : layer.attention_output_norm) = norm("norm1");
        const std::string last_norm = stack.causal ? "norm3" : "norm2";
        std::vector<std::pair<std::string, const LinearNames*>> needed{
            {prefix + "self_attn.out_proj", &layer.attention_output}};
        if (stack.causal) {
            const TorchAttention across = read_torch_attention(reader, prefix + "multihead_attn.", d);
            layer.cross_query = across.query;
            layer.cross_key = across.key;
            layer.cross_value = across.value;
            layer.cross_output = across.output;
            (pre_norm ? layer.cross_input_norm : layer.cross_output_norm) = norm("norm2");
            needed.emplace_back(prefix + "multihead_attn.out_proj", &layer.cross_output);
        }
        (pre_norm ? layer.feed_forward_input_norm : layer.feed_forward_output_norm) = norm(last_norm);
        layer.feed_forward_in = reader.linear_if_there(prefix + "linear1", inner, d);
        layer.feed_forward_out = reader.linear_if_there(prefix + "linear2", d, inner);
        needed.emplace_back(prefix + "linear1", &layer.feed_forward_in);
        needed.emplace_back(prefix + "linear2", &layer.feed_forward_out);
        layer.lacks = first_missing(needed);
        if (pre_norm && !layer.query.empty() && layer.attention_input_norm.kind == NormKind::none)
            reader.fail(reader.names().missing(prefix + "norm1.weight"));
        return layer;
    };
    const auto packed = [&](std::int64_t n) { return prefix_of(n) + "self_attn.in_proj_weight"; };
    reader.read_layers(stack, read, packed, packed);
    return stack;
}

/// An encoder-decoder on PyTorch's nn.Transformer with a stored sinusoidal table and words times sqrt(d).
/// Source: Vaswani et al. 2017; PyTorch's documentation of nn.Transformer.
Result<Architecture> read_torch_transformer(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    for (const std::string id : {"encoder", "decoder"}) {
        Stack stack = read_stack(reader, id);
        if (!reader.ok()) return *reader.fault();
        architecture.stacks.push_back(std::move(stack));
    }
    reader.pad_token(std::nullopt);
    reader.special_by_config(architecture.stacks.front(), "bos_token_id", "eos_token_id");
    architecture.stacks.back().special_leading = architecture.stacks.front().special_leading;
    architecture.stacks.back().special_trailing = architecture.stacks.front().special_trailing;
    if (!reader.ok()) return *reader.fault();
    return architecture;
}

} // namespace

ModelFamily torch_transformer_family()
{
    return {"torch-nn-transformer", "PyTorch nn.Transformer",      model_types, {}, {},
            read_torch_transformer, apply_angle_bracket_vocabulary};
}

} // namespace posiscope::core
