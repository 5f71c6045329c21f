// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/families/deberta_positions.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "core/base/text.h"

namespace posiscope::core {
namespace {

/// pos_att_type: a list of "c2p" and "p2c", or the two joined by "|".
bool has_term(const StackReader& reader, const std::string& term)
{
    const auto& root = reader.config().root();
    const auto types = root.find("pos_att_type");
    if (types == root.end()) return false;
    if (types->is_string()) {
        const auto text = types->get<std::string>();
        for (const std::string_view part : split(text, '|'))
            if (trimmed(part) == term) return true;
    }
    if (types->is_array())
        for (const auto& one : *types)
            if (one.is_string() && one.get<std::string>() == term) return true;
    return false;
}

} // namespace

void read_deberta_positions(StackReader& reader, Stack& stack, const DebertaPositions& positions)
{
    if (!reader.flag_or("relative_attention", false)) return;
    const bool for_keys = has_term(reader, "c2p"), for_queries = has_term(reader, "p2c");
    const double terms = 1.0 + (for_keys ? 1.0 : 0.0) + (for_queries ? 1.0 : 0.0);
    stack.logit_scale = 1.0 / std::sqrt(terms * static_cast<double>(stack.head_dim));
    if (!for_keys && !for_queries) return;
    std::int64_t furthest = reader.integer_or("max_relative_positions", -1, -1, 1 << 28);
    if (furthest < 1) furthest = reader.integer("max_position_embeddings", 1, 1 << 28);
    RelativeVectors vectors;
    vectors.buckets = positions.buckets;
    vectors.furthest = furthest;
    vectors.centre = positions.buckets > 0 ? positions.buckets : furthest;
    vectors.rows = 2 * vectors.centre;
    vectors.counts_back = true;
    vectors.features = stack.hidden_size;
    vectors.for_keys = for_keys;
    vectors.for_queries = for_queries;
    stack.relative_vectors = vectors;
    const bool absolute = stack.absolute != AbsolutePositions::none;
    stack.scheme_id = absolute ? "absolute_learned_and_disentangled" : "disentangled";
    stack.scheme_label = absolute ? "learned absolute and disentangled relative" : "disentangled relative";
    const std::string name = "encoder.rel_embeddings.weight";
    const std::string table = reader.tensor_if_there(name, {vectors.rows, stack.hidden_size});
    if (table.empty() && reader.ok()) reader.fail(reader.names().missing(name));
    if (positions.norm_allowed &&
        reader.text_or("norm_rel_ebd", "none").find("layer_norm") != std::string::npos)
        stack.relative_norm = reader.norm("encoder.LayerNorm", NormKind::layer_norm, stack.hidden_size,
                                          reader.number_or("layer_norm_eps", 1e-7, 0.0, 1.0));
    for (std::size_t n = 0; n < stack.layer_names.size() && reader.ok(); ++n) {
        const std::string attention = "encoder.layer." + std::to_string(n) + ".attention.self.";
        LayerNames& layer = stack.layer_names[n];
        const std::int64_t d = stack.hidden_size;
        if (for_keys) layer.key_map = reader.linear(attention + positions.key_map, d, d);
        if (for_queries) layer.query_map = reader.linear(attention + positions.query_map, d, d);
        layer.key_table = layer.query_table = table;
    }
}

} // namespace posiscope::core
