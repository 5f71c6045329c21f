// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/families/image_stack.h"

#include <nlohmann/json.hpp>

#include <cmath>

#include "core/base/text.h"

namespace posiscope::core {

std::pair<std::int64_t, std::int64_t> integer_or_pair(StackReader& reader, std::string_view key,
                                                      std::int64_t published)
{
    const auto& root = reader.config().root();
    const auto value = root.find(key);
    if (value != root.end() && value->is_array()) {
        const bool whole =
            value->size() == 2 && (*value)[0].is_number_integer() && (*value)[1].is_number_integer();
        const std::int64_t rows = whole ? (*value)[0].get<std::int64_t>() : 0;
        const std::int64_t columns = whole ? (*value)[1].get<std::int64_t>() : 0;
        if (rows >= 1 && columns >= 1 && rows <= 1 << 20 && columns <= 1 << 20) return {rows, columns};
        reader.fail(reader.config().field_error(key, "is a list; one whole number or two were expected"));
        return {1, 1};
    }
    const std::int64_t size = reader.integer_or(key, published, 1, 1 << 20);
    return {size, size};
}

void read_image_input(StackReader& reader, Stack& stack, const ImageInput& input)
{
    stack.content = InputContent::patches;
    const auto [height, width] = integer_or_pair(reader, "image_size", 224);
    const auto [side, other_side] = integer_or_pair(reader, "patch_size", 16);
    if (!reader.ok()) return;
    if (side != other_side || side > height || side > width) {
        reader.fail(reader.config().field_error("patch_size", "does not cut the image into square patches"));
        return;
    }
    stack.patch_side = side;
    stack.patch_channels = reader.integer_or("num_channels", 3, 1, 1 << 12);
    stack.grid_rows = height / side;
    stack.grid_columns = width / side;
    const std::string weight = input.patches + ".weight";
    stack.patch_map =
        reader.tensor_linear_if_there(weight, {stack.hidden_size, stack.patch_channels, side, side});
    stack.patch_map.bias = reader.tensor_if_there(input.patches + ".bias", {stack.hidden_size});
    if (stack.patch_map.empty() && reader.ok()) reader.fail(reader.names().missing(weight));
    const std::int64_t d = stack.hidden_size;
    for (const std::string& name : input.prefix) {
        const TensorInfo* token = reader.names().find(name);
        const bool flat = token != nullptr && token->shape.size() == 1;
        stack.prefix_rows.push_back(reader.tensor_if_there(name, flat ? Shape{d} : Shape{1, 1, d}));
        if (token == nullptr && reader.ok()) reader.fail(reader.names().missing(name));
    }
    if (input.positions.empty()) return;
    const auto rows =
        stack.grid_rows * stack.grid_columns + static_cast<std::int64_t>(stack.prefix_rows.size());
    stack.scheme_id = "absolute_learned";
    stack.scheme_label = "learned absolute";
    stack.absolute = AbsolutePositions::table;
    stack.position_table = reader.tensor_if_there(
        input.positions, input.positions_in_batch ? Shape{1, rows, d} : Shape{rows, d});
    if (stack.position_table.empty() && reader.ok()) reader.fail(reader.names().missing(input.positions));
    stack.length_limit = rows;
}

Stack read_image_encoder(StackReader& reader)
{
    Stack stack;
    stack.id = "encoder";
    stack.hidden_size = reader.integer("hidden_size", 1, largest_hidden_size);
    stack.heads = reader.heads("num_attention_heads", stack.hidden_size);
    stack.head_dim = stack.hidden_size / stack.heads;
    stack.logit_scale = 1.0 / std::sqrt(static_cast<double>(stack.head_dim));
    stack.activation = reader.activation("hidden_act", "gelu");
    return stack;
}

LayerPattern read_vit_pattern(StackReader& reader)
{
    LayerPattern layers{"encoder.layer.{}.",
                        "layernorm_before",
                        "attention.attention.query",
                        "attention.attention.key",
                        "attention.attention.value",
                        "attention.output.dense",
                        {},
                        {},
                        {},
                        "layernorm_after",
                        "intermediate.dense",
                        {},
                        "output.dense",
                        {}};
    layers.epsilon = reader.epsilon("layer_norm_eps", 1e-12);
    layers.inner_size = reader.optional_integer("intermediate_size", 1, largest_hidden_size).value_or(-1);
    return layers;
}

void read_image_layers(StackReader& reader, Stack& stack, const LayerPattern& layers)
{
    stack.layers = reader.layers("num_hidden_layers", [](std::int64_t n) {
        return "encoder.layer." + std::to_string(n) + ".attention.attention.query.weight";
    });
    read_layers_by_pattern(reader, stack, layers);
}

void apply_no_vocabulary(Architecture&, std::vector<Vocabulary::Entry>&) {}

} // namespace posiscope::core
