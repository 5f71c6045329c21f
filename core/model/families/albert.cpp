// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>

#include "core/model/families/bert_body.h"
#include "core/model/families/families.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"albert"};
constexpr std::array<std::string_view, 1> name_prefixes{"albert."};

/// ALBERT: tables of embedding_size columns, mapped to the hidden size behind their LayerNorm; all layers share one
/// set of weights.
/// Source: Lan et al. 2020.
Result<Architecture> read_albert(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    BertBody body;
    body.embedding_size_key = "embedding_size";
    body.embedding_map = "encoder.embedding_hidden_mapping_in";
    body.published_layers = 12;
    body.layers = {"encoder.albert_layer_groups.0.albert_layers.0.",
                   {},
                   "attention.query",
                   "attention.key",
                   "attention.value",
                   "attention.dense",
                   {},
                   {},
                   "attention.LayerNorm",
                   {},
                   "ffn",
                   {},
                   "ffn_output",
                   "full_layer_layer_norm"};
    for (const char* key : {"num_hidden_groups", "inner_group_num"})
        if (reader.integer_or(key, 1, 1, most_layers) != 1)
            reader.fail(
                Error{ErrorCode::unsupported_model,
                      reader.config().field_error(key, "is not 1; one shared layer was expected").message,
                      "recognising the network"});
    Stack stack = read_bert_body(reader, body);
    reader.pad_token(0);
    reader.special_by_config(stack, "bos_token_id", "eos_token_id");
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily albert_family()
{
    return {"albert", "ALBERT", model_types, name_prefixes, {}, read_albert, apply_word_piece_vocabulary};
}

} // namespace posiscope::core
