// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>

#include "core/base/text.h"
#include "core/model/families/families.h"
#include "core/model/families/stack_reader.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"esm"};
constexpr std::array<std::string_view, 1> name_prefixes{"esm."};

/// "<cls>" and "<eos>" stand around the words; tokens in angle brackets are special.
void apply_esm_vocabulary(Architecture& architecture, std::vector<Vocabulary::Entry>& entries)
{
    apply_angle_bracket_vocabulary(architecture, entries);
    special_by_text(architecture, entries, "<cls>", "<eos>");
}

/// ESM: pre-norm encoder. ESM-2 rotates queries and keys (feature k with k + half); ESM-1b has learned absolute positions
/// from row pad_token_id + 1 on and a norm on the embeddings too. With token_dropout the word's part is multiplied by 0.88:
/// training hid 0.15 * 0.8 of the words, and the scale is kept although nothing is hidden here.
/// Source: Lin et al. 2023; Rives et al. 2021; transformers' released code.
Result<Architecture> read_esm(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    Stack stack;
    stack.id = "encoder";
    stack.hidden_size = reader.word_table(stack, "embeddings.word_embeddings.weight", "hidden_size");
    reader.pad_token(1);
    const std::int64_t pad = architecture.pad_token_id.value_or(1);
    const std::string scheme = reader.text_or("position_embedding_type", "absolute");
    stack.heads = reader.heads("num_attention_heads", stack.hidden_size);
    stack.head_dim = stack.hidden_size / stack.heads;
    stack.logit_scale = 1.0 / std::sqrt(static_cast<double>(stack.head_dim));
    if (scheme == "rotary") {
        stack.scheme_id = "rotary";
        stack.scheme_label = "rotary";
        stack.rotary = reader.rotary(stack.head_dim, 10000.0);
    } else if (scheme == "absolute") {
        stack.scheme_id = "absolute_learned";
        stack.scheme_label = "learned absolute";
        reader.position_table(stack, "embeddings.position_embeddings.weight", stack.hidden_size,
                              "max_position_embeddings", pad + 1, 0);
    } else {
        reader.fail(Error{ErrorCode::unsupported_model,
                          in_quotes(reader.config().file_name()) + ": the position_embedding_type " +
                              in_quotes(scheme, 60) + " is not known; 'absolute' or 'rotary' was expected",
                          "recognising the network"});
    }
    if (reader.flag_or("token_dropout", false)) stack.word_factor = 1.0 - 0.15 * 0.8;
    LayerPattern layers{"encoder.layer.{}.",
                        "attention.LayerNorm",
                        "attention.self.query",
                        "attention.self.key",
                        "attention.self.value",
                        "attention.output.dense",
                        {},
                        {},
                        {},
                        "LayerNorm",
                        "intermediate.dense",
                        {},
                        "output.dense",
                        {}};
    layers.epsilon = reader.epsilon("layer_norm_eps", 1e-12);
    layers.inner_size = reader.optional_integer("intermediate_size", 1, largest_hidden_size).value_or(-1);
    if (reader.flag_or("emb_layer_norm_before", false))
        stack.embedding_norm =
            reader.norm("embeddings.layer_norm", NormKind::layer_norm, stack.hidden_size, layers.epsilon);
    stack.activation = "gelu";
    stack.layers = reader.layers("num_hidden_layers", [](std::int64_t n) {
        return "encoder.layer." + std::to_string(n) + ".attention.self.query.weight";
    });
    read_layers_by_pattern(reader, stack, layers);
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily esm_family()
{
    return {"esm", "ESM", model_types, name_prefixes, {}, read_esm, apply_esm_vocabulary};
}

} // namespace posiscope::core
