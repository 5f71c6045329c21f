// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>

#include "core/model/families/bert_body.h"
#include "core/model/families/families.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"electra"};
constexpr std::array<std::string_view, 1> name_prefixes{"electra."};

/// ELECTRA: BERT whose tables may have embedding_size columns, then mapped to the hidden size.
/// Source: Clark et al. 2020.
Result<Architecture> read_electra(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    BertBody body;
    body.embedding_size_key = "embedding_size";
    body.embedding_map = "embeddings_project";
    Stack stack = read_bert_body(reader, body);
    reader.pad_token(0);
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily electra_family()
{
    return {"electra", "ELECTRA", model_types, name_prefixes, {}, read_electra, apply_word_piece_vocabulary};
}

} // namespace posiscope::core
