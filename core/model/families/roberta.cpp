// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>

#include "core/model/families/bert_body.h"
#include "core/model/families/families.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 3> model_types{"roberta", "xlm-roberta", "camembert"};
constexpr std::array<std::string_view, 1> name_prefixes{"roberta."};
// Behind the prefix "roberta.": without it the names are BERT's.
constexpr std::array<std::string_view, 3> signature{"embeddings.word_embeddings.weight",
                                                    "embeddings.position_embeddings.weight",
                                                    "encoder.layer.0.attention.self.query.weight"};

/// RoBERTa, XLM-R, CamemBERT: BERT whose positions begin behind the padding token's row: position i is row
/// pad_token_id + 1 + i.
/// Source: Liu et al. 2019; fairseq's and transformers' released code for the rows.
Result<Architecture> read_roberta(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    reader.pad_token(1);
    BertBody body;
    body.published_epsilon = 1e-5;
    body.first_position_row = architecture.pad_token_id.value_or(1) + 1;
    Stack stack = read_bert_body(reader, body);
    reader.special_by_config(stack, "bos_token_id", "eos_token_id");
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily roberta_family()
{
    return {
        "roberta", "RoBERTa", model_types, name_prefixes, signature, read_roberta, apply_roberta_vocabulary};
}

} // namespace posiscope::core
