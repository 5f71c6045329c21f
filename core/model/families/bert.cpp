// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>

#include "core/base/text.h"
#include "core/model/families/bert_body.h"
#include "core/model/families/families.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"bert"};
constexpr std::array<std::string_view, 1> name_prefixes{"bert."};
constexpr std::array<std::string_view, 4> signature{
    "embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight",
    "embeddings.LayerNorm.weight", "encoder.layer.0.attention.self.query.weight"};

/// BERT: post-norm, learned absolute positions, token type row 0 added to every input row.
/// Source: Devlin et al. 2019; attention after Vaswani et al. 2017 with logit_scale = 1 / sqrt(head_dim).
Result<Architecture> read_bert(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    const std::string scheme = reader.text_or("position_embedding_type", "absolute");
    if (scheme != "absolute")
        reader.fail(Error{ErrorCode::unsupported_model,
                          in_quotes(reader.config().file_name()) + ": the position_embedding_type " +
                              in_quotes(scheme, 60) + " is not known; 'absolute' was expected",
                          "recognising the network"});
    Stack stack = read_bert_body(reader, BertBody{});
    reader.pad_token(0);
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily bert_family()
{
    return {"bert", "BERT", model_types, name_prefixes, signature, read_bert, apply_word_piece_vocabulary};
}

} // namespace posiscope::core
