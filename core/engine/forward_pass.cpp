// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/forward_pass.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <ATen/ops/all.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/erf.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mish.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "core/base/text.h"
#include "core/engine/torch_bridge.h"
#include "core/kernels/kernel_set.h"
#include "core/tensor/shape.h"

namespace posiscope::core {
namespace {

constexpr const char* where = "forward pass";

using ActivationFunction = at::Tensor (*)(const at::Tensor&);

at::Tensor gelu_exact(const at::Tensor& x)
{
    return at::gelu(x);
}
at::Tensor gelu_tanh(const at::Tensor& x)
{
    return at::gelu(x, "tanh");
}
at::Tensor gelu_clipped(const at::Tensor& x)
{
    return at::gelu(x).clamp(-10.0, 10.0);
}
at::Tensor quick_gelu(const at::Tensor& x)
{
    return x.mul(at::sigmoid(x.mul(1.702)));
}
at::Tensor relu(const at::Tensor& x)
{
    return at::relu(x);
}
at::Tensor relu_squared(const at::Tensor& x)
{
    const at::Tensor positive = at::relu(x);
    return positive.mul(positive);
}
at::Tensor relu_six(const at::Tensor& x)
{
    return x.clamp(0.0, 6.0);
}
at::Tensor leaky_relu(const at::Tensor& x)
{
    return at::leaky_relu(x);
}
at::Tensor silu(const at::Tensor& x)
{
    return at::silu(x);
}
at::Tensor mish(const at::Tensor& x)
{
    return at::mish(x);
}
at::Tensor sigmoid(const at::Tensor& x)
{
    return at::sigmoid(x);
}
at::Tensor tanh(const at::Tensor& x)
{
    return at::tanh(x);
}
at::Tensor identity(const at::Tensor& x)
{
    return x;
}
at::Tensor laplace(const at::Tensor& x)
{
    constexpr double centre = 0.707107;
    constexpr double width = 0.282095;
    return at::erf(x.sub(centre).div(width * std::sqrt(2.0))).add(1.0).mul(0.5);
}

struct ActivationRow {
    std::string_view name;
    ActivationFunction function;
};
constexpr std::array activation_rows{
    ActivationRow{"gelu", gelu_exact},
    ActivationRow{"gelu_python", gelu_exact},
    ActivationRow{"gelu_10", gelu_clipped},
    ActivationRow{"gelu_new", gelu_tanh},
    ActivationRow{"gelu_fast", gelu_tanh},
    ActivationRow{"gelu_accurate", gelu_tanh},
    ActivationRow{"gelu_pytorch_tanh", gelu_tanh},
    ActivationRow{"gelu_python_tanh", gelu_tanh},
    ActivationRow{"quick_gelu", quick_gelu},
    ActivationRow{"relu", relu},
    ActivationRow{"relu2", relu_squared},
    ActivationRow{"relu6", relu_six},
    ActivationRow{"leaky_relu", leaky_relu},
    ActivationRow{"silu", silu},
    ActivationRow{"swish", silu},
    ActivationRow{"mish", mish},
    ActivationRow{"sigmoid", sigmoid},
    ActivationRow{"tanh", tanh},
    ActivationRow{"linear", identity},
    ActivationRow{"laplace", laplace},
};

ActivationFunction find_activation(std::string_view name)
{
    for (const ActivationRow& row : activation_rows)
        if (row.name == name) return row.function;
    return nullptr;
}

/// Whether a product is left to core's kernels: on the CPU, where this thread has a batch of its own, they are quicker
/// than the BLAS of most LibTorch builds, above all on small matrices.
bool has_own_kernels(const at::Tensor& tensor)
{
    return tensor.is_cpu() && tensor.scalar_type() == at::kFloat && at::get_num_threads() == 1;
}

std::size_t as_size(std::int64_t n)
{
    return static_cast<std::size_t>(n);
}

/// c = a times b for every word and head by one of core's kernels; in each, neighbours of the last axis lie side by side.
void multiply_each(decltype(KernelSet::multiply_nt) multiply, const at::Tensor& a, const at::Tensor& b,
                   const at::Tensor& c)
{
    const auto part = [](const at::Tensor& of, std::int64_t word, std::int64_t head) {
        return of.data_ptr<float>() + word * of.stride(0) + head * of.stride(1);
    };
    for (std::int64_t word = 0; word < c.size(0); ++word)
        for (std::int64_t head = 0; head < c.size(1); ++head)
            multiply(as_size(c.size(2)), as_size(c.size(3)), as_size(a.size(3)), part(a, word, head),
                     as_size(a.stride(2)), part(b, word, head), as_size(b.stride(2)), part(c, word, head),
                     as_size(c.stride(2)));
}

/// a [count, heads, m, k] times b [count, heads, n, k] transposed.
at::Tensor products(const at::Tensor& a, const at::Tensor& b)
{
    if (!has_own_kernels(a) || a.stride(3) != 1 || b.stride(3) != 1) return at::matmul(a, b.transpose(2, 3));
    const at::Tensor c = at::empty({a.size(0), a.size(1), a.size(2), b.size(2)}, a.options());
    multiply_each(kernels().multiply_nt, a, b, c);
    return c;
}

/// a [count, heads, m, k] times b [count, heads, k, n], laid out [count, m, heads, n] where core's kernels did it.
at::Tensor mixtures(const at::Tensor& a, const at::Tensor& b)
{
    if (!has_own_kernels(a) || a.stride(3) != 1 || b.stride(3) != 1) return at::matmul(a, b);
    const at::Tensor c = at::empty({a.size(0), a.size(2), a.size(1), b.size(3)}, a.options()).transpose(1, 2);
    multiply_each(kernels().multiply_nn, a, b, c);
    return c;
}

/// A matrix [out, in] and its bias, which may be undefined.
struct DeviceLinear {
    at::Tensor weight, bias;

    [[nodiscard]] bool defined() const { return weight.defined(); }
    [[nodiscard]] at::Tensor operator()(const at::Tensor& input) const
    {
        if (!has_own_kernels(input) || blas_is_quick())
            return bias.defined() ? at::linear(input, weight, bias) : at::linear(input, weight);
        const at::Tensor rows = input.contiguous();
        std::vector<std::int64_t> shape = rows.sizes().vec();
        const std::int64_t in = shape.back(), out = weight.size(0);
        shape.back() = out;
        // Sums that begin at the bias: one way through memory less.
        at::Tensor result =
            bias.defined() ? bias.expand(shape).contiguous() : at::zeros(shape, rows.options());
        kernels().add_multiply_nt(as_size(rows.numel() / in), as_size(out), as_size(in),
                                  rows.data_ptr<float>(), as_size(in), weight.data_ptr<float>(), as_size(in),
                                  result.data_ptr<float>(), as_size(out));
        return result;
    }
};

struct DeviceNorm {
    NormKind kind = NormKind::none;
    at::Tensor gain, bias;
    double epsilon = 0.0;

    [[nodiscard]] at::Tensor operator()(const at::Tensor& input) const
    {
        if (kind == NormKind::none) return input;
        if (kind == NormKind::layer_norm) return at::layer_norm(input, {input.size(-1)}, gain, bias, epsilon);
        const at::Tensor mean_square = input.mul(input).mean(-1, true);
        const at::Tensor normed = input.mul(mean_square.add(epsilon).rsqrt());
        return gain.defined() ? normed.mul(gain) : normed;
    }
};

/// AttentionPositions on the device.
struct DevicePositions {
    at::Tensor bias, mask;                                ///< [heads or 1, length, length]
    at::Tensor key_offsets, query_offsets, value_offsets; ///< [heads or 1, 2 length - 1, head_dim]
    at::Tensor cosines, sines;                            ///< [length, pairs]
    bool interleaved = false;
};

struct DeviceLayer {
    DeviceNorm attention_input_norm;
    DeviceLinear query, key, value, attention_output;
    DeviceNorm query_norm, key_norm;
    at::Tensor logit_constants; ///< [heads, 1, 1]
    DevicePositions positions;
    DeviceNorm attention_output_norm;
    DeviceNorm cross_input_norm;
    DeviceLinear cross_query, cross_key, cross_value, cross_output;
    DeviceNorm cross_output_norm;
    DeviceNorm feed_forward_input_norm;
    DeviceLinear feed_forward_in, feed_forward_gate, feed_forward_out;
    DeviceNorm feed_forward_output_norm;
    at::Tensor attention_branch_scale, feed_forward_branch_scale;
    ActivationFunction activation = nullptr;
    std::int64_t feed_forward_width = 1;
    bool parallel = false;
};

/// Checks the arrays of a Network against each other before LibTorch sees them.
class NetworkCheck {
public:
    /// @param whole  the last layer is complete too
    explicit NetworkCheck(const Network& network, bool whole = false) : m_network(network), m_whole(whole) {}

    [[nodiscard]] std::optional<Error> find_fault()
    {
        if (m_network.heads < 1 || m_network.head_dim < 1 || m_network.layers.empty())
            return Error{ErrorCode::invalid_argument, "a forward pass needs at least one layer and one head",
                         where};
        if (m_network.word_rows.shape().size() != 2 || m_network.word_rows.empty())
            return Error{ErrorCode::shape_mismatch,
                         "the words' rows have the shape " + shape_text(m_network.word_rows.shape()) +
                             ", [words, embedding size] was expected",
                         where};
        if (m_network.position_rows.shape().size() != 2 || m_network.position_rows.empty())
            return Error{ErrorCode::shape_mismatch,
                         "the position rows have the shape " + shape_text(m_network.position_rows.shape()) +
                             ", [length, embedding size] was expected",
                         where};
        const std::int64_t columns = m_network.word_rows.dim(1);
        const std::int64_t length = m_network.position_rows.dim(0);
        require(m_network.position_rows, {length, columns}, "position rows");
        require(m_network.embedding_norm, columns, "embedding norm");
        for (const Network::SpecialRow& special : m_network.special_rows) {
            require(special.row, {columns}, "special token's row");
            if (special.position < 0 || special.position >= length)
                return Error{ErrorCode::invalid_argument,
                             "a special token stands at position " + std::to_string(special.position) +
                                 ", the input has " + std::to_string(length) + " positions",
                             where};
        }
        std::int64_t hidden = columns;
        if (!m_network.embedding_map.empty()) {
            hidden = m_network.embedding_map.weight.shape().front();
            require(m_network.embedding_map, hidden, columns, "embedding map");
        }
        for (std::size_t n = 0; n < m_network.layers.size() && !m_fault; ++n)
            check_layer(m_network.layers[n], " of layer " + std::to_string(n), hidden, length,
                        !m_whole && n + 1 == m_network.layers.size());
        if (!m_fault) require(m_network.final_norm, hidden, "norm behind the last layer");
        if (m_fault || m_network.encoder == nullptr) return m_fault;
        const Network& encoder = *m_network.encoder;
        if (encoder.word_rows.empty() || encoder.word_rows.dim(0) != m_network.word_rows.dim(0))
            return Error{ErrorCode::shape_mismatch,
                         "the encoder reads another number of words than the decoder", where};
        return NetworkCheck(encoder, true).find_fault();
    }

private:
    void check_layer(const NetworkLayer& layer, const std::string& of, std::int64_t hidden,
                     std::int64_t length, bool last)
    {
        const std::int64_t inner = m_network.heads * m_network.head_dim;
        if (!layer.merge.empty() && !m_fault)
            m_fault = Error{ErrorCode::unsupported_model, "a stage that merges rows has no forward pass here",
                            where};
        if (!layer.logit_constants.empty())
            require(layer.logit_constants, {m_network.heads}, "constants of the logits" + of);
        require(layer.attention_input_norm, hidden, "norm before the attention" + of);
        require(layer.query, inner, hidden, "query", of);
        require(layer.key, inner, hidden, "key", of);
        require(layer.query_norm, m_network.head_dim, "query norm" + of);
        require(layer.key_norm, m_network.head_dim, "key norm" + of);
        const AttentionPositions& positions = *layer.positions;
        require_by_head(positions.bias, {length, length}, "position bias" + of);
        for (const HostTensor* table :
             {&positions.key_offsets, &positions.query_offsets, &positions.value_offsets})
            require_by_head(*table, {2 * length - 1, m_network.head_dim}, "table of offsets" + of);
        if (!positions.mask.empty()) require(positions.mask, {length, length}, "mask" + of);
        if (!positions.rotary_cosines.empty())
            require(positions.rotary_sines, positions.rotary_cosines.shape(), "rotation" + of);
        if (last) return;
        require(layer.value, inner, hidden, "value", of);
        require(layer.attention_output, hidden, inner, "attention output", of);
        require(layer.attention_output_norm, hidden, "norm behind the attention" + of);
        check_cross(layer, of, hidden, inner);
        require(layer.feed_forward_input_norm, hidden, "norm before the feed-forward block" + of);
        const std::int64_t width = layer.feed_forward_width;
        const Shape& wide = layer.feed_forward_in.weight.shape();
        const std::int64_t inside = wide.empty() ? 0 : wide.front();
        require(layer.feed_forward_in, inside, hidden * width, "feed-forward input", of);
        if (!layer.feed_forward_gate.empty())
            require(layer.feed_forward_gate, inside, hidden, "feed-forward gate", of);
        require(layer.feed_forward_out, hidden, inside * width, "feed-forward output", of);
        require(layer.feed_forward_output_norm, hidden, "norm behind the feed-forward block" + of);
        if (!m_fault && find_activation(layer.activation) == nullptr)
            m_fault = Error{ErrorCode::unsupported_model,
                            "the activation " + in_quotes(layer.activation) + " is not known; known are " +
                                join_for_message(known_activations(), activation_rows.size()),
                            where};
    }

    void check_cross(const NetworkLayer& layer, const std::string& of, std::int64_t hidden,
                     std::int64_t inner)
    {
        if (layer.cross_query.empty()) return;
        if (m_network.encoder == nullptr || m_network.encoder->layers.empty()) {
            if (!m_fault)
                m_fault = Error{ErrorCode::invalid_argument,
                                "cross-attention" + of + " has no encoder to read", where};
            return;
        }
        const std::int64_t read = m_network.encoder->layers.front().query.weight.shape().back();
        require(layer.cross_input_norm, hidden, "norm before the cross-attention" + of);
        require(layer.cross_query, inner, hidden, "cross-attention query", of);
        require(layer.cross_key, inner, read, "cross-attention key", of);
        require(layer.cross_value, inner, read, "cross-attention value", of);
        require(layer.cross_output, hidden, inner, "cross-attention output", of);
        require(layer.cross_output_norm, hidden, "norm behind the cross-attention" + of);
    }

    void require(const HostTensor& array, const Shape& shape, const std::string& name)
    {
        if (m_fault || (array.shape() == shape && !array.empty())) return;
        m_fault = Error{ErrorCode::shape_mismatch,
                        "the " + name + " has the shape " + shape_text(array.shape()) + ", " +
                            shape_text(shape) + " was expected",
                        where};
    }
    void require(const Linear& linear, std::int64_t out, std::int64_t in, const std::string& name,
                 const std::string& of = {})
    {
        require(linear.weight, {out, in}, name + " matrix" + of);
        if (!linear.bias.empty()) require(linear.bias, {out}, name + " bias" + of);
    }
    void require(const Norm& norm, std::int64_t size, const std::string& name)
    {
        if (norm.kind == NormKind::none) return;
        if (!norm.gain.empty()) require(norm.gain, {size}, name + "'s gain");
        if (!norm.bias.empty()) require(norm.bias, {size}, name + "'s bias");
    }
    /// [heads or 1, ...shape], or empty.
    void require_by_head(const HostTensor& array, Shape shape, const std::string& name)
    {
        if (array.empty()) return;
        shape.insert(shape.begin(), array.dim(0) == 1 ? 1 : m_network.heads);
        require(array, shape, name);
    }

    const Network& m_network;
    bool m_whole;
    std::optional<Error> m_fault;
};

std::optional<Error> find_fault_in_groups(const ForwardOptions& options, std::size_t words)
{
    if (options.groups < 1 || options.group_of_word.size() != words)
        return Error{ErrorCode::invalid_argument,
                     std::to_string(options.group_of_word.size()) + " words have a group, " +
                         std::to_string(words) + " were expected",
                     where};
    std::vector<std::size_t> members(options.groups, 0);
    for (const std::size_t group : options.group_of_word) {
        if (group >= options.groups)
            return Error{ErrorCode::invalid_argument,
                         "a word is in group " + std::to_string(group) + " of " +
                             std::to_string(options.groups),
                         where};
        ++members[group];
    }
    if (std::find(members.begin(), members.end(), 0u) != members.end())
        return Error{ErrorCode::invalid_argument, "a group has no word", where};
    return std::nullopt;
}

/// One stack of layers on the device, and how rows pass it.
class DeviceStack {
public:
    /// @param ctx  where it is stopped, rows come out unfinished: the caller looks, and throws them away
    DeviceStack(const Network& network, const at::Device& device, const RunContext& ctx)
        : m_network(network), m_device(device), m_ctx(ctx), m_length(network.position_rows.dim(0))
    {
        m_word_rows = to_device(network.word_rows, device);
        m_position_rows = to_device(network.position_rows, device);
        for (const Network::SpecialRow& special : network.special_rows)
            m_special_rows.emplace_back(special.position, to_device(special.row, device));
        m_embedding_norm = norm(network.embedding_norm);
        m_embedding_map = linear(network.embedding_map);
        m_final_norm = norm(network.final_norm);
        for (const NetworkLayer& host : network.layers) m_layers.push_back(moved(host));
        const at::TensorOptions flags = at::TensorOptions(at::kBool).device(device);
        const auto hide = [&](const at::Tensor& entries) {
            m_hidden_keys = m_hidden_keys.defined() ? m_hidden_keys.logical_or(entries) : entries;
        };
        const at::Tensor all = at::ones({m_length, m_length}, flags);
        if (network.causal) hide(all.triu(1));
        if (network.window_after >= 0) hide(all.triu(network.window_after + 1));
        if (network.window_before >= 0) hide(all.tril(-network.window_before - 1));
        std::vector<std::int64_t> offsets;
        for (std::int64_t i = 0; i < m_length; ++i)
            for (std::int64_t j = 0; j < m_length; ++j) offsets.push_back(j - i + m_length - 1);
        m_offsets = at::from_blob(offsets.data(), {m_length, m_length}, at::kLong).clone().to(device);
    }

    [[nodiscard]] std::int64_t length() const { return m_length; }
    [[nodiscard]] std::size_t depth() const { return m_layers.size(); }
    [[nodiscard]] const DeviceLayer& layer(std::size_t number) const { return m_layers[number]; }
    [[nodiscard]] bool has_offset_vectors() const
    {
        return std::any_of(m_layers.begin(), m_layers.end(), [](const DeviceLayer& layer) {
            return layer.positions.value_offsets.defined() || layer.positions.key_offsets.defined() ||
                   layer.positions.query_offsets.defined();
        });
    }

    /// Rows of the words `order` as they enter the first layer: [words, length, hidden].
    [[nodiscard]] at::Tensor input_rows(const at::Tensor& order) const
    {
        const std::int64_t count = order.size(0);
        at::Tensor content =
            m_word_rows.index_select(0, order).unsqueeze(1).expand({count, m_length, m_word_rows.size(1)});
        if (!m_special_rows.empty()) {
            content = content.contiguous();
            for (const auto& [position, row] : m_special_rows) content.select(1, position).copy_(row);
        }
        const at::Tensor rows = m_embedding_norm(content.add(m_position_rows));
        return m_embedding_map.defined() ? m_embedding_map(rows) : rows;
    }

    /// [words, heads, length, length]
    [[nodiscard]] at::Tensor logits_of(const DeviceLayer& layer, const at::Tensor& normed) const
    {
        const at::Tensor query = layer.query_norm(by_head(layer.query(normed)));
        const at::Tensor key = layer.key_norm(by_head(layer.key(normed)));
        const DevicePositions& positions = layer.positions;
        at::Tensor logits = products(turned(positions, query), turned(positions, key));
        // Products with all 2 length - 1 offsets, of which each pair takes its own.
        if (positions.key_offsets.defined())
            logits.add_(at::matmul(query, positions.key_offsets.transpose(1, 2)).gather(3, pairs_of(query)));
        if (positions.query_offsets.defined())
            logits.add_(at::matmul(key, positions.query_offsets.transpose(1, 2))
                            .gather(3, pairs_of(key, true))
                            .transpose(2, 3));
        logits.mul_(m_network.logit_scale);
        if (positions.bias.defined()) logits.add_(positions.bias);
        if (layer.logit_constants.defined()) logits.add_(layer.logit_constants);
        return logits;
    }

    [[nodiscard]] at::Tensor probabilities_of(const DeviceLayer& layer, const at::Tensor& logits) const
    {
        constexpr double none = -std::numeric_limits<double>::infinity();
        const at::Tensor masked = layer.positions.mask.defined() ? logits.add(layer.positions.mask) : logits;
        return at::softmax(m_hidden_keys.defined() ? masked.masked_fill(m_hidden_keys, none) : masked, -1);
    }

    /// Rows behind the layer, from those before it.
    /// @param memory  the encoder's rows, or undefined
    [[nodiscard]] at::Tensor passed(const DeviceLayer& layer, const at::Tensor& rows,
                                    const at::Tensor& normed, const at::Tensor& probabilities,
                                    const at::Tensor& memory) const
    {
        const at::Tensor branch = attended(layer, normed, probabilities);
        if (layer.parallel) {
            const bool own_norm = layer.feed_forward_input_norm.kind != NormKind::none;
            return rows.add(branch).add_(
                fed_forward(layer, own_norm ? layer.feed_forward_input_norm(rows) : normed));
        }
        at::Tensor behind = layer.attention_output_norm(branch.add(rows));
        if (layer.cross_query.defined())
            behind = layer.cross_output_norm(
                attended_across(layer, layer.cross_input_norm(behind), memory).add(behind));
        return layer.feed_forward_output_norm(
            fed_forward(layer, layer.feed_forward_input_norm(behind)).add(behind));
    }

    [[nodiscard]] at::Tensor final_rows(const at::Tensor& rows) const { return m_final_norm(rows); }

private:
    [[nodiscard]] DeviceLinear linear(const Linear& host) const
    {
        return {to_device(host.weight, m_device), to_device(host.bias, m_device)};
    }
    [[nodiscard]] DeviceNorm norm(const Norm& host) const
    {
        return {host.kind, to_device(host.gain, m_device), to_device(host.bias, m_device), host.epsilon};
    }

    /// Layers share what they share in the network.
    [[nodiscard]] DevicePositions moved(const std::shared_ptr<const AttentionPositions>& host)
    {
        const auto [at, is_new] = m_positions.try_emplace(host.get());
        if (is_new)
            at->second = {to_device(host->bias, m_device),          to_device(host->mask, m_device),
                          to_device(host->key_offsets, m_device),   to_device(host->query_offsets, m_device),
                          to_device(host->value_offsets, m_device), to_device(host->rotary_cosines, m_device),
                          to_device(host->rotary_sines, m_device),  host->rotary_interleaved};
        return at->second;
    }

    [[nodiscard]] DeviceLayer moved(const NetworkLayer& host)
    {
        DeviceLayer layer;
        layer.attention_input_norm = norm(host.attention_input_norm);
        layer.query = linear(host.query);
        layer.key = linear(host.key);
        layer.value = linear(host.value);
        layer.attention_output = linear(host.attention_output);
        layer.query_norm = norm(host.query_norm);
        layer.key_norm = norm(host.key_norm);
        if (!host.logit_constants.empty())
            layer.logit_constants = to_device(host.logit_constants, m_device).view({-1, 1, 1});
        layer.positions = moved(host.positions);
        layer.attention_output_norm = norm(host.attention_output_norm);
        layer.cross_input_norm = norm(host.cross_input_norm);
        layer.cross_query = linear(host.cross_query);
        layer.cross_key = linear(host.cross_key);
        layer.cross_value = linear(host.cross_value);
        layer.cross_output = linear(host.cross_output);
        layer.cross_output_norm = norm(host.cross_output_norm);
        layer.feed_forward_input_norm = norm(host.feed_forward_input_norm);
        layer.feed_forward_in = linear(host.feed_forward_in);
        layer.feed_forward_gate = linear(host.feed_forward_gate);
        layer.feed_forward_out = linear(host.feed_forward_out);
        layer.feed_forward_output_norm = norm(host.feed_forward_output_norm);
        layer.attention_branch_scale = to_device(host.attention_branch_scale, m_device);
        layer.feed_forward_branch_scale = to_device(host.feed_forward_branch_scale, m_device);
        layer.activation = find_activation(host.activation);
        layer.feed_forward_width = host.feed_forward_width;
        layer.parallel = host.parallel;
        return layer;
    }

    /// [count, heads, positions, head_dim] of a projection [count, positions, heads * head_dim].
    [[nodiscard]] at::Tensor by_head(const at::Tensor& projected) const
    {
        return projected.view({projected.size(0), projected.size(1), m_network.heads, m_network.head_dim})
            .transpose(1, 2);
    }
    [[nodiscard]] at::Tensor joined_heads(const at::Tensor& mixed) const
    {
        return mixed.transpose(1, 2).reshape(
            {mixed.size(0), mixed.size(2), m_network.heads * m_network.head_dim});
    }

    /// For each pair of positions its place among the offsets: [count, heads, i, j], or of [count, heads, j, i].
    [[nodiscard]] at::Tensor pairs_of(const at::Tensor& vectors, bool of_keys = false) const
    {
        return (of_keys ? m_offsets.t() : m_offsets)
            .expand({vectors.size(0), vectors.size(1), m_length, m_length});
    }

    /// Queries or keys [count, heads, length, head_dim] with their leading features turned.
    [[nodiscard]] static at::Tensor turned(const DevicePositions& positions, const at::Tensor& vectors)
    {
        if (!positions.cosines.defined()) return vectors;
        const std::int64_t pairs = positions.cosines.size(1);
        const at::Tensor still = vectors.narrow(3, 2 * pairs, vectors.size(3) - 2 * pairs);
        const at::Tensor moving = vectors.narrow(3, 0, 2 * pairs);
        at::Tensor a, b;
        if (positions.interleaved) {
            const at::Tensor in_pairs =
                moving.reshape({vectors.size(0), vectors.size(1), vectors.size(2), pairs, 2});
            a = in_pairs.select(4, 0);
            b = in_pairs.select(4, 1);
        } else {
            a = moving.narrow(3, 0, pairs);
            b = moving.narrow(3, pairs, pairs);
        }
        const at::Tensor first = a.mul(positions.cosines).sub(b.mul(positions.sines));
        const at::Tensor second = b.mul(positions.cosines).add(a.mul(positions.sines));
        const at::Tensor joined = positions.interleaved
                                      ? at::stack({first, second}, 4).reshape(moving.sizes())
                                      : at::cat({first, second}, 3);
        return still.size(3) == 0 ? joined : at::cat({joined, still}, 3);
    }

    [[nodiscard]] at::Tensor attended(const DeviceLayer& layer, const at::Tensor& normed,
                                      const at::Tensor& probabilities) const
    {
        at::Tensor mixed = mixtures(probabilities, by_head(layer.value(normed)));
        if (layer.positions.value_offsets.defined()) {
            // Probabilities by offset, each times the vector of its offset.
            const at::Tensor by_offset =
                at::zeros({probabilities.size(0), probabilities.size(1), m_length, 2 * m_length - 1},
                          probabilities.options());
            by_offset.scatter_(3, pairs_of(probabilities), probabilities);
            mixed = mixed.add(at::matmul(by_offset, layer.positions.value_offsets));
        }
        const at::Tensor output = layer.attention_output(joined_heads(mixed));
        return layer.attention_branch_scale.defined() ? output.mul(layer.attention_branch_scale) : output;
    }

    [[nodiscard]] at::Tensor attended_across(const DeviceLayer& layer, const at::Tensor& normed,
                                             const at::Tensor& memory) const
    {
        const at::Tensor query = by_head(layer.cross_query(normed)), key = by_head(layer.cross_key(memory));
        const at::Tensor logits = products(query, key).mul_(m_network.logit_scale);
        return layer.cross_output(
            joined_heads(mixtures(at::softmax(logits, -1), by_head(layer.cross_value(memory)))));
    }

    /// A matrix, or a convolution over positions with zeros beyond the ends: weights [out, in * width].
    [[nodiscard]] static at::Tensor convolved(const DeviceLayer& layer, const DeviceLinear& map,
                                              const at::Tensor& rows)
    {
        const std::int64_t width = layer.feed_forward_width;
        if (width == 1) return map(rows);
        const std::int64_t count = rows.size(0), length = rows.size(1), features = rows.size(2);
        const std::int64_t before = (width - 1) / 2;
        const at::Tensor padded = at::zeros({count, length + width - 1, features}, rows.options());
        padded.narrow(1, before, length).copy_(rows);
        std::vector<at::Tensor> taps;
        for (std::int64_t tap = 0; tap < width; ++tap) taps.push_back(padded.narrow(1, tap, length));
        return map(at::stack(taps, 3).reshape({count, length, features * width}));
    }

    [[nodiscard]] at::Tensor fed_forward(const DeviceLayer& layer, const at::Tensor& normed) const
    {
        if (m_ctx.cancelled()) return normed;
        at::Tensor inner = convolved(layer, layer.feed_forward_in, normed);
        inner = layer.feed_forward_gate.defined()
                    ? inner.mul(layer.activation(layer.feed_forward_gate(normed)))
                    : layer.activation(inner);
        if (m_ctx.cancelled()) return normed;
        const at::Tensor output = convolved(layer, layer.feed_forward_out, inner);
        return layer.feed_forward_branch_scale.defined() ? output.mul(layer.feed_forward_branch_scale)
                                                         : output;
    }

    const Network& m_network;
    at::Device m_device;
    const RunContext& m_ctx;
    std::int64_t m_length;
    at::Tensor m_word_rows, m_position_rows;
    at::Tensor m_hidden_keys; ///< [length, length]: true where a query does not attend; undefined: nowhere
    at::Tensor m_offsets;     ///< [length, length]: j - i + length - 1
    std::vector<std::pair<std::int64_t, at::Tensor>> m_special_rows;
    DeviceNorm m_embedding_norm, m_final_norm;
    DeviceLinear m_embedding_map;
    std::map<const AttentionPositions*, DevicePositions> m_positions;
    std::vector<DeviceLayer> m_layers;
};

/// What one word costs in a stack.
struct Cost {
    double operations = 0.0; ///< of one layer
    double bytes = 0.0;      ///< alive at once

    Cost(const Network& network, bool has_offsets)
    {
        const auto hidden = static_cast<double>(network.layers.front().query.weight.dim(1));
        const auto length = static_cast<double>(network.position_rows.dim(0));
        const double inner = static_cast<double>(network.heads * network.head_dim);
        const HostTensor& wide = network.layers.front().feed_forward_in.weight;
        const double inside = wide.empty() ? 0.0 : static_cast<double>(wide.dim(0));
        const auto width = static_cast<double>(network.layers.front().feed_forward_width);
        const double maps = static_cast<double>(network.heads) * length * length;
        operations = 2.0 * length * (4.0 * hidden * inner + 2.0 * hidden * inside * width) +
                     4.0 * length * length * inner * (has_offsets ? 3.0 : 1.0);
        // Two halves of a step exist at once: input, projections and output; logits, probabilities and their doubles.
        bytes = 4.0 * length * (4.0 * hidden + 6.0 * inner + 3.0 * inside * width) +
                (2.0 * 4.0 + 2.0 * 8.0) * maps + (has_offsets ? 4.0 * 4.0 * maps : 0.0);
    }
};

/// One run over all words: weights on the device, sums in double, words in batches.
class ForwardPass {
public:
    ForwardPass(const Network& network, const ForwardOptions& options, const at::Device& device,
                const RunContext& ctx)
        : m_network(network), m_options(options), m_device(device), m_ctx(ctx),
          m_words(network.word_rows.dim(0)), m_stack(network, device, ctx), m_wanted(options.layers)
    {
        if (network.encoder != nullptr) m_encoder.emplace(*network.encoder, device, ctx);
        if (m_wanted.empty()) m_wanted.push_back(network.layers.size() - 1);
        m_steps_of_word = static_cast<std::int64_t>(m_stack.depth() + (m_encoder ? m_encoder->depth() : 0));
        const at::TensorOptions sums = at::TensorOptions(at::kDouble).device(device);
        m_logit_sums =
            at::zeros({static_cast<std::int64_t>(m_wanted.size()), static_cast<std::int64_t>(options.groups),
                       network.heads, m_stack.length(), m_stack.length()},
                      sums);
        if (options.probabilities) m_probability_sums = at::zeros_like(m_logit_sums);
    }

    Result<ForwardResult> run()
    {
        order_words();
        choose_batches();
        // Several cores in one batch meet after every small product; a batch for each core meets never.
        std::vector<std::jthread> helpers;
        std::vector<std::optional<Error>> faults(m_workers);
        set_torch_threads(m_workers > 1 ? 1 : m_options.threads);
        for (std::size_t n = 1; n < m_workers; ++n)
            helpers.emplace_back([this, &fault = faults[n]] {
                // Torch's state is per thread.
                auto done = without_exceptions<bool>(where, [this]() -> Result<bool> {
                    const c10::InferenceMode guard;
                    set_torch_threads(1);
                    return take_batches(false);
                });
                if (!done) fail(fault, done.error());
            });
        auto done = without_exceptions<bool>(where, [this] { return take_batches(true); });
        if (!done) fail(faults.front(), done.error());
        for (std::jthread& helper : helpers) helper.join();
        for (const std::optional<Error>& fault : faults)
            if (fault) return *fault;
        if (m_ctx.cancelled()) return cancelled_error(where);
        m_ctx.report({"forward", total_steps(), total_steps()});
        // Other threads may have finished before this one reported anything: a stop asked for now still counts.
        if (m_ctx.cancelled()) return cancelled_error(where);
        return means();
    }

private:
    [[nodiscard]] std::size_t total_steps() const
    {
        return static_cast<std::size_t>(m_words * m_steps_of_word);
    }

    /// Words of one group follow each other, so that a batch is summed group by group.
    void order_words()
    {
        m_order.resize(static_cast<std::size_t>(m_words));
        std::iota(m_order.begin(), m_order.end(), std::int64_t{0});
        std::stable_sort(m_order.begin(), m_order.end(),
                         [this](std::int64_t a, std::int64_t b) { return group_of(a) < group_of(b); });
    }
    [[nodiscard]] std::size_t group_of(std::int64_t word) const
    {
        return m_options.group_of_word[static_cast<std::size_t>(word)];
    }

    /// How many words run together: as many as fill the device, but no more than can be stopped between two products
    /// within about 100 ms and than fit the memory set aside for them. On the CPU each thread takes batches of its own
    /// where there are words enough.
    void choose_batches()
    {
        Cost cost(m_network, m_stack.has_offset_vectors());
        if (m_network.encoder != nullptr) {
            const Cost read(*m_network.encoder, m_encoder->has_offset_vectors());
            cost.operations = std::max(cost.operations, read.operations);
            cost.bytes += read.bytes;
        }
        cost.bytes += 2.0 * 8.0 *
                      static_cast<double>((m_wanted.size() - 1) * static_cast<std::size_t>(m_network.heads)) *
                      static_cast<double>(m_stack.length() * m_stack.length());

        constexpr double thread_operations = 2.4e10; // its largest product is a third of a layer
        constexpr double thread_bytes = 128.0 * 1024 * 1024;
        constexpr double cuda_operations = 1e12;
        constexpr double cuda_bytes = 4.0 * 1024 * 1024 * 1024;
        const auto threads = static_cast<double>(std::max<std::size_t>(1, m_options.threads));
        double fitting = 0.0;
        if (!m_device.is_cpu()) {
            // The GPU is handed all layers of a batch at once and waited for at its end.
            fitting = std::min(cuda_operations / (cost.operations * static_cast<double>(m_steps_of_word)),
                               cuda_bytes / cost.bytes);
        } else if (m_options.threads > 1 && static_cast<double>(m_words) >= 2.0 * threads) {
            m_workers = m_options.threads;
            const double share = std::floor(static_cast<double>(m_words) / threads);
            fitting = std::min({thread_operations / cost.operations, thread_bytes / cost.bytes, share});
        } else {
            fitting = threads * std::min(thread_operations / cost.operations, thread_bytes / cost.bytes);
        }
        m_batch = static_cast<std::int64_t>(std::clamp(fitting, 1.0, static_cast<double>(m_words)));
    }

    void fail(std::optional<Error>& place, const Error& error)
    {
        place = error;
        m_failed = true;
    }

    /// Runs batches until none is left, or one failed here or elsewhere.
    Result<bool> take_batches(bool reports)
    {
        while (!m_failed) {
            const std::int64_t size = m_batch;
            const std::int64_t first = m_next.fetch_add(size);
            if (first >= m_words) break;
            auto done = run_in_pieces(first, std::min(size, m_words - first), reports);
            if (!done) return done;
        }
        return true;
    }

    /// Runs one batch, in halves and quarters of it where memory runs out.
    Result<bool> run_in_pieces(std::int64_t first, std::int64_t count, bool reports)
    {
        std::int64_t piece = count;
        for (std::int64_t done = 0; done < count;) {
            piece = std::min(piece, count - done);
            auto finished = run_batch(first + done, piece, reports);
            if (!finished) return finished.error();
            if (*finished) {
                done += piece;
                continue;
            }
            if (piece == 1)
                return Error{ErrorCode::out_of_memory,
                             "the memory of " + m_device.str() + " does not suffice for one word of length " +
                                 std::to_string(m_stack.length()),
                             where};
            piece /= 2;
            m_batch = std::min<std::int64_t>(m_batch, piece);
        }
        return true;
    }

    using Additions = std::vector<std::pair<at::Tensor, at::Tensor>>;

    /// Adds the maps of words `first` .. `first + count - 1` (in m_order) to the sums. False where memory ran out:
    /// the sums are then as before.
    Result<bool> run_batch(std::int64_t first, std::int64_t count, bool reports)
    {
        try {
            const at::Tensor order =
                at::from_blob(const_cast<std::int64_t*>(m_order.data()) + first, {count}, at::kLong)
                    .to(m_device);
            std::int64_t step = 0;
            // Stops and reports between layers.
            const auto stopped = [&] {
                if (reports)
                    m_ctx.report(
                        {"forward", m_steps + static_cast<std::size_t>(count * step), total_steps()});
                ++step;
                return m_ctx.cancelled();
            };
            at::Tensor memory;
            if (m_encoder) {
                memory = m_encoder->input_rows(order);
                for (std::size_t n = 0; n < m_encoder->depth(); ++n) {
                    if (stopped()) return cancelled_error(where);
                    const DeviceLayer& layer = m_encoder->layer(n);
                    const at::Tensor normed = layer.attention_input_norm(memory);
                    const at::Tensor probabilities =
                        m_encoder->probabilities_of(layer, m_encoder->logits_of(layer, normed));
                    memory = m_encoder->passed(layer, memory, normed, probabilities, {});
                }
                memory = m_encoder->final_rows(memory);
            }
            Additions additions;
            at::Tensor rows = m_stack.input_rows(order);
            std::size_t next = 0;
            for (std::size_t n = 0; n < m_stack.depth(); ++n) {
                if (stopped()) return cancelled_error(where);
                const DeviceLayer& layer = m_stack.layer(n);
                const at::Tensor normed = layer.attention_input_norm(rows);
                const at::Tensor logits = m_stack.logits_of(layer, normed);
                const bool wanted = next < m_wanted.size() && m_wanted[next] == n;
                const bool last = n + 1 == m_stack.depth();
                at::Tensor probabilities;
                if (!last || m_options.probabilities) probabilities = m_stack.probabilities_of(layer, logits);
                if (wanted) {
                    const auto slot = static_cast<std::int64_t>(next++);
                    add_sums(first, count, logits, m_logit_sums.select(0, slot), additions);
                    if (m_options.probabilities)
                        add_sums(first, count, probabilities, m_probability_sums.select(0, slot), additions);
                }
                if (last) break;
                if (m_ctx.cancelled()) return cancelled_error(where);
                rows = m_stack.passed(layer, rows, normed, probabilities, memory);
            }
            // Nothing allocates any more: the sums take all of the batch or none of it.
            {
                const std::scoped_lock lock(m_sums);
                for (auto& [sum, addition] : additions) sum.add_(addition);
            }
            // CUDA works behind the program's back: wait here, so that progress is true and a stop takes effect.
            if (!m_device.is_cpu()) (void)m_logit_sums.view({-1}).select(0, 0).item<double>();
            m_steps += static_cast<std::size_t>(count * m_steps_of_word);
            return true;
        } catch (const c10::Error& error) {
            if (is_out_of_memory(error)) return false;
            throw;
        } catch (const std::bad_alloc&) {
            return false;
        }
    }

    /// Sums of `maps` over the words of each group, to be added to `sums` [groups, heads, length, length].
    void add_sums(std::int64_t first, std::int64_t count, const at::Tensor& maps, const at::Tensor& sums,
                  Additions& additions) const
    {
        for (std::int64_t from = 0; from < count;) {
            const auto group_at = [&](std::int64_t n) {
                return group_of(m_order[static_cast<std::size_t>(first + n)]);
            };
            std::int64_t to = from + 1;
            while (to < count && group_at(to) == group_at(from)) ++to;
            additions.emplace_back(sums.select(0, static_cast<std::int64_t>(group_at(from))),
                                   maps.narrow(0, from, to - from).sum(0, false, at::kDouble));
            from = to;
        }
    }

    Result<ForwardResult> means()
    {
        std::vector<double> counts(m_options.groups, 0.0);
        for (const std::size_t group : m_options.group_of_word) counts[group] += 1.0;
        const at::Tensor divisor =
            at::from_blob(counts.data(), {static_cast<std::int64_t>(counts.size()), 1, 1, 1}, at::kDouble)
                .to(m_device);
        ForwardResult result;
        result.device = m_device.str();
        const auto words = static_cast<double>(m_words);
        for (std::size_t n = 0; n < m_wanted.size(); ++n) {
            const at::Tensor logits = m_logit_sums.select(0, static_cast<std::int64_t>(n));
            if (!at::isfinite(logits).all().item<bool>())
                return Error{
                    ErrorCode::numeric_failure,
                    "attention logits that are NaN or infinite came out of the forward pass through " +
                        counted(m_wanted[n] + 1, "layer", "layers") +
                        "; finite ones were expected: look for such values in the weights",
                    where};
            ForwardMaps& maps = result.layers.emplace_back();
            maps.attention_logits = to_host(logits.sum(0).div(words));
            maps.group_attention_logits = to_host(logits.div(divisor));
            if (!m_probability_sums.defined()) continue;
            const at::Tensor probabilities = m_probability_sums.select(0, static_cast<std::int64_t>(n));
            maps.attention_probabilities = to_host(probabilities.sum(0).div(words));
            maps.group_attention_probabilities = to_host(probabilities.div(divisor));
        }
        return result;
    }

    const Network& m_network;
    const ForwardOptions& m_options;
    at::Device m_device;
    const RunContext& m_ctx;
    std::int64_t m_words;

    DeviceStack m_stack;
    std::optional<DeviceStack> m_encoder;
    std::vector<std::size_t> m_wanted; ///< layers whose maps are summed, ascending
    std::int64_t m_steps_of_word = 0;  ///< layers that one word passes
    std::vector<std::int64_t> m_order;
    std::mutex m_sums;
    at::Tensor m_logit_sums, m_probability_sums; ///< [wanted, groups, heads, length, length], double

    std::size_t m_workers = 1;
    std::atomic<std::int64_t> m_batch{1}; ///< words that run together; shrinks where memory runs out
    std::atomic<std::int64_t> m_next{0};  ///< first word (in m_order) that nobody has taken
    std::atomic<std::size_t> m_steps{0};  ///< words times layers of finished batches
    std::atomic<bool> m_failed{false};
};

} // namespace

std::vector<std::string> known_activations()
{
    std::vector<std::string> names;
    for (const ActivationRow& row : activation_rows) names.emplace_back(row.name);
    return names;
}

at::Tensor activation(const std::string& name, const at::Tensor& input)
{
    const ActivationFunction function = find_activation(name);
    return function != nullptr ? function(input) : at::Tensor();
}

Result<ForwardResult> forward_attention_maps(const Network& network, const ForwardOptions& options,
                                             const at::Device& device, const RunContext& ctx)
{
    if (auto fault = NetworkCheck(network).find_fault()) return *fault;
    if (auto fault = find_fault_in_groups(options, static_cast<std::size_t>(network.word_rows.dim(0))))
        return *fault;
    for (std::size_t n = 0; n < options.layers.size(); ++n)
        if (options.layers[n] >= network.layers.size() ||
            (n > 0 && options.layers[n] <= options.layers[n - 1]))
            return Error{ErrorCode::invalid_argument,
                         "the layers asked for are not ascending numbers below " +
                             std::to_string(network.layers.size()),
                         where};
    if (ctx.cancelled()) return cancelled_error(where);
    return ForwardPass(network, options, device, ctx).run();
}

} // namespace posiscope::core
