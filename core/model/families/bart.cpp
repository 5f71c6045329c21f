// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>

#include "core/base/text.h"
#include "core/model/families/fairseq_layers.h"
#include "core/model/families/families.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> bart_types{"bart"};
constexpr std::array<std::string_view, 1> marian_types{"marian"};

/// One stack of BART or Marian: post-norm layers under "encoder.layers.N." or "decoder.layers.N.".
Stack read_stack(StackReader& reader, const std::string& id, bool marian)
{
    Stack stack;
    stack.id = id;
    stack.causal = id == "decoder";
    const std::string own_words = id + ".embed_tokens.weight";
    stack.hidden_size = reader.word_table(
        stack,
        reader.names().find("shared.weight") != nullptr ? "shared.weight" : std::string_view(own_words),
        "d_model");
    if (reader.flag_or("scale_embedding", marian))
        stack.word_factor = std::sqrt(static_cast<double>(stack.hidden_size));
    stack.heads = reader.heads(id + "_attention_heads", stack.hidden_size);
    stack.head_dim = stack.hidden_size / stack.heads;
    stack.logit_scale = 1.0 / std::sqrt(static_cast<double>(stack.head_dim));
    stack.activation = reader.activation("activation_function", marian ? "swish" : "gelu");
    if (marian) {
        stack.absolute = AbsolutePositions::sinusoidal;
        stack.scheme_id = "absolute_sinusoidal";
        stack.scheme_label = "sinusoidal";
    } else {
        stack.scheme_id = "absolute_learned";
        stack.scheme_label = "learned absolute";
        reader.position_table(stack, id + ".embed_positions.weight", stack.hidden_size,
                              "max_position_embeddings", 2, 2);
        stack.embedding_norm =
            reader.norm(id + ".layernorm_embedding", NormKind::layer_norm, stack.hidden_size, 1e-5);
    }
    LayerPattern layers = fairseq_layers(id, false);
    layers.inner_size = reader.optional_integer(id + "_ffn_dim", 1, largest_hidden_size).value_or(-1);
    stack.layers = reader.layers(id + "_layers", [&](std::int64_t n) {
        return id + ".layers." + std::to_string(n) + ".self_attn.q_proj.weight";
    });
    read_layers_by_pattern(reader, stack, layers);
    stack.has_cross_attention = stack.causal;
    return stack;
}

Result<Architecture> read_both(const TensorNames& names, bool marian)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    Stack encoder = read_stack(reader, "encoder", marian);
    architecture.stacks.push_back(std::move(encoder));
    Stack decoder = read_stack(reader, "decoder", marian);
    reader.pad_token(marian ? std::nullopt : std::optional<std::int64_t>(1));
    if (!marian) {
        reader.special_by_config(architecture.stacks.front(), "bos_token_id", "eos_token_id");
        decoder.special_leading = architecture.stacks.front().special_leading;
        decoder.special_trailing = architecture.stacks.front().special_trailing;
    }
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(decoder));
    return architecture;
}

/// BART: learned absolute positions whose tables have two rows more (position i is row i + 2), a norm behind the
/// embeddings.
/// Source: Lewis et al. 2020.
Result<Architecture> read_bart(const TensorNames& names)
{
    return read_both(names, false);
}

/// Marian: sinusoidal positions (sines, then cosines) that no file needs to hold, words times sqrt(d), no norm behind
/// the embeddings.
/// Source: Junczys-Dowmunt et al. 2018; Vaswani et al. 2017, sec. 3.5.
Result<Architecture> read_marian(const TensorNames& names)
{
    return read_both(names, true);
}

} // namespace

ModelFamily bart_family()
{
    return {"bart", "BART", bart_types, {}, {}, read_bart, apply_angle_bracket_vocabulary};
}

ModelFamily marian_family()
{
    return {"marian", "Marian", marian_types, {}, {}, read_marian, apply_angle_bracket_vocabulary};
}

} // namespace posiscope::core
