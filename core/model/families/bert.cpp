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

/// Vectors of offsets in every layer, shared by its heads: row i - j + positions - 1 of [2 positions - 1, head_dim].
void read_distance_tables(StackReader& reader, Stack& stack, bool for_keys_too)
{
    const std::int64_t positions = reader.integer("max_position_embeddings", 1, 1 << 28);
    RelativeVectors vectors;
    vectors.rows = 2 * positions - 1;
    vectors.centre = positions - 1;
    vectors.counts_back = true;
    vectors.features = stack.head_dim;
    vectors.for_keys = true;
    vectors.for_queries = for_keys_too;
    for (std::size_t n = 0; n < stack.layer_names.size(); ++n) {
        const std::string name =
            "encoder.layer." + std::to_string(n) + ".attention.self.distance_embedding.weight";
        LayerNames& layer = stack.layer_names[n];
        layer.key_table = reader.tensor_if_there(name, {vectors.rows, stack.head_dim});
        if (layer.key_table.empty() && reader.ok()) reader.fail(reader.names().missing(name));
        layer.query_table = layer.key_table;
    }
    stack.relative_vectors = vectors;
    stack.length_limit = positions;
}

/// BERT: post-norm, learned absolute positions, token type row 0 added to every input row. With position_embedding_type
/// relative_key, vectors of offsets meet the queries instead, with relative_key_query the keys too.
/// Source: Devlin et al. 2019; attention after Vaswani et al. 2017 with logit_scale = 1 / sqrt(head_dim); Shaw et al. 2018;
/// Huang et al. 2020, methods 2 and 4.
Result<Architecture> read_bert(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    const std::string scheme = reader.text_or("position_embedding_type", "absolute");
    const bool relative = scheme == "relative_key" || scheme == "relative_key_query";
    if (scheme != "absolute" && !relative)
        reader.fail(
            Error{ErrorCode::unsupported_model,
                  in_quotes(reader.config().file_name()) + ": the position_embedding_type " +
                      in_quotes(scheme, 60) +
                      " is not known; 'absolute', 'relative_key' or 'relative_key_query' was expected",
                  "recognising the network"});
    BertBody body;
    if (relative) body.positions = {}; // such files carry the table, but nothing reads it
    Stack stack = read_bert_body(reader, body);
    if (relative) {
        stack.scheme_id = scheme;
        stack.scheme_label = scheme == "relative_key" ? "relative keys" : "relative keys and queries";
        read_distance_tables(reader, stack, scheme == "relative_key_query");
    }
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
