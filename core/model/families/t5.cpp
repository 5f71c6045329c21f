// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>

#include "core/base/text.h"
#include "core/model/families/families.h"
#include "core/model/families/stack_reader.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 2> model_types{"t5", "mt5"};
constexpr std::array<std::string_view, 2> signature{
    "encoder.block.0.layer.0.SelfAttention.q.weight",
    "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"};

/// The bucketed bias of a stack: in block 0 only, used by all of its blocks.
void read_bias(StackReader& reader, Stack& stack)
{
    const auto buckets = reader.optional_integer("relative_attention_num_buckets", 2, 1 << 20);
    const auto distance = reader.optional_integer("relative_attention_max_distance", 2, 1 << 30);
    if (!buckets && stack.id == "encoder")
        reader.note(in_quotes(reader.config().file_name()) +
                    " has no 'relative_attention_num_buckets'; 32 is taken");
    if (!distance && stack.id == "encoder")
        reader.note(in_quotes(reader.config().file_name()) +
                    " has no 'relative_attention_max_distance'; 128 is taken");
    stack.bucketed_bias = BucketedBias{buckets.value_or(32), distance.value_or(128), stack.id == "encoder"};
    const std::string name = stack.id + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight";
    const std::string table = reader.tensor_if_there(name, {stack.bucketed_bias->buckets, stack.heads});
    if (table.empty() && reader.ok()) reader.fail(reader.names().missing(name));
    for (LayerNames& layer : stack.layer_names) layer.relative_bias_table = table;
}

Stack read_stack(StackReader& reader, const std::string& id)
{
    Stack stack;
    stack.id = id;
    stack.causal = id == "decoder";
    stack.has_cross_attention = stack.causal;
    stack.scheme_id = "bucketed_bias";
    stack.scheme_label = "bucketed relative bias";
    const bool shared = reader.names().find("shared.weight") != nullptr;
    const std::string own_words = id + ".embed_tokens.weight";
    stack.hidden_size =
        reader.word_table(stack, shared ? std::string_view("shared.weight") : own_words, "d_model");
    stack.heads = reader.integer("num_heads", 1, largest_hidden_size);
    stack.head_dim = reader.integer("d_kv", 1, largest_hidden_size);
    stack.logit_scale = 1.0; // the scale is in the weights
    // "relu", or "gated-gelu" and the like.
    std::string projection = reader.text_or("feed_forward_proj", "relu");
    const bool gated = projection.starts_with("gated-");
    if (gated) projection.erase(0, 6);
    stack.activation = gated && projection == "gelu" ? "gelu_new" : projection;
    const char* layers_key =
        stack.causal && reader.config().has("num_decoder_layers") ? "num_decoder_layers" : "num_layers";
    stack.layers = reader.layers(layers_key, [&](std::int64_t n) {
        return id + ".block." + std::to_string(n) + ".layer.0.SelfAttention.q.weight";
    });
    const std::string last = stack.causal ? "layer.2." : "layer.1.";
    LayerPattern layers{id + ".block.{}.",
                        "layer.0.layer_norm",
                        "layer.0.SelfAttention.q",
                        "layer.0.SelfAttention.k",
                        "layer.0.SelfAttention.v",
                        "layer.0.SelfAttention.o",
                        {},
                        {},
                        {},
                        last + "layer_norm",
                        last + (gated ? "DenseReluDense.wi_1" : "DenseReluDense.wi"),
                        gated ? last + "DenseReluDense.wi_0" : "",
                        last + "DenseReluDense.wo",
                        {}};
    if (stack.causal) {
        layers.cross_input_norm = "layer.1.layer_norm";
        layers.cross_query = "layer.1.EncDecAttention.q";
        layers.cross_key = "layer.1.EncDecAttention.k";
        layers.cross_value = "layer.1.EncDecAttention.v";
        layers.cross_output = "layer.1.EncDecAttention.o";
    }
    layers.norm = NormKind::rms_norm;
    layers.epsilon = reader.epsilon("layer_norm_epsilon", 1e-6);
    layers.inner_size = reader.optional_integer("d_ff", 1, largest_hidden_size).value_or(-1);
    read_layers_by_pattern(reader, stack, layers);
    reader.final_norm(stack, id + ".final_layer_norm", NormKind::rms_norm, layers.epsilon);
    read_bias(reader, stack);
    return stack;
}

/// T5, mT5: pre-norm with RMSNorm, no scale on the logits, a bias by the bucket of the offset, shared by all layers of a
/// stack.
/// Source: Raffel et al. 2020; Xue et al. 2021.
Result<Architecture> read_t5(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    Stack encoder = read_stack(reader, "encoder");
    architecture.stacks.push_back(std::move(encoder));
    // T5EncoderModel files hold no decoder.
    if (names.find("decoder.block.0.layer.0.SelfAttention.q.weight") != nullptr) {
        Stack decoder = read_stack(reader, "decoder");
        architecture.stacks.push_back(std::move(decoder));
    }
    reader.pad_token(0);
    if (!reader.ok()) return *reader.fault();
    return architecture;
}

} // namespace

ModelFamily t5_family()
{
    return {"t5", "T5", model_types, {}, signature, read_t5, apply_angle_bracket_vocabulary};
}

} // namespace posiscope::core
