// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>

#include "core/model/families/fairseq_layers.h"
#include "core/model/families/families.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"opennmt-transformer"};
constexpr std::array<std::string_view, 1> name_prefixes{"model."};

Stack read_stack(StackReader& reader, Architecture& architecture, const std::string& id)
{
    Stack stack;
    stack.id = id;
    stack.causal = stack.has_cross_attention = id == "decoder";
    const std::int64_t rows_before = architecture.vocabulary_size;
    stack.hidden_size = reader.word_table(stack, id + ".embed_tokens.weight", "d_model",
                                          id == "encoder" ? "source_vocab_size" : "target_vocab_size");
    architecture.vocabulary_size = std::max(architecture.vocabulary_size, rows_before);
    if (reader.flag_or("scale_embedding", true))
        stack.word_factor = std::sqrt(static_cast<double>(stack.hidden_size));
    stack.heads = reader.heads(id + "_attention_heads", stack.hidden_size);
    stack.head_dim = stack.hidden_size / stack.heads;
    stack.logit_scale = 1.0 / std::sqrt(static_cast<double>(stack.head_dim));
    stack.activation = reader.activation("activation_function", "relu");
    stack.scheme_id = "absolute_sinusoidal";
    stack.scheme_label = "sinusoidal, computed";
    stack.absolute = AbsolutePositions::sinusoidal;
    stack.sinusoidal.last_frequency_is_base = true;
    stack.first_position_row = reader.integer_or("first_position", 1, 0, 1 << 20);
    const bool pre_norm = reader.flag_or("normalize_before", true);
    LayerPattern layers = fairseq_layers(id, pre_norm);
    layers.inner_size = reader.optional_integer(id + "_ffn_dim", 1, largest_hidden_size).value_or(-1);
    stack.layers = reader.layers(id + "_layers", [&](std::int64_t n) {
        return id + ".layers." + std::to_string(n) + ".self_attn.q_proj.weight";
    });
    read_layers_by_pattern(reader, stack, layers);
    if (pre_norm) reader.final_norm(stack, id + ".layer_norm", NormKind::layer_norm, layers.epsilon);
    return stack;
}

/// OpenNMT's Transformer: sinusoidal positions that are not stored, sines before cosines, the first word at position 1; a
/// vocabulary for each side.
/// Source: Klein et al. 2017; Vaswani et al. 2017; the released code of OpenNMT-tf.
Result<Architecture> read_opennmt(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    for (const std::string id : {"encoder", "decoder"}) {
        Stack stack = read_stack(reader, architecture, id);
        if (!reader.ok()) return *reader.fault();
        architecture.stacks.push_back(std::move(stack));
    }
    reader.pad_token(0);
    if (!reader.ok()) return *reader.fault();
    return architecture;
}

} // namespace

ModelFamily opennmt_family()
{
    return {"opennmt-transformer", "OpenNMT Transformer",         model_types, name_prefixes, {},
            read_opennmt,          apply_angle_bracket_vocabulary};
}

} // namespace posiscope::core
