// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>

#include "core/model/families/families.h"
#include "core/model/families/image_stack.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> vit_types{"vit"};
constexpr std::array<std::string_view, 1> deit_types{"deit"};
constexpr std::array<std::string_view, 1> vit_prefixes{"vit."};
constexpr std::array<std::string_view, 1> deit_prefixes{"deit."};

Result<Architecture> read(const TensorNames& names, bool distilled)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    Stack stack = read_image_encoder(reader);
    ImageInput input{"embeddings.patch_embeddings.projection"};
    input.prefix = {"embeddings.cls_token"};
    if (distilled) input.prefix.emplace_back("embeddings.distillation_token");
    input.positions = "embeddings.position_embeddings";
    read_image_input(reader, stack, input);
    read_image_layers(reader, stack, read_vit_pattern(reader));
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

/// ViT: pre-norm encoder of patches, learned absolute positions over [CLS] and the grid in row order.
/// Source: Dosovitskiy et al. 2021, eq. 1 to 4.
Result<Architecture> read_vit(const TensorNames& names)
{
    return read(names, false);
}

/// DeiT: ViT with a second token before the patches, for distillation.
/// Source: Touvron et al. 2021, sec. 4.
Result<Architecture> read_deit(const TensorNames& names)
{
    return read(names, names.find("embeddings.distillation_token") != nullptr);
}

} // namespace

ModelFamily vit_family()
{
    return {"vit", "ViT", vit_types, vit_prefixes, {}, read_vit, apply_no_vocabulary};
}

ModelFamily deit_family()
{
    return {"deit", "DeiT", deit_types, deit_prefixes, {}, read_deit, apply_no_vocabulary};
}

} // namespace posiscope::core
