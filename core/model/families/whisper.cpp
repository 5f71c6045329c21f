// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>

#include "core/model/families/fairseq_layers.h"
#include "core/model/families/families.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"whisper"};
constexpr std::array<std::string_view, 1> name_prefixes{"model."};

void read_layers(StackReader& reader, Stack& stack)
{
    stack.heads = reader.heads(stack.id + "_attention_heads", stack.hidden_size);
    stack.head_dim = stack.hidden_size / stack.heads;
    stack.logit_scale = 1.0 / std::sqrt(static_cast<double>(stack.head_dim));
    stack.activation = reader.activation("activation_function", "gelu");
    LayerPattern layers = fairseq_layers(stack.id, true);
    layers.inner_size = reader.optional_integer(stack.id + "_ffn_dim", 1, largest_hidden_size).value_or(-1);
    stack.layers = reader.layers(stack.id + "_layers", [&](std::int64_t n) {
        return stack.id + ".layers." + std::to_string(n) + ".self_attn.q_proj.weight";
    });
    read_layers_by_pattern(reader, stack, layers);
    reader.final_norm(stack, stack.id + ".layer_norm", NormKind::layer_norm, layers.epsilon);
}

/// Whisper: pre-norm encoder-decoder. The encoder reads frames of sound (vectors stand in their place) with a stored
/// sinusoidal table, the decoder words with a learned one; keys have no bias.
/// Source: Radford et al. 2023, sec. 2.2.
Result<Architecture> read_whisper(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    const std::int64_t d = reader.integer("d_model", 1, largest_hidden_size);
    const std::int64_t frames = reader.integer_or("max_source_positions", 1500, 1, 1 << 24);
    if (names.find("encoder.embed_positions.weight") != nullptr) {
        Stack encoder;
        encoder.id = "encoder";
        encoder.content = InputContent::vectors;
        encoder.hidden_size = d;
        encoder.scheme_id = "absolute_sinusoidal";
        encoder.scheme_label = "sinusoidal, stored";
        reader.position_table(encoder, "encoder.embed_positions.weight", d, "max_source_positions", 0, 0);
        read_layers(reader, encoder);
        if (!reader.ok()) return *reader.fault();
        architecture.stacks.push_back(std::move(encoder));
    }
    if (names.find("decoder.embed_tokens.weight") != nullptr) {
        Stack decoder;
        decoder.id = "decoder";
        decoder.causal = true;
        decoder.has_cross_attention = true;
        decoder.cross_length = frames;
        decoder.scheme_id = "absolute_learned";
        decoder.scheme_label = "learned absolute";
        decoder.hidden_size = reader.word_table(decoder, "decoder.embed_tokens.weight", "d_model");
        if (reader.flag_or("scale_embedding", false)) decoder.word_factor = std::sqrt(static_cast<double>(d));
        reader.position_table(decoder, "decoder.embed_positions.weight", d, "max_target_positions", 0, 0);
        read_layers(reader, decoder);
        reader.pad_token(std::nullopt);
        if (!reader.ok()) return *reader.fault();
        architecture.stacks.push_back(std::move(decoder));
    }
    if (!reader.ok()) return *reader.fault();
    if (architecture.stacks.empty()) return names.missing("decoder.embed_tokens.weight");
    return architecture;
}

} // namespace

ModelFamily whisper_family()
{
    return {
        "whisper", "Whisper", model_types, name_prefixes, {}, read_whisper, apply_angle_bracket_vocabulary};
}

} // namespace posiscope::core
