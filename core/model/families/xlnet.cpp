// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>

#include "core/base/text.h"
#include "core/model/families/families.h"
#include "core/model/families/sinusoidal_offsets.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"xlnet"};
constexpr std::array<std::string_view, 1> name_prefixes{"transformer."};
constexpr std::array<std::string_view, 3> signature{"word_embedding.weight", "layer.0.rel_attn.q",
                                                    "layer.0.rel_attn.r"};

/// "<sep>" and "<cls>" follow the words.
void apply_xlnet_vocabulary(Architecture& architecture, std::vector<Vocabulary::Entry>& entries)
{
    apply_angle_bracket_vocabulary(architecture, entries);
    std::optional<std::int64_t> cls, sep;
    for (const Vocabulary::Entry& entry : entries) {
        if (entry.text == "<cls>") cls = entry.id;
        if (entry.text == "<sep>") sep = entry.id;
    }
    // The published vocabularies' ids.
    for (Stack& stack : architecture.stacks)
        if (architecture.vocabulary_size > 4) stack.special_trailing = {sep.value_or(4), cls.value_or(3)};
}

/// XLNet: post-norm, no norm behind the embeddings; sinusoids of i - j, projected in each layer, meet the queries; extra
/// queries for words, positions and segments. Everything is inside the scale.
/// Source: Yang et al. 2019, sec. 2.4 and 2.5; Dai et al. 2019, sec. 3.3.
Result<Architecture> read_xlnet(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    Stack stack;
    stack.id = "encoder";
    stack.hidden_size = reader.word_table(stack, "word_embedding.weight", "d_model");
    stack.heads = reader.integer("n_head", 1, largest_hidden_size);
    stack.head_dim = reader.integer_or("d_head", std::max<std::int64_t>(1, stack.hidden_size / stack.heads),
                                       1, largest_hidden_size);
    stack.logit_scale = 1.0 / std::sqrt(static_cast<double>(stack.head_dim));
    stack.scheme_id = "relative_sinusoidal";
    stack.scheme_label = "relative sinusoidal keys";
    stack.activation = reader.activation("ff_activation", "gelu");
    if (!reader.config().has("attn_type"))
        reader.note(in_quotes(reader.config().file_name()) +
                    " has no 'attn_type'; 'bi' (attention to both sides) is taken");
    const std::string attention = reader.text_or("attn_type", "bi");
    if (attention == "uni")
        stack.causal = true;
    else if (attention != "bi")
        reader.fail(reader.config().field_error("attn_type", "is " + in_quotes(attention, 40) +
                                                                 "; 'bi' or 'uni' was expected"));
    stack.relative_vectors = read_sinusoidal_offsets(reader, stack);
    const double epsilon = reader.epsilon("layer_norm_eps", 1e-12);
    const std::int64_t inner = reader.optional_integer("d_inner", 1, largest_hidden_size).value_or(-1);
    const std::int64_t d = stack.hidden_size, heads = stack.heads, n = stack.head_dim;
    const auto part = [](std::int64_t layer, const std::string& name) {
        return "layer." + std::to_string(layer) + ".rel_attn." + name;
    };
    stack.layers = reader.layers("n_layer", [&](std::int64_t layer) { return part(layer, "q"); });
    const auto read = [&](std::int64_t number) {
        const auto projection = [&](const std::string& name) {
            return reader.tensor_linear_if_there(part(number, name), {d, heads, n}, true);
        };
        const auto per_head = [&](const std::string& name) {
            return reader.tensor_if_there(part(number, name), {heads, n});
        };
        const std::string feed_forward = "layer." + std::to_string(number) + ".ff.";
        LayerNames layer;
        layer.query = projection("q");
        layer.key = projection("k");
        layer.value = projection("v");
        layer.key_map = projection("r");
        layer.attention_output = reader.tensor_linear_if_there(part(number, "o"), {d, heads, n});
        layer.word_query_bias = per_head("r_w_bias");
        layer.position_query_bias = per_head("r_r_bias");
        layer.segment_query_bias = per_head("r_s_bias");
        layer.segment_table = reader.tensor_if_there(part(number, "seg_embed"), {-1, heads, n});
        layer.attention_output_norm =
            reader.layer_norm_if_there(part(number, "layer_norm"), NormKind::layer_norm, d, epsilon);
        layer.feed_forward_in = reader.linear_if_there(feed_forward + "layer_1", inner, d);
        layer.feed_forward_out = reader.linear_if_there(feed_forward + "layer_2", d, inner);
        layer.feed_forward_output_norm =
            reader.layer_norm_if_there(feed_forward + "layer_norm", NormKind::layer_norm, d, epsilon);
        layer.lacks = first_missing({{part(number, "v"), &layer.value},
                                     {part(number, "o"), &layer.attention_output},
                                     {feed_forward + "layer_1", &layer.feed_forward_in},
                                     {feed_forward + "layer_2", &layer.feed_forward_out}});
        for (const auto& [name, tensor] : {std::pair("r", layer.key_map.weight),
                                           {"r_w_bias", layer.word_query_bias},
                                           {"r_r_bias", layer.position_query_bias},
                                           {"r_s_bias", layer.segment_query_bias},
                                           {"seg_embed", layer.segment_table}})
            if (tensor.empty() && !layer.query.empty() && reader.ok())
                reader.fail(reader.names().missing(part(number, name)));
        return layer;
    };
    reader.read_layers(
        stack, read, [&](std::int64_t layer) { return part(layer, "q"); },
        [&](std::int64_t layer) { return part(layer, "k"); });
    reader.pad_token(5);
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily xlnet_family()
{
    return {"xlnet", "XLNet", model_types, name_prefixes, signature, read_xlnet, apply_xlnet_vocabulary};
}

} // namespace posiscope::core
