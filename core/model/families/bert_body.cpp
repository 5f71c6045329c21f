// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/families/bert_body.h"

#include <cmath>

#include "core/base/text.h"

namespace posiscope::core {

Stack read_bert_body(StackReader& reader, const BertBody& body)
{
    Stack stack;
    const std::int64_t columns = reader.word_table(stack, body.words, body.embedding_size_key);
    stack.hidden_size =
        body.embedding_map.empty() ? columns : reader.integer(body.size_key, 1, largest_hidden_size);
    stack.embedding_size = columns;
    if (!body.positions.empty()) {
        reader.position_table(stack, body.positions, columns, "max_position_embeddings",
                              body.first_position_row, 0);
        stack.scheme_id = "absolute_learned";
        stack.scheme_label = "learned absolute";
    }
    if (!body.token_types.empty()) reader.token_types(stack, body.token_types, columns);
    stack.heads = reader.heads(body.heads_key, stack.hidden_size);
    stack.head_dim = stack.hidden_size / stack.heads;
    stack.logit_scale = 1.0 / std::sqrt(static_cast<double>(stack.head_dim));
    const auto query_of = [&](std::int64_t layer) {
        std::string name = body.layers.layer + body.layers.query + ".weight";
        if (const std::size_t at = name.find("{}"); at != std::string::npos)
            name.replace(at, 2, std::to_string(layer));
        return name;
    };
    stack.layers = reader.layers(body.layers_key, query_of, body.published_layers);
    LayerPattern layers = body.layers;
    layers.epsilon = body.epsilon_in_config ? reader.epsilon("layer_norm_eps", body.published_epsilon)
                                            : body.published_epsilon;
    layers.inner_size = reader.optional_integer(body.inner_key, 1, largest_hidden_size).value_or(-1);
    stack.activation = reader.activation(body.activation_key, "gelu");
    stack.embedding_norm = reader.norm("embeddings.LayerNorm", NormKind::layer_norm, columns, layers.epsilon);
    if (!body.embedding_map.empty() && columns != stack.hidden_size)
        stack.embedding_map = reader.linear(std::string(body.embedding_map), stack.hidden_size, columns);
    stack.causal = reader.flag_or("is_decoder", false);
    stack.id = stack.causal ? "decoder" : "encoder";
    read_layers_by_pattern(reader, stack, layers);
    return stack;
}

} // namespace posiscope::core
