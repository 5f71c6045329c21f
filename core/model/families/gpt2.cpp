// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>

#include "core/base/text.h"
#include "core/model/families/families.h"
#include "core/model/families/stack_reader.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"gpt2"};
constexpr std::array<std::string_view, 1> name_prefixes{"transformer."};
constexpr std::array<std::string_view, 3> signature{"wte.weight", "wpe.weight", "h.0.attn.c_attn.weight"};

/// GPT-2: pre-norm decoder, learned absolute positions; matrices are stored [in, out], query, key and value packed by
/// thirds of the columns. The buffers "attn.bias" and "attn.masked_bias" are masks.
/// Source: Radford et al. 2019.
Result<Architecture> read_gpt2(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    Stack stack;
    stack.id = "decoder";
    stack.causal = true;
    stack.scheme_id = "absolute_learned";
    stack.scheme_label = "learned absolute";
    stack.hidden_size = reader.word_table(stack, "wte.weight", "n_embd");
    reader.position_table(stack, "wpe.weight", stack.hidden_size, "n_positions", 0, 0);
    stack.heads = reader.heads("n_head", stack.hidden_size);
    stack.head_dim = stack.hidden_size / stack.heads;
    stack.logit_scale = 1.0 / std::sqrt(static_cast<double>(stack.head_dim));
    if (!reader.flag_or("scale_attn_weights", true)) stack.logit_scale = 1.0;
    if (reader.flag_or("scale_attn_by_inverse_layer_idx", false))
        reader.fail(Error{ErrorCode::unsupported_model,
                          in_quotes(reader.config().file_name()) +
                              ": 'scale_attn_by_inverse_layer_idx' is not supported; false was expected",
                          "recognising the network"});
    stack.activation = reader.activation("activation_function", "gelu_new");
    stack.layers = reader.layers(
        "n_layer", [](std::int64_t n) { return "h." + std::to_string(n) + ".attn.c_attn.weight"; });
    const std::int64_t d = stack.hidden_size;
    LayerPattern layers{"h.{}.",
                        "ln_1",
                        "attn.c_attn",
                        "attn.c_attn",
                        "attn.c_attn",
                        "attn.c_proj",
                        {},
                        {},
                        {},
                        "ln_2",
                        "mlp.c_fc",
                        {},
                        "mlp.c_proj",
                        {}};
    layers.epsilon = reader.epsilon("layer_norm_epsilon", 1e-5);
    layers.inner_size = reader.optional_integer("n_inner", 1, largest_hidden_size).value_or(4 * d);
    layers.transposed = true;
    layers.packed_rows = 3 * d;
    layers.query_outputs = run_of_outputs(0, d);
    layers.key_outputs = run_of_outputs(d, d);
    layers.value_outputs = run_of_outputs(2 * d, d);
    read_layers_by_pattern(reader, stack, layers);
    reader.pad_token(std::nullopt);
    reader.special_by_config(stack, "bos_token_id", std::nullopt);
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily gpt2_family()
{
    return {
        "gpt2", "GPT-2", model_types, name_prefixes, signature, read_gpt2, apply_angle_bracket_vocabulary};
}

} // namespace posiscope::core
