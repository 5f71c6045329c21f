// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>

#include "core/base/text.h"
#include "core/model/families/deberta_positions.h"
#include "core/model/families/families.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"deberta"};
constexpr std::array<std::string_view, 1> name_prefixes{"deberta."};

/// DeBERTa: queries, keys and values packed by head; the vector of i - j, projected in each layer, meets the queries as a
/// key (c2p) and the keys as a query (p2c).
/// Source: He et al. 2021, eq. 4, and the released code.
Result<Architecture> read_deberta(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    BertBody body;
    body.published_epsilon = 1e-7;
    if (!reader.flag_or("position_biased_input", true)) body.positions = {};
    body.layers.query = body.layers.key = body.layers.value = "attention.self.in_proj";
    const std::int64_t heads = reader.integer("num_attention_heads", 1, largest_hidden_size);
    const std::int64_t hidden = reader.integer("hidden_size", 1, largest_hidden_size);
    const std::int64_t head_dim = std::max<std::int64_t>(1, hidden / heads);
    body.layers.packed_rows = 3 * heads * head_dim;
    body.layers.query_outputs = outputs_by_head(heads, head_dim, 3, 0);
    body.layers.key_outputs = outputs_by_head(heads, head_dim, 3, 1);
    body.layers.value_outputs = outputs_by_head(heads, head_dim, 3, 2);
    Stack stack = read_bert_body(reader, body);
    for (std::size_t n = 0; n < stack.layer_names.size() && reader.ok(); ++n) {
        const std::string attention = "encoder.layer." + std::to_string(n) + ".attention.self.";
        LayerNames& layer = stack.layer_names[n];
        const auto own_bias = [&](const std::string& name, LinearNames& linear) {
            linear.bias = reader.tensor_if_there(attention + name, {stack.hidden_size});
            linear.bias_is_packed = false;
            if (linear.bias.empty() && reader.ok()) reader.fail(names.missing(attention + name));
        };
        own_bias("q_bias", layer.query);
        own_bias("v_bias", layer.value);
    }
    DebertaPositions positions;
    positions.key_map = "pos_proj";
    positions.query_map = "pos_q_proj";
    read_deberta_positions(reader, stack, positions);
    reader.pad_token(0);
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily deberta_family()
{
    return {"deberta", "DeBERTa", model_types, name_prefixes, {}, read_deberta, apply_word_piece_vocabulary};
}

} // namespace posiscope::core
