// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>

#include "core/base/text.h"
#include "core/model/families/families.h"
#include "core/model/families/image_stack.h"
#include "core/model/families/torch_attention.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"vit-mnist-postln"};

/// A small image Transformer for handwritten digits: post-norm, patches laid flat before their map, learned absolute
/// positions of the grid, no class token.
/// Source: Dosovitskiy et al. 2021, with the norm behind each block as in Vaswani et al. 2017.
Result<Architecture> read_vit_mnist(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    Stack stack;
    stack.id = "encoder";
    stack.content = InputContent::patches;
    stack.hidden_size = reader.integer("hidden_size", 1, largest_hidden_size);
    const std::int64_t d = stack.hidden_size;
    stack.heads = reader.heads("num_attention_heads", d);
    stack.head_dim = d / stack.heads;
    stack.logit_scale = 1.0 / std::sqrt(static_cast<double>(stack.head_dim));
    stack.activation = reader.activation("hidden_act", "gelu");
    const std::int64_t image = reader.integer("image_size", 1, 1 << 20);
    stack.patch_side = reader.integer("patch_size", 1, image);
    stack.patch_channels = reader.integer_or("num_channels", 1, 1, 1 << 12);
    stack.grid_rows = stack.grid_columns = image / stack.patch_side;
    stack.patch_map =
        reader.linear("patch_embed.proj", d, stack.patch_channels * stack.patch_side * stack.patch_side);
    const std::int64_t rows = stack.grid_rows * stack.grid_columns;
    stack.scheme_id = "absolute_learned";
    stack.scheme_label = "learned absolute";
    stack.absolute = AbsolutePositions::table;
    stack.position_table = reader.tensor_if_there("pos_embed", {1, rows, d});
    if (stack.position_table.empty() && reader.ok()) reader.fail(names.missing("pos_embed"));
    stack.length_limit = rows;
    const double epsilon = reader.epsilon("layer_norm_eps", 1e-5);
    const std::int64_t inner =
        reader.optional_integer("intermediate_size", 1, largest_hidden_size).value_or(-1);
    const auto prefix_of = [](std::int64_t n) { return "encoder." + std::to_string(n) + "."; };
    const auto packed = [&](std::int64_t n) { return prefix_of(n) + "attn.in_proj_weight"; };
    stack.layers = reader.layers("num_hidden_layers", packed);
    const auto read = [&](std::int64_t number) {
        const std::string prefix = prefix_of(number);
        const TorchAttention attention = read_torch_attention(reader, prefix + "attn.", d);
        LayerNames layer;
        layer.query = attention.query;
        layer.key = attention.key;
        layer.value = attention.value;
        layer.attention_output = attention.output;
        layer.attention_output_norm =
            reader.layer_norm_if_there(prefix + "norm1", NormKind::layer_norm, d, epsilon);
        layer.feed_forward_in = reader.linear_if_there(prefix + "ffn.fc1", inner, d);
        layer.feed_forward_out = reader.linear_if_there(prefix + "ffn.fc2", d, inner);
        layer.feed_forward_output_norm =
            reader.layer_norm_if_there(prefix + "norm2", NormKind::layer_norm, d, epsilon);
        layer.lacks = first_missing({{prefix + "attn.out_proj", &layer.attention_output},
                                     {prefix + "ffn.fc1", &layer.feed_forward_in},
                                     {prefix + "ffn.fc2", &layer.feed_forward_out}});
        return layer;
    };
    reader.read_layers(stack, read, packed, packed);
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily vit_mnist_family()
{
    return {"vit-mnist-postln", "post-norm ViT", model_types, {}, {}, read_vit_mnist, apply_no_vocabulary};
}

} // namespace posiscope::core
