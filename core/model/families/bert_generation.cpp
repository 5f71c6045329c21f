// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>

#include "core/model/families/bert_body.h"
#include "core/model/families/families.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"bert-generation"};
constexpr std::array<std::string_view, 2> name_prefixes{"bert.", "encoder.bert."};

/// BERT for generation: BERT without token types.
/// Source: Rothe et al. 2020.
Result<Architecture> read_bert_generation(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    BertBody body;
    body.token_types = {};
    Stack stack = read_bert_body(reader, body);
    reader.pad_token(0);
    reader.special_by_config(stack, "bos_token_id", "eos_token_id");
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily bert_generation_family()
{
    return {"bert_generation",    "BERT for generation",         model_types, name_prefixes, {},
            read_bert_generation, apply_angle_bracket_vocabulary};
}

} // namespace posiscope::core
