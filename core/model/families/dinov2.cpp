// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>

#include "core/model/families/families.h"
#include "core/model/families/image_stack.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"dinov2"};
constexpr std::array<std::string_view, 1> name_prefixes{"dinov2."};

/// DINOv2: ViT with a factor for each feature on both branches (LayerScale); the giant has a gated feed-forward block whose
/// two halves are packed.
/// Source: Oquab et al. 2024; Touvron et al. 2021 (CaiT), sec. 2.
Result<Architecture> read_dinov2(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    Stack stack = read_image_encoder(reader);
    ImageInput input{"embeddings.patch_embeddings.projection"};
    input.prefix = {"embeddings.cls_token"};
    input.positions = "embeddings.position_embeddings";
    read_image_input(reader, stack, input);
    const bool gated = reader.flag_or("use_swiglu_ffn", false);
    if (gated) stack.activation = "silu";
    LayerPattern layers{"encoder.layer.{}.",
                        "norm1",
                        "attention.attention.query",
                        "attention.attention.key",
                        "attention.attention.value",
                        "attention.output.dense",
                        {},
                        {},
                        {},
                        "norm2",
                        gated ? "mlp.weights_in" : "mlp.fc1",
                        gated ? "mlp.weights_in" : "",
                        gated ? "mlp.weights_out" : "mlp.fc2",
                        {}};
    layers.epsilon = reader.epsilon("layer_norm_eps", 1e-6);
    layers.attention_branch_scale = "layer_scale1.lambda1";
    layers.feed_forward_branch_scale = "layer_scale2.lambda1";
    read_image_layers(reader, stack, layers);
    for (std::size_t n = 0; n < stack.layer_names.size() && reader.ok(); ++n) {
        LayerNames& layer = stack.layer_names[n];
        if (layer.attention_branch_scale.empty() || layer.feed_forward_branch_scale.empty())
            layer.lacks = "encoder.layer." + std::to_string(n) + ".layer_scale1.lambda1";
        if (!gated || layer.feed_forward_in.empty()) continue;
        const std::int64_t half =
            names.find("encoder.layer." + std::to_string(n) + ".mlp.weights_in.weight")->shape[0] / 2;
        layer.feed_forward_gate.outputs = run_of_outputs(0, half);
        layer.feed_forward_in.outputs = run_of_outputs(half, half);
    }
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily dinov2_family()
{
    return {"dinov2", "DINOv2", model_types, name_prefixes, {}, read_dinov2, apply_no_vocabulary};
}

} // namespace posiscope::core
