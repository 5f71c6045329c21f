// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>

#include "core/base/text.h"
#include "core/model/families/families.h"
#include "core/model/families/stack_reader.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"bloom"};
constexpr std::array<std::string_view, 1> name_prefixes{"transformer."};
constexpr std::array<std::string_view, 3> signature{"word_embeddings.weight",
                                                    "word_embeddings_layernorm.weight",
                                                    "h.0.self_attention.query_key_value.weight"};

/// BLOOM: pre-norm decoder with a norm on the word rows and ALiBi as slope * key position, which differs from slope * offset
/// by a constant per query; rows of the packed matrix are [head][query|key|value].
/// Source: BigScience 2022; Press et al. 2022.
Result<Architecture> read_bloom(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    Stack stack;
    stack.id = "decoder";
    stack.causal = true;
    stack.scheme_id = "alibi";
    stack.scheme_label = "ALiBi";
    stack.hidden_size = reader.word_table(stack, "word_embeddings.weight",
                                          reader.config().has("n_embed") ? "n_embed" : "hidden_size");
    const char* heads_key = reader.config().has("num_attention_heads") ? "num_attention_heads" : "n_head";
    stack.heads = reader.heads(heads_key, stack.hidden_size);
    stack.head_dim = stack.hidden_size / stack.heads;
    stack.logit_scale = 1.0 / std::sqrt(static_cast<double>(stack.head_dim));
    stack.activation = "gelu_new";
    stack.alibi = AlibiScheme{};
    stack.layers = reader.layers(
        reader.config().has("num_hidden_layers") ? "num_hidden_layers" : "n_layer",
        [](std::int64_t n) { return "h." + std::to_string(n) + ".self_attention.query_key_value.weight"; });
    LayerPattern layers{"h.{}.",
                        "input_layernorm",
                        "self_attention.query_key_value",
                        "self_attention.query_key_value",
                        "self_attention.query_key_value",
                        "self_attention.dense",
                        {},
                        {},
                        {},
                        "post_attention_layernorm",
                        "mlp.dense_h_to_4h",
                        {},
                        "mlp.dense_4h_to_h",
                        {}};
    layers.epsilon = reader.epsilon("layer_norm_epsilon", 1e-5);
    layers.packed_rows = 3 * stack.hidden_size;
    layers.query_outputs = outputs_by_head(stack.heads, stack.head_dim, 3, 0);
    layers.key_outputs = outputs_by_head(stack.heads, stack.head_dim, 3, 1);
    layers.value_outputs = outputs_by_head(stack.heads, stack.head_dim, 3, 2);
    stack.embedding_norm =
        reader.norm("word_embeddings_layernorm", NormKind::layer_norm, stack.hidden_size, layers.epsilon);
    if (reader.flag_or("apply_residual_connection_post_layernorm", false))
        reader.fail(Error{ErrorCode::unsupported_model,
                          in_quotes(reader.config().file_name()) +
                              ": 'apply_residual_connection_post_layernorm' is true; false was expected",
                          "recognising the network"});
    read_layers_by_pattern(reader, stack, layers);
    reader.pad_token(3);
    reader.special_by_config(stack, "bos_token_id", std::nullopt);
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily bloom_family()
{
    return {
        "bloom", "BLOOM", model_types, name_prefixes, signature, read_bloom, apply_angle_bracket_vocabulary};
}

} // namespace posiscope::core
