// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>
#include <optional>

#include "core/base/text.h"
#include "core/model/families/fairseq_layers.h"
#include "core/model/families/families.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> bart_types{"bart"};
constexpr std::array<std::string_view, 1> blenderbot_types{"blenderbot-small"};
constexpr std::array<std::string_view, 1> marian_types{"marian"};

/// What differs between the three.
struct Relative {
    bool learned = true; ///< position tables; else computed sinusoids
    std::int64_t rows_before =
        0; ///< rows of the tables before that of position 0, which the config does not count
    bool decoder_norms_words =
        false; ///< the decoder's norm acts on the words alone, before positions are added
    bool scales_words = false;
    std::string_view activation = "gelu";
    std::optional<std::int64_t> padding;
    bool has_special = true; ///< bos and eos around the words
};

/// One stack: post-norm layers under "encoder.layers.N." or "decoder.layers.N.".
Stack read_stack(StackReader& reader, const std::string& id, const Relative& relative)
{
    Stack stack;
    stack.id = id;
    stack.causal = id == "decoder";
    const std::string own_words = id + ".embed_tokens.weight";
    stack.hidden_size = reader.word_table(
        stack,
        reader.names().find("shared.weight") != nullptr ? "shared.weight" : std::string_view(own_words),
        "d_model");
    if (reader.flag_or("scale_embedding", relative.scales_words))
        stack.word_factor = std::sqrt(static_cast<double>(stack.hidden_size));
    stack.heads = reader.heads(id + "_attention_heads", stack.hidden_size);
    stack.head_dim = stack.hidden_size / stack.heads;
    stack.logit_scale = 1.0 / std::sqrt(static_cast<double>(stack.head_dim));
    stack.activation = reader.activation("activation_function", relative.activation);
    if (!relative.learned) {
        stack.absolute = AbsolutePositions::sinusoidal;
        stack.scheme_id = "absolute_sinusoidal";
        stack.scheme_label = "sinusoidal, computed";
    } else {
        stack.scheme_id = "absolute_learned";
        stack.scheme_label = "learned absolute";
        reader.position_table(stack, id + ".embed_positions.weight", stack.hidden_size,
                              "max_position_embeddings", relative.rows_before, relative.rows_before);
        (stack.causal && relative.decoder_norms_words ? stack.content_norm : stack.embedding_norm) =
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

Result<Architecture> read_both(const TensorNames& names, const Relative& relative)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    Stack encoder = read_stack(reader, "encoder", relative);
    architecture.stacks.push_back(std::move(encoder));
    Stack decoder = read_stack(reader, "decoder", relative);
    reader.pad_token(relative.padding);
    if (relative.has_special) {
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
    Relative bart;
    bart.rows_before = 2;
    bart.padding = 1;
    return read_both(names, bart);
}

/// Blenderbot-small: BART without the two rows, and a decoder that norms its words before positions are added.
/// Source: Roller et al. 2021, and its released code.
Result<Architecture> read_blenderbot_small(const TensorNames& names)
{
    Relative blenderbot;
    blenderbot.decoder_norms_words = true;
    blenderbot.padding = 0;
    return read_both(names, blenderbot);
}

/// Marian: sinusoidal positions (sines, then cosines) that no file needs to hold, words times sqrt(d), no norm behind
/// the embeddings.
/// Source: Junczys-Dowmunt et al. 2018; Vaswani et al. 2017, sec. 3.5.
Result<Architecture> read_marian(const TensorNames& names)
{
    Relative marian;
    marian.learned = false;
    marian.scales_words = true;
    marian.activation = "swish";
    marian.has_special = false;
    return read_both(names, marian);
}

} // namespace

ModelFamily bart_family()
{
    return {"bart", "BART", bart_types, {}, {}, read_bart, apply_angle_bracket_vocabulary};
}

ModelFamily blenderbot_small_family()
{
    return {"blenderbot-small",
            "Blenderbot-small",
            blenderbot_types,
            {},
            {},
            read_blenderbot_small,
            apply_angle_bracket_vocabulary};
}

ModelFamily marian_family()
{
    return {"marian", "Marian", marian_types, {}, {}, read_marian, apply_angle_bracket_vocabulary};
}

} // namespace posiscope::core
