// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/model/families/families.h"
#include "core/model/families/sinusoidal_offsets.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"transfo-xl"};
constexpr std::array<std::string_view, 1> name_prefixes{"transformer."};
constexpr std::array<std::string_view, 3> signature{
    "word_emb.emb_layers.0.weight", "layers.0.dec_attn.qkv_net.weight", "layers.0.dec_attn.r_net.weight"};

/// Adaptive input: words from `cutoffs[i]` on have d_embed / div_val^i columns and a map of their own.
void read_word_clusters(StackReader& reader, Architecture& architecture, Stack& stack)
{
    std::vector<std::int64_t> ends;
    const auto& root = reader.config().root();
    if (const auto cutoffs = root.find("cutoffs"); cutoffs != root.end() && cutoffs->is_array())
        for (const auto& end : *cutoffs)
            if (end.is_number_integer()) ends.push_back(end.get<std::int64_t>());
    const std::int64_t words = reader.integer("vocab_size", 1, 1 << 30);
    ends.push_back(words);
    const std::int64_t columns = reader.integer_or("d_embed", stack.hidden_size, 1, largest_hidden_size);
    const std::int64_t divisor = reader.integer_or("div_val", 1, 1, 1 << 10);
    std::int64_t first = 0, size = columns;
    for (std::size_t n = 0; n < ends.size() && reader.ok(); ++n) {
        if (ends[n] <= first || size < 1) {
            reader.fail(
                reader.config().field_error("cutoffs", "are not ascending below the vocabulary's size"));
            return;
        }
        WordCluster cluster;
        cluster.first = first;
        cluster.rows = ends[n] - first;
        const std::string table = "word_emb.emb_layers." + std::to_string(n) + ".weight";
        cluster.table = reader.tensor_if_there(table, {cluster.rows, size});
        if (cluster.table.empty() && reader.ok()) reader.fail(reader.names().missing(table));
        const std::string map = "word_emb.emb_projs." + std::to_string(n);
        cluster.map = reader.tensor_linear_if_there(map, {stack.hidden_size, size});
        if (cluster.map.empty() && size != stack.hidden_size && reader.ok())
            reader.fail(reader.names().missing(map));
        stack.word_clusters.push_back(std::move(cluster));
        first = ends[n];
        size /= divisor;
    }
    stack.word_table = stack.word_clusters.empty() ? std::string{} : stack.word_clusters.front().table;
    stack.word_rows = architecture.vocabulary_size = words;
}

/// Transformer-XL: post-norm decoder; sinusoids of the clamped distance i - j, projected in each layer, meet the queries;
/// extra queries for words and positions. Distances ahead are never made, so such logits do not exist. Memory plays no part
/// in the probe.
/// Source: Dai et al. 2019, sec. 3.3; Baevski and Auli 2019 (adaptive input); the released code.
Result<Architecture> read_transfo_xl(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    Stack stack;
    stack.id = "decoder";
    stack.causal = true;
    stack.window_after = 0;
    stack.window_is_absence = true;
    stack.hidden_size = reader.integer("d_model", 1, largest_hidden_size);
    stack.word_factor = std::sqrt(static_cast<double>(stack.hidden_size));
    stack.heads = reader.integer("n_head", 1, largest_hidden_size);
    stack.head_dim = reader.integer("d_head", 1, largest_hidden_size);
    stack.logit_scale = 1.0 / std::sqrt(static_cast<double>(stack.head_dim));
    stack.scheme_id = "relative_sinusoidal";
    stack.scheme_label = "relative sinusoidal keys";
    stack.activation = "relu";
    if (reader.flag_or("pre_lnorm", false) || !reader.flag_or("untie_r", true))
        reader.fail(
            Error{ErrorCode::unsupported_model,
                  in_quotes(reader.config().file_name()) +
                      ": a Transformer-XL with 'pre_lnorm' or without 'untie_r' is not supported; the "
                      "published layout is",
                  "recognising the network"});
    read_word_clusters(reader, architecture, stack);
    stack.relative_vectors = read_sinusoidal_offsets(reader, stack);
    const std::int64_t width = stack.heads * stack.head_dim;
    LayerPattern layers{"layers.{}.",
                        {},
                        "dec_attn.qkv_net",
                        "dec_attn.qkv_net",
                        "dec_attn.qkv_net",
                        "dec_attn.o_net",
                        {},
                        {},
                        "dec_attn.layer_norm",
                        {},
                        "pos_ff.CoreNet.0",
                        {},
                        "pos_ff.CoreNet.3",
                        "pos_ff.layer_norm"};
    layers.epsilon = reader.epsilon("layer_norm_epsilon", 1e-5);
    layers.inner_size = reader.optional_integer("d_inner", 1, largest_hidden_size).value_or(-1);
    layers.packed_rows = 3 * width;
    layers.query_outputs = run_of_outputs(0, width);
    layers.key_outputs = run_of_outputs(width, width);
    layers.value_outputs = run_of_outputs(2 * width, width);
    stack.layers = reader.layers(
        "n_layer", [](std::int64_t n) { return "layers." + std::to_string(n) + ".dec_attn.qkv_net.weight"; });
    read_layers_by_pattern(reader, stack, layers);
    for (std::size_t n = 0; n < stack.layer_names.size() && reader.ok(); ++n) {
        const std::string attention = "layers." + std::to_string(n) + ".dec_attn.";
        LayerNames& layer = stack.layer_names[n];
        layer.key_map = reader.linear(attention + "r_net", width, stack.hidden_size);
        for (const auto& [name, tensor] :
             {std::pair("r_w_bias", &layer.word_query_bias), {"r_r_bias", &layer.position_query_bias}}) {
            *tensor = reader.tensor_if_there(attention + name, {stack.heads, stack.head_dim});
            if (tensor->empty() && reader.ok()) reader.fail(names.missing(attention + name));
        }
    }
    reader.pad_token(std::nullopt);
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily transfo_xl_family()
{
    return {"transfo-xl",
            "Transformer-XL",
            model_types,
            name_prefixes,
            signature,
            read_transfo_xl,
            apply_angle_bracket_vocabulary};
}

} // namespace posiscope::core
