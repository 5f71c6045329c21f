// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>

#include "core/model/families/bert_body.h"
#include "core/model/families/families.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"mpnet"};
constexpr std::array<std::string_view, 1> name_prefixes{"mpnet."};
constexpr std::array<std::string_view, 3> signature{"embeddings.position_embeddings.weight",
                                                    "encoder.relative_attention_bias.weight",
                                                    "encoder.layer.0.attention.attn.q.weight"};

/// MPNet: learned absolute positions from row 2 on, and T5's bucketed bias, made once and used in every layer.
/// Source: Song et al. 2020; 32 buckets up to distance 128 are fixed in its released code.
Result<Architecture> read_mpnet(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    BertBody body;
    body.token_types = {};
    body.first_position_row = 2;
    body.layers = {"encoder.layer.{}.",
                   {},
                   "attention.attn.q",
                   "attention.attn.k",
                   "attention.attn.v",
                   "attention.attn.o",
                   {},
                   {},
                   "attention.LayerNorm",
                   {},
                   "intermediate.dense",
                   {},
                   "output.dense",
                   "output.LayerNorm"};
    Stack stack = read_bert_body(reader, body);
    stack.scheme_id = "absolute_learned_and_bucketed_bias";
    stack.scheme_label = "learned absolute and bucketed relative bias";
    stack.bucketed_bias =
        BucketedBias{reader.integer_or("relative_attention_num_buckets", 32, 2, 1 << 20), 128, true};
    const std::string table = reader.tensor_if_there("encoder.relative_attention_bias.weight",
                                                     {stack.bucketed_bias->buckets, stack.heads});
    if (table.empty() && reader.ok()) reader.fail(names.missing("encoder.relative_attention_bias.weight"));
    for (LayerNames& layer : stack.layer_names) layer.relative_bias_table = table;
    reader.pad_token(1);
    reader.special_by_config(stack, "bos_token_id", "eos_token_id");
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily mpnet_family()
{
    return {"mpnet", "MPNet", model_types, name_prefixes, signature, read_mpnet, apply_roberta_vocabulary};
}

} // namespace posiscope::core
