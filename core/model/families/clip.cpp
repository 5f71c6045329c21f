// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>

#include "core/model/families/families.h"
#include "core/model/families/image_stack.h"

namespace posiscope::core {
namespace {

// Also one stack alone, as text encoders of image generators and image encoders of others are published.
constexpr std::array<std::string_view, 3> clip_types{"clip", "clip_text_model", "clip_vision_model"};
constexpr std::array<std::string_view, 3> siglip_types{"siglip", "siglip_text_model", "siglip_vision_model"};

void read_layers(StackReader& reader, Stack& stack, const std::string& model)
{
    stack.heads = reader.heads("num_attention_heads", stack.hidden_size);
    stack.head_dim = stack.hidden_size / stack.heads;
    stack.logit_scale = 1.0 / std::sqrt(static_cast<double>(stack.head_dim));
    LayerPattern layers{model + "encoder.layers.{}.",
                        "layer_norm1",
                        "self_attn.q_proj",
                        "self_attn.k_proj",
                        "self_attn.v_proj",
                        "self_attn.out_proj",
                        {},
                        {},
                        {},
                        "layer_norm2",
                        "mlp.fc1",
                        {},
                        "mlp.fc2",
                        {}};
    layers.epsilon = reader.epsilon("layer_norm_eps", 1e-5);
    layers.inner_size = reader.optional_integer("intermediate_size", 1, largest_hidden_size).value_or(-1);
    stack.layers = reader.layers("num_hidden_layers", [&](std::int64_t n) {
        return model + "encoder.layers." + std::to_string(n) + ".self_attn.q_proj.weight";
    });
    read_layers_by_pattern(reader, stack, layers);
}

/// @param model  what stands before the names of this stack: "text_model.", or nothing where it is alone
Stack read_text(StackReader& reader, bool clip, const std::string& model)
{
    Stack stack;
    stack.id = "text";
    stack.causal = clip;
    stack.hidden_size = reader.word_table(stack, model + "embeddings.token_embedding.weight", "hidden_size");
    stack.scheme_id = "absolute_learned";
    stack.scheme_label = "learned absolute";
    reader.position_table(stack, model + "embeddings.position_embedding.weight", stack.hidden_size,
                          "max_position_embeddings", 0, 0);
    stack.activation = reader.activation("hidden_act", clip ? "quick_gelu" : "gelu_pytorch_tanh");
    read_layers(reader, stack, model);
    reader.pad_token(1);
    if (clip) reader.special_by_config(stack, "bos_token_id", "eos_token_id");
    return stack;
}

Stack read_vision(StackReader& reader, bool clip, const std::string& model)
{
    Stack stack;
    stack.id = "vision";
    stack.hidden_size = reader.integer("hidden_size", 1, largest_hidden_size);
    ImageInput input{model + "embeddings.patch_embedding"};
    if (clip) input.prefix = {model + "embeddings.class_embedding"};
    input.positions = model + "embeddings.position_embedding.weight";
    input.positions_in_batch = false;
    read_image_input(reader, stack, input);
    stack.activation = reader.activation("hidden_act", clip ? "quick_gelu" : "gelu_pytorch_tanh");
    if (clip)
        stack.embedding_norm = reader.norm(model + "pre_layrnorm", NormKind::layer_norm, stack.hidden_size,
                                           reader.epsilon("layer_norm_eps", 1e-5));
    read_layers(reader, stack, model);
    return stack;
}

Result<Architecture> read_both(const TensorNames& names, bool clip)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    const auto add = [&](const std::string& id, std::string_view first_tensor, const auto& read) {
        for (const std::string& model : {id + "_model.", std::string()}) {
            if (!reader.ok() || names.find(model + std::string(first_tensor)) == nullptr) continue;
            const std::string part = id + "_config";
            if (names.checkpoint().config().has(part)) reader.enter_config(part);
            architecture.stacks.push_back(read(reader, clip, model));
            return;
        }
    };
    add("text", "embeddings.token_embedding.weight", read_text);
    add("vision", "embeddings.patch_embedding.weight", read_vision);
    if (!reader.ok()) return *reader.fault();
    if (architecture.stacks.empty()) return names.missing("text_model.embeddings.token_embedding.weight");
    return architecture;
}

/// CLIP: a causal text stack and an image stack, pre-norm, learned absolute positions; the image stack has a norm on its
/// embeddings too.
/// Source: Radford et al. 2021, sec. 2.4, and the released code.
Result<Architecture> read_clip(const TensorNames& names)
{
    return read_both(names, true);
}

/// SigLIP: the text stack sees both sides, the image stack has no class token.
/// Source: Zhai et al. 2023, and the released code.
Result<Architecture> read_siglip(const TensorNames& names)
{
    return read_both(names, false);
}

} // namespace

ModelFamily clip_family()
{
    return {"clip", "CLIP", clip_types, {}, {}, read_clip, apply_angle_bracket_vocabulary};
}

ModelFamily siglip_family()
{
    return {"siglip", "SigLIP", siglip_types, {}, {}, read_siglip, apply_angle_bracket_vocabulary};
}

} // namespace posiscope::core
