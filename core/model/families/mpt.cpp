// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/model/families/families.h"
#include "core/model/families/stack_reader.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"mpt"};
constexpr std::array<std::string_view, 1> name_prefixes{"transformer."};

/// MPT: pre-norm decoder with ALiBi that ends at 0 for the last key; query, key and value packed by thirds of the rows.
/// Source: MosaicML 2023, and its released code; Press et al. 2022.
Result<Architecture> read_mpt(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    Stack stack;
    stack.id = "decoder";
    stack.causal = true;
    stack.scheme_id = "alibi";
    stack.scheme_label = "ALiBi";
    stack.hidden_size = reader.word_table(stack, "wte.weight", "d_model");
    stack.heads = reader.heads("n_heads", stack.hidden_size);
    stack.head_dim = stack.hidden_size / stack.heads;
    stack.logit_scale = 1.0 / std::sqrt(static_cast<double>(stack.head_dim));
    const nlohmann::json attention = reader.config().root().value("attn_config", nlohmann::json::object());
    const ConfigJson attention_config(attention.is_object() ? attention : nlohmann::json::object(),
                                      reader.config().file_name());
    const auto alibi = attention_config.optional_flag("alibi");
    const auto normed = attention_config.optional_flag("qk_ln");
    const auto largest = attention_config.optional_number("alibi_bias_max", 0.0, 1e6);
    const auto scale = attention_config.optional_number("softmax_scale", 0.0, 1e6);
    if (!alibi)
        reader.fail(alibi.error());
    else if (!normed)
        reader.fail(normed.error());
    else if (!largest)
        reader.fail(largest.error());
    else if (!scale)
        reader.fail(scale.error());
    else if (!alibi->value_or(true) || normed->value_or(false))
        reader.fail(Error{ErrorCode::unsupported_model,
                          in_quotes(reader.config().file_name()) +
                              ": an MPT without 'alibi' or with 'qk_ln' is not supported",
                          "recognising the network"});
    else {
        stack.alibi = AlibiScheme{largest->value_or(8.0), true, true};
        if (*scale) stack.logit_scale = **scale;
    }
    stack.activation = "gelu";
    stack.layers = reader.layers(
        "n_layers", [](std::int64_t n) { return "blocks." + std::to_string(n) + ".attn.Wqkv.weight"; });
    LayerPattern layers{"blocks.{}.", "norm_1", "attn.Wqkv", "attn.Wqkv",   "attn.Wqkv", "attn.out_proj", {},
                        {},           {},       "norm_2",    "ffn.up_proj", {},          "ffn.down_proj", {}};
    layers.epsilon = reader.epsilon("layer_norm_epsilon", 1e-5);
    const std::int64_t d = stack.hidden_size;
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

ModelFamily mpt_family()
{
    return {"mpt", "MPT", model_types, name_prefixes, {}, read_mpt, apply_angle_bracket_vocabulary};
}

} // namespace posiscope::core
