// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>

#include "core/model/families/families.h"
#include "core/model/families/stack_reader.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"vits"};
constexpr std::array<std::string_view, 1> name_prefixes{"text_encoder."};

/// VITS' text encoder: post-norm; vectors of offsets within a window meet queries and are added to values, none beyond it;
/// the feed-forward block is two convolutions.
/// Source: Kim et al. 2021, sec. 2; Shaw et al. 2018; the released code.
Result<Architecture> read_vits(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    Stack stack;
    stack.id = "encoder";
    stack.hidden_size = reader.word_table(stack, "embed_tokens.weight", "hidden_size");
    stack.word_factor = std::sqrt(static_cast<double>(stack.hidden_size));
    stack.heads = reader.heads("num_attention_heads", stack.hidden_size);
    stack.head_dim = stack.hidden_size / stack.heads;
    stack.logit_scale = 1.0 / std::sqrt(static_cast<double>(stack.head_dim));
    stack.scheme_id = "relative_key_value";
    stack.scheme_label = "relative keys and values in a window";
    stack.activation = reader.activation("hidden_act", "relu");
    stack.feed_forward_width = reader.integer_or("ffn_kernel_size", 3, 1, 1 << 10);
    LayerPattern layers{"encoder.layers.{}.",
                        {},
                        "attention.q_proj",
                        "attention.k_proj",
                        "attention.v_proj",
                        "attention.out_proj",
                        {},
                        {},
                        "layer_norm",
                        {},
                        "feed_forward.conv_1",
                        {},
                        "feed_forward.conv_2",
                        "final_layer_norm"};
    layers.epsilon = reader.epsilon("layer_norm_eps", 1e-5);
    layers.inner_size = reader.optional_integer("ffn_dim", 1, largest_hidden_size).value_or(-1);
    stack.layers = reader.layers("num_hidden_layers", [](std::int64_t n) {
        return "encoder.layers." + std::to_string(n) + ".attention.q_proj.weight";
    });
    read_layers_by_pattern(reader, stack, layers);
    const std::int64_t window = reader.integer_or("window_size", 4, 0, 1 << 20);
    if (window > 0) {
        RelativeVectors vectors;
        vectors.rows = 2 * window + 1;
        vectors.centre = window;
        vectors.zero_outside = true;
        vectors.features = stack.head_dim;
        vectors.for_keys = vectors.for_values = true;
        stack.relative_vectors = vectors;
        for (std::size_t n = 0; n < stack.layer_names.size() && reader.ok(); ++n) {
            const std::string attention = "encoder.layers." + std::to_string(n) + ".attention.";
            LayerNames& layer = stack.layer_names[n];
            for (const auto& [name, tensor] :
                 {std::pair("emb_rel_k", &layer.key_table), {"emb_rel_v", &layer.value_table}}) {
                *tensor = reader.tensor_if_there(attention + name, {1, vectors.rows, stack.head_dim});
                if (tensor->empty() && reader.ok()) reader.fail(names.missing(attention + name));
            }
        }
    }
    reader.pad_token(std::nullopt);
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily vits_family()
{
    return {"vits", "VITS", model_types, name_prefixes, {}, read_vits, apply_angle_bracket_vocabulary};
}

} // namespace posiscope::core
