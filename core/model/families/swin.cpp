// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/model/families/families.h"
#include "core/model/families/image_stack.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"swin"};
constexpr std::array<std::string_view, 1> name_prefixes{"swin."};

struct Stage {
    std::int64_t blocks = 0, heads = 0;
};

std::vector<Stage> read_stages(StackReader& reader)
{
    std::vector<Stage> stages;
    const auto& root = reader.config().root();
    const auto depths = root.find("depths"), heads = root.find("num_heads");
    const auto positive = [](const auto& value) {
        return value.is_number_integer() && value.template get<std::int64_t>() >= 1 &&
               value.template get<std::int64_t>() <= most_layers;
    };
    bool good = depths != root.end() && heads != root.end() && depths->is_array() && heads->is_array() &&
                !depths->empty() && depths->size() == heads->size() && depths->size() <= 16;
    for (std::size_t n = 0; good && n < depths->size(); ++n) {
        good = positive((*depths)[n]) && positive((*heads)[n]);
        if (good) stages.push_back({(*depths)[n].get<std::int64_t>(), (*heads)[n].get<std::int64_t>()});
    }
    if (!good)
        reader.fail(reader.config().field_error(
            "depths", "and 'num_heads' must be two equally long lists of positive whole numbers"));
    return stages;
}

/// One block of a stage, its tensors under `prefix`.
LayerNames read_block(StackReader& reader, const std::string& prefix, std::int64_t d, std::int64_t inner,
                      double epsilon)
{
    const auto linear = [&](const std::string& name, std::int64_t out, std::int64_t in) {
        return reader.linear_if_there(prefix + name, out, in);
    };
    const auto norm = [&](const std::string& name) {
        return reader.layer_norm_if_there(prefix + name, NormKind::layer_norm, d, epsilon);
    };
    LayerNames layer;
    layer.attention_input_norm = norm("layernorm_before");
    layer.query = linear("attention.self.query", d, d);
    layer.key = linear("attention.self.key", d, d);
    layer.value = linear("attention.self.value", d, d);
    layer.attention_output = linear("attention.output.dense", d, d);
    layer.feed_forward_input_norm = norm("layernorm_after");
    layer.feed_forward_in = linear("intermediate.dense", inner, d);
    layer.feed_forward_out = linear("output.dense", d, inner);
    layer.lacks = first_missing({{prefix + "attention.self.value", &layer.value},
                                 {prefix + "attention.output.dense", &layer.attention_output},
                                 {prefix + "intermediate.dense", &layer.feed_forward_in},
                                 {prefix + "output.dense", &layer.feed_forward_out}});
    if (!layer.query.empty() && layer.attention_input_norm.kind == NormKind::none)
        reader.fail(reader.names().missing(prefix + "layernorm_before.weight"));
    return layer;
}

/// Swin: pre-norm blocks inside windows, every second one shifted; a bias by the offset of patches in the window; between
/// stages four neighbours are joined to one row. L is the tokens of one window; layers count across stages.
/// Source: Liu et al. 2021, sec. 3.1 and 3.2, and the released code.
Result<Architecture> read_swin(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    Stack stack;
    stack.id = "encoder";
    stack.hidden_size = reader.integer("embed_dim", 1, largest_hidden_size);
    const double epsilon = reader.epsilon("layer_norm_eps", 1e-5);
    stack.activation = reader.activation("hidden_act", "gelu");
    read_image_input(reader, stack, ImageInput{"embeddings.patch_embeddings.projection"});
    stack.content_norm = reader.norm("embeddings.norm", NormKind::layer_norm, stack.hidden_size, epsilon);
    if (reader.flag_or("use_absolute_embeddings", false))
        reader.fail(Error{ErrorCode::unsupported_model,
                          in_quotes(reader.config().file_name()) +
                              ": a Swin with 'use_absolute_embeddings' is not supported; its windows differ",
                          "recognising the network"});
    const std::int64_t window = reader.integer("window_size", 1, 1 << 12);
    const double ratio = reader.number_or("mlp_ratio", 4.0, 0.01, 1e4);
    const std::vector<Stage> stages = read_stages(reader);
    if (!reader.ok()) return *reader.fault();

    std::int64_t rows = stack.grid_rows, columns = stack.grid_columns, d = stack.hidden_size;
    const std::int64_t side = std::min({window, rows, columns});
    stack.grid_rows = stack.grid_columns = side;
    stack.grid_bias = GridBias{side, side, false};
    stack.scheme_id = "grid_bias";
    stack.scheme_label = "two-dimensional relative bias in windows";
    stack.heads = stages.front().heads;
    std::vector<std::pair<std::size_t, std::int64_t>> blocks; // stage, number in it
    for (std::size_t s = 0; s < stages.size(); ++s)
        for (std::int64_t b = 0; b < stages[s].blocks; ++b) blocks.emplace_back(s, b);
    stack.layers = static_cast<std::int64_t>(blocks.size());
    for (const Stage& stage : stages)
        if (d % stage.heads != 0)
            reader.fail(reader.config().field_error("num_heads", "does not divide the sizes of the stages"));
    if (!reader.ok()) return *reader.fault();
    stack.head_dim = d / stack.heads;
    stack.logit_scale = 1.0 / std::sqrt(static_cast<double>(stack.head_dim));

    const auto prefix_of = [&](std::int64_t number) {
        const auto [s, b] = blocks[static_cast<std::size_t>(number)];
        return "encoder.layers." + std::to_string(s) + ".blocks." + std::to_string(b) + ".";
    };
    std::string differs; // why the layers from here on are not probed
    const auto read = [&](std::int64_t number) {
        const auto [s, b] = blocks[static_cast<std::size_t>(number)];
        NormNames merge_norm;
        LinearNames merge;
        if (s > 0 && b == 0) {
            const std::string between = "encoder.layers." + std::to_string(s - 1) + ".downsample.";
            merge_norm = reader.layer_norm_if_there(between + "norm", NormKind::layer_norm, 4 * d, epsilon);
            merge = reader.linear_if_there(between + "reduction", 2 * d, 4 * d);
            if (merge.empty() || merge_norm.kind == NormKind::none) return LayerNames{};
            d *= 2;
            rows = (rows + 1) / 2;
            columns = (columns + 1) / 2;
        }
        const std::int64_t here = std::min({window, rows, columns});
        if (here != side || rows % here != 0 || columns % here != 0) {
            differs = "layer " + std::to_string(number) + " cuts its grid of " + std::to_string(rows) +
                      " x " + std::to_string(columns) + " into other windows than " + std::to_string(side) +
                      " x " + std::to_string(side);
            return LayerNames{};
        }
        LayerNames layer = read_block(reader, prefix_of(number), d,
                                      static_cast<std::int64_t>(ratio * static_cast<double>(d)), epsilon);
        layer.heads = stages[s].heads;
        layer.head_dim = d / stages[s].heads;
        layer.merge_norm = merge_norm;
        layer.merge = merge;
        layer.grid_rows = rows;
        layer.grid_columns = columns;
        if (b % 2 == 1 && rows > here && columns > here) layer.window_shift = here / 2;
        const std::string table = prefix_of(number) + "attention.self.relative_position_bias_table";
        layer.relative_bias_table =
            reader.tensor_if_there(table, {stack.grid_bias->table_rows(), stages[s].heads});
        if (layer.relative_bias_table.empty() && !layer.query.empty() && reader.ok())
            reader.fail(names.missing(table));
        return layer;
    };
    reader.read_layers(
        stack, read, [&](std::int64_t n) { return prefix_of(n) + "attention.self.query.weight"; },
        [&](std::int64_t n) { return prefix_of(n) + "attention.self.key.weight"; });
    if (!differs.empty()) stack.missing_tensor = differs;
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily swin_family()
{
    return {"swin", "Swin", model_types, name_prefixes, {}, read_swin, apply_no_vocabulary};
}

} // namespace posiscope::core
