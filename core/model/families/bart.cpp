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
constexpr std::array<std::string_view, 1> mbart_types{"mbart"};
constexpr std::array<std::string_view, 1> pegasus_types{"pegasus"};
constexpr std::array<std::string_view, 1> m2m100_types{"m2m_100"};

/// What differs between BART and those that follow its names.
struct Relative {
    bool learned = true; ///< position tables; else sinusoids, computed where the file holds none
    bool as_fairseq =
        false; ///< sinusoids: the last frequency is 1 / base, position 0 is the row behind padding's
    bool norms_before = false; ///< each block, and behind the last layer; else behind each block
    std::int64_t rows_before =
        0; ///< rows of the tables before that of position 0, which the config does not count
    bool decoder_norms_words =
        false; ///< the decoder's norm acts on the words alone, before positions are added
    bool scales_words = false;
    std::string_view activation = "gelu";
    std::optional<std::int64_t> padding;
    bool has_special = true; ///< bos and eos around the words
};

/// One stack: layers under "encoder.layers.N." or "decoder.layers.N.".
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
    const std::string table = id + ".embed_positions.weight";
    if (!relative.learned) {
        stack.scheme_id = "absolute_sinusoidal";
        if (reader.names().find(table) != nullptr && !relative.as_fairseq) {
            stack.scheme_label = "sinusoidal, stored"; // what the file holds is what the network reads
            reader.position_table(stack, table, stack.hidden_size, "max_position_embeddings", 0, 0);
        } else {
            stack.scheme_label = "sinusoidal, computed";
            stack.absolute = AbsolutePositions::sinusoidal;
            stack.sinusoidal.last_frequency_is_base = relative.as_fairseq;
            if (relative.as_fairseq) stack.first_position_row = relative.padding.value_or(1) + 1;
        }
    } else {
        stack.scheme_id = "absolute_learned";
        stack.scheme_label = "learned absolute";
        reader.position_table(stack, table, stack.hidden_size, "max_position_embeddings",
                              relative.rows_before, relative.rows_before);
        (stack.causal && relative.decoder_norms_words ? stack.content_norm : stack.embedding_norm) =
            reader.norm(id + ".layernorm_embedding", NormKind::layer_norm, stack.hidden_size, 1e-5);
    }
    LayerPattern layers = fairseq_layers(id, relative.norms_before);
    layers.inner_size = reader.optional_integer(id + "_ffn_dim", 1, largest_hidden_size).value_or(-1);
    stack.layers = reader.layers(id + "_layers", [&](std::int64_t n) {
        return id + ".layers." + std::to_string(n) + ".self_attn.q_proj.weight";
    });
    read_layers_by_pattern(reader, stack, layers);
    if (relative.norms_before) reader.final_norm(stack, id + ".layer_norm", NormKind::layer_norm, 1e-5);
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

/// mBART: BART with the norms before its blocks and behind its last layers.
/// Source: Liu et al. 2020, sec. 2.2, and its released code.
Result<Architecture> read_mbart(const TensorNames& names)
{
    Relative mbart;
    mbart.norms_before = true;
    mbart.rows_before = 2;
    mbart.padding = 1;
    mbart.has_special = false; // language codes, which are not told by the config
    return read_both(names, mbart);
}

/// Pegasus: Marian's sinusoids, norms before the blocks.
/// Source: Zhang et al. 2020, and its released code.
Result<Architecture> read_pegasus(const TensorNames& names)
{
    Relative pegasus;
    pegasus.learned = false;
    pegasus.norms_before = true;
    pegasus.padding = 0;
    pegasus.has_special = false;
    return read_both(names, pegasus);
}

/// M2M-100 and NLLB: fairseq's sinusoids, words times sqrt(d), norms before the blocks.
/// Source: Fan et al. 2021; NLLB Team 2022; the released code.
Result<Architecture> read_m2m100(const TensorNames& names)
{
    Relative m2m100;
    m2m100.learned = false;
    m2m100.as_fairseq = true;
    m2m100.norms_before = true;
    m2m100.scales_words = true;
    m2m100.activation = "relu";
    m2m100.padding = 1;
    m2m100.has_special = false;
    return read_both(names, m2m100);
}

} // namespace

ModelFamily mbart_family()
{
    return {"mbart", "mBART", mbart_types, {}, {}, read_mbart, apply_angle_bracket_vocabulary};
}

ModelFamily pegasus_family()
{
    return {"pegasus", "Pegasus", pegasus_types, {}, {}, read_pegasus, apply_angle_bracket_vocabulary};
}

ModelFamily m2m100_family()
{
    return {"m2m100", "M2M-100", m2m100_types, {}, {}, read_m2m100, apply_angle_bracket_vocabulary};
}

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
