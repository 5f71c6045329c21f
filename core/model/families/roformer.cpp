// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>

#include "core/model/families/bert_body.h"
#include "core/model/families/families.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"roformer"};
constexpr std::array<std::string_view, 1> name_prefixes{"roformer."};

/// RoFormer: BERT whose queries and keys are rotated, neighbouring features in pairs.
/// Source: Su et al. 2021.
Result<Architecture> read_roformer(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    BertBody body;
    body.positions = {};
    body.embedding_size_key = "embedding_size";
    body.embedding_map = "embeddings_project";
    Stack stack = read_bert_body(reader, body);
    stack.scheme_id = "rotary";
    stack.scheme_label = "rotary";
    stack.rotary = RotaryScheme{stack.head_dim, 10000.0, true};
    reader.pad_token(0);
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily roformer_family()
{
    return {
        "roformer", "RoFormer", model_types, name_prefixes, {}, read_roformer, apply_word_piece_vocabulary};
}

} // namespace posiscope::core
