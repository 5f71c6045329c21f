// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>

#include "core/model/families/families.h"
#include "core/model/families/image_stack.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"beit"};
constexpr std::array<std::string_view, 1> name_prefixes{"beit."};

/// BEiT: ViT whose positions are a bias by the offset of patches on the grid, in every layer or shared by all, with three
/// entries for [CLS]; LayerScale on both branches; keys without a bias.
/// Source: Bao et al. 2022, sec. 2.3, and the released code.
Result<Architecture> read_beit(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    Stack stack = read_image_encoder(reader);
    ImageInput input{"embeddings.patch_embeddings.projection"};
    input.prefix = {"embeddings.cls_token"};
    const bool absolute = reader.flag_or("use_absolute_position_embeddings", false);
    if (absolute) input.positions = "embeddings.position_embeddings";
    read_image_input(reader, stack, input);
    const bool shared = reader.flag_or("use_shared_relative_position_bias", false);
    const bool relative = shared || reader.flag_or("use_relative_position_bias", false);
    LayerPattern layers = read_vit_pattern(reader);
    if (reader.number_or("layer_scale_init_value", 0.1, -1e6, 1e6) > 0.0) {
        layers.attention_branch_scale = "lambda_1";
        layers.feed_forward_branch_scale = "lambda_2";
    }
    read_image_layers(reader, stack, layers);
    if (relative) {
        stack.needs_prefix = true;
        stack.scheme_id = absolute ? "absolute_learned_and_grid_bias" : "grid_bias";
        stack.scheme_label =
            absolute ? "learned absolute and two-dimensional relative bias" : "two-dimensional relative bias";
        stack.grid_bias = GridBias{stack.grid_rows, stack.grid_columns, true};
        for (std::size_t n = 0; n < stack.layer_names.size() && reader.ok(); ++n) {
            const std::string of_layer = "encoder.layer." + std::to_string(n) + ".attention.attention.";
            const std::string name =
                (shared ? "encoder." : of_layer) + "relative_position_bias.relative_position_bias_table";
            std::string& table = stack.layer_names[n].relative_bias_table;
            table = reader.tensor_if_there(name, {stack.grid_bias->table_rows(), stack.heads});
            if (table.empty() && reader.ok()) reader.fail(names.missing(name));
        }
    } else if (!absolute) {
        stack.scheme_id = "none";
        stack.scheme_label = "none";
    }
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily beit_family()
{
    return {"beit", "BEiT", model_types, name_prefixes, {}, read_beit, apply_no_vocabulary};
}

} // namespace posiscope::core
