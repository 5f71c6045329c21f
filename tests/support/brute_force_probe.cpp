// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/brute_force_probe.h"

#include <algorithm>
#include <cmath>

namespace posiscope::tests {
namespace {

/// weight [out, in] times row, plus bias (or nothing).
std::vector<double> projected(const std::vector<double>& weight, const std::vector<double>& bias,
                              const std::vector<double>& row, std::size_t out_size)
{
    std::vector<double> out(out_size, 0.0);
    for (std::size_t o = 0; o < out_size; ++o) {
        double sum = bias.empty() ? 0.0 : bias[o];
        for (std::size_t f = 0; f < row.size(); ++f) sum += weight[o * row.size() + f] * row[f];
        out[o] = sum;
    }
    return out;
}

double mean_of(const std::vector<double>& row)
{
    double sum = 0.0;
    for (const double value : row) sum += value;
    return sum / static_cast<double>(row.size());
}

/// One input row after the norm, whole and split in two.
struct NormedRow {
    std::vector<double> whole, word_part, position_part;
};

NormedRow normed(const ReferenceLayer& layer, const std::vector<double>& content, const double* position)
{
    const std::size_t d = layer.features;
    std::vector<double> row(d);
    for (std::size_t f = 0; f < d; ++f) row[f] = content[f] + position[f];
    const bool centred = layer.norm == core::NormKind::layer_norm;
    const double mean = centred ? mean_of(row) : 0.0;
    double square = 0.0;
    for (const double value : row) square += (value - mean) * (value - mean);
    const double factor = layer.norm == core::NormKind::none
                              ? 1.0
                              : 1.0 / std::sqrt(square / static_cast<double>(d) + layer.epsilon);
    const double content_mean = centred ? mean_of(content) : 0.0;
    NormedRow out{std::vector<double>(d), std::vector<double>(d), std::vector<double>(d)};
    for (std::size_t f = 0; f < d; ++f) {
        const double gain = layer.gain.empty() ? 1.0 : layer.gain[f];
        const double bias = layer.bias.empty() ? 0.0 : layer.bias[f];
        out.whole[f] = (row[f] - mean) * factor * gain + bias;
        out.word_part[f] = (content[f] - content_mean) * factor * gain + bias;
        out.position_part[f] = (position[f] - (mean - content_mean)) * factor * gain;
    }
    return out;
}

/// Queries and keys of every position for one word.
struct Projected {
    std::vector<std::vector<double>> query, key;
};

double dot(const std::vector<double>& a, const std::vector<double>& b, std::size_t first, std::size_t count)
{
    double sum = 0.0;
    for (std::size_t f = first; f < first + count; ++f) sum += a[f] * b[f];
    return sum;
}

} // namespace

ReferenceMaps brute_force(const ReferenceLayer& layer, std::size_t first, std::size_t count, bool terms)
{
    const std::size_t L = layer.length;
    const std::size_t width = layer.heads * layer.head_dim;
    const std::vector<double> none;
    ReferenceMaps maps;
    maps.logits.assign(layer.heads * L * L, 0.0);
    maps.probabilities.assign(layer.heads * L * L, 0.0);
    for (const char* id : {"word_word", "word_position", "position_word", "position_position"})
        if (terms) maps.terms[id].assign(layer.heads * L * L, 0.0);
    if (terms && !layer.logit_bias.empty()) {
        maps.terms["relative"] = layer.logit_bias;
        for (double& value : maps.terms["relative"]) value *= static_cast<double>(count);
    }

    for (std::size_t w = first; w < first + count; ++w) {
        Projected whole, word_part, position_part;
        for (std::size_t i = 0; i < L; ++i) {
            const std::vector<double>* content = &layer.words[w];
            for (const auto& [position, row] : layer.special)
                if (position == i) content = &row;
            const NormedRow row = normed(layer, *content, layer.positions.data() + i * layer.features);
            const auto project = [&](Projected& out, const std::vector<double>& part, bool with_bias) {
                out.query.push_back(
                    projected(layer.query_weight, with_bias ? layer.query_bias : none, part, width));
                out.key.push_back(
                    projected(layer.key_weight, with_bias ? layer.key_bias : none, part, width));
            };
            project(whole, row.whole, true);
            if (!terms) continue;
            project(word_part, row.word_part, true);
            project(position_part, row.position_part, false);
        }
        for (std::size_t h = 0; h < layer.heads; ++h)
            for (std::size_t i = 0; i < L; ++i) {
                std::vector<double> logits(L);
                for (std::size_t j = 0; j < L; ++j) {
                    const std::size_t at = (h * L + i) * L + j;
                    const auto product = [&](const Projected& query, const Projected& key) {
                        return layer.logit_scale *
                               dot(query.query[i], key.key[j], h * layer.head_dim, layer.head_dim);
                    };
                    logits[j] =
                        product(whole, whole) + (layer.logit_bias.empty() ? 0.0 : layer.logit_bias[at]);
                    maps.logits[at] += logits[j];
                    if (!terms) continue;
                    maps.terms["word_word"][at] += product(word_part, word_part);
                    maps.terms["word_position"][at] += product(word_part, position_part);
                    maps.terms["position_word"][at] += product(position_part, word_part);
                    maps.terms["position_position"][at] += product(position_part, position_part);
                }
                const auto exists = [&](std::size_t j) {
                    return i > j ? i - j <= layer.keys_before : j - i <= layer.keys_after;
                };
                double largest = logits[i], sum = 0.0; // a query is within its own reach
                for (std::size_t j = 0; j < L; ++j)
                    if (exists(j)) largest = std::max(largest, logits[j]);
                for (std::size_t j = 0; j < L; ++j)
                    if (exists(j)) sum += std::exp(logits[j] - largest);
                for (std::size_t j = 0; j < L; ++j)
                    if (exists(j))
                        maps.probabilities[(h * L + i) * L + j] += std::exp(logits[j] - largest) / sum;
            }
    }
    const auto divide = [&](std::vector<double>& sums) {
        for (double& value : sums) value /= static_cast<double>(count);
    };
    divide(maps.logits);
    divide(maps.probabilities);
    for (auto& [id, sums] : maps.terms) divide(sums);
    return maps;
}

ReferenceLayer reference_layer(const CheckpointBuilder& builder, const ReferenceInput& input)
{
    const TinyBert& sizes = builder.sizes;
    ReferenceLayer layer;
    layer.features = static_cast<std::size_t>(sizes.hidden_size);
    layer.heads = static_cast<std::size_t>(sizes.heads);
    layer.head_dim = layer.features / layer.heads;
    layer.length = input.length;
    layer.logit_scale = 1.0 / std::sqrt(static_cast<double>(layer.head_dim));
    if (input.causal) layer.keys_after = 0;
    layer.epsilon = builder.config.at("layer_norm_eps").get<double>();

    const auto whole = [&](const std::string& name) {
        const BuiltTensor& tensor = builder.tensor(name);
        return std::vector<double>(tensor.values.begin(), tensor.values.end());
    };
    layer.gain = whole("embeddings.LayerNorm.weight");
    layer.bias = whole("embeddings.LayerNorm.bias");
    layer.query_weight = whole(query_weight_name);
    layer.query_bias = whole("encoder.layer.0.attention.self.query.bias");
    layer.key_weight = whole(key_weight_name);
    layer.key_bias = whole("encoder.layer.0.attention.self.key.bias");
    layer.positions = whole(position_table_name);
    layer.positions.resize(input.length * layer.features);
    if (input.no_positions) std::fill(layer.positions.begin(), layer.positions.end(), 0.0);

    const std::vector<double> table = whole(word_table_name);
    const std::vector<double> types = whole("embeddings.token_type_embeddings.weight");
    const auto content = [&](std::int64_t id) {
        std::vector<double> row(layer.features);
        for (std::size_t f = 0; f < row.size(); ++f)
            row[f] = table[static_cast<std::size_t>(id) * row.size() + f] + types[f];
        return row;
    };
    for (const std::int64_t id : input.word_ids) layer.words.push_back(content(id));
    if (input.special) {
        layer.special.emplace_back(0, content(built_cls_id));
        layer.special.emplace_back(input.length - 1, content(built_sep_id));
    }
    return layer;
}

} // namespace posiscope::tests
