// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/forward_pass.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <c10/core/InferenceMode.h>

#include <ATen/ops/all.h>
#include <ATen/ops/cat.h>
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

/// A matrix [out, in] and its bias, which may be undefined.
struct DeviceLinear {
    at::Tensor weight, bias;

    [[nodiscard]] bool defined() const { return weight.defined(); }
    [[nodiscard]] at::Tensor operator()(const at::Tensor& input) const
    {
        return bias.defined() ? at::linear(input, weight, bias) : at::linear(input, weight);
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

/// AttentionPositions on the device, with the offsets already spread over pairs of positions.
struct DevicePositions {
    at::Tensor bias;                                ///< [heads or 1, length, length]
    at::Tensor key_pairs, query_pairs, value_pairs; ///< [heads or 1, length, length, head_dim]
    at::Tensor cosines, sines;                      ///< [length, pairs]
    bool interleaved = false;
};

struct DeviceLayer {
    DeviceNorm attention_input_norm;
    DeviceLinear query, key, value, attention_output;
    DeviceNorm query_norm, key_norm;
    DevicePositions positions;
    DeviceNorm attention_output_norm, feed_forward_input_norm;
    DeviceLinear feed_forward_in, feed_forward_gate, feed_forward_out;
    DeviceNorm feed_forward_output_norm;
    at::Tensor attention_branch_scale, feed_forward_branch_scale;
    ActivationFunction activation = nullptr;
    bool parallel = false;
};

/// Checks the arrays of a Network against each other before LibTorch sees them.
class NetworkCheck {
public:
    explicit NetworkCheck(const Network& network) : m_network(network) {}

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
                        n + 1 == m_network.layers.size());
        return m_fault;
    }

private:
    void check_layer(const NetworkLayer& layer, const std::string& of, std::int64_t hidden,
                     std::int64_t length, bool last)
    {
        const std::int64_t inner = m_network.heads * m_network.head_dim;
        require(layer.attention_input_norm, hidden, "norm before the attention" + of);
        require(layer.query, inner, hidden, "query", of);
        require(layer.key, inner, hidden, "key", of);
        require(layer.query_norm, m_network.head_dim, "query norm" + of);
        require(layer.key_norm, m_network.head_dim, "key norm" + of);
        const AttentionPositions& positions = layer.positions;
        require_by_head(positions.bias, {length, length}, "position bias" + of);
        for (const HostTensor* table :
             {&positions.key_offsets, &positions.query_offsets, &positions.value_offsets})
            require_by_head(*table, {2 * length - 1, m_network.head_dim}, "table of offsets" + of);
        if (!positions.rotary_cosines.empty())
            require(positions.rotary_sines, positions.rotary_cosines.shape(), "rotation" + of);
        if (last) return;
        require(layer.value, inner, hidden, "value", of);
        require(layer.attention_output, hidden, inner, "attention output", of);
        require(layer.attention_output_norm, hidden, "norm behind the attention" + of);
        require(layer.feed_forward_input_norm, hidden, "norm before the feed-forward block" + of);
        const Shape& wide = layer.feed_forward_in.weight.shape();
        const std::int64_t inside = wide.empty() ? 0 : wide.front();
        require(layer.feed_forward_in, inside, hidden, "feed-forward input", of);
        if (!layer.feed_forward_gate.empty())
            require(layer.feed_forward_gate, inside, hidden, "feed-forward gate", of);
        require(layer.feed_forward_out, hidden, inside, "feed-forward output", of);
        require(layer.feed_forward_output_norm, hidden, "norm behind the feed-forward block" + of);
        if (!m_fault && find_activation(layer.activation) == nullptr)
            m_fault = Error{ErrorCode::unsupported_model,
                            "the activation " + in_quotes(layer.activation) + " is not known; known are " +
                                join_for_message(known_activations(), activation_rows.size()),
                            where};
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

/// One run over all words: weights on the device, sums in double, words in batches.
class ForwardPass {
public:
    ForwardPass(const Network& network, const ForwardOptions& options, const at::Device& device,
                const RunContext& ctx)
        : m_network(network), m_options(options), m_device(device), m_ctx(ctx),
          m_words(network.word_rows.dim(0)), m_hidden(network.layers.front().query.weight.dim(1)),
          m_length(network.position_rows.dim(0)),
          m_layer_count(static_cast<std::int64_t>(network.layers.size()))
    {
    }

    Result<ForwardMaps> run()
    {
        move_weights();
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
        return static_cast<std::size_t>(m_words * m_layer_count);
    }

    [[nodiscard]] DeviceLinear linear(const Linear& host) const
    {
        return {to_device(host.weight, m_device), to_device(host.bias, m_device)};
    }
    [[nodiscard]] DeviceNorm norm(const Norm& host) const
    {
        return {host.kind, to_device(host.gain, m_device), to_device(host.bias, m_device), host.epsilon};
    }

    /// [heads or 1, length, length, head_dim] of a table [heads or 1, 2 length - 1, head_dim] by offset j - i.
    [[nodiscard]] at::Tensor spread_over_pairs(const HostTensor& table) const
    {
        if (table.empty()) return {};
        std::vector<std::int64_t> offsets;
        for (std::int64_t i = 0; i < m_length; ++i)
            for (std::int64_t j = 0; j < m_length; ++j) offsets.push_back(j - i + m_length - 1);
        const at::Tensor index =
            at::from_blob(offsets.data(), {static_cast<std::int64_t>(offsets.size())}, at::kLong)
                .to(m_device);
        return to_device(table, m_device)
            .index_select(1, index)
            .view({table.dim(0), m_length, m_length, m_network.head_dim});
    }

    void move_weights()
    {
        m_word_rows = to_device(m_network.word_rows, m_device);
        m_position_rows = to_device(m_network.position_rows, m_device);
        for (const Network::SpecialRow& special : m_network.special_rows)
            m_special_rows.emplace_back(special.position, to_device(special.row, m_device));
        m_embedding_norm = norm(m_network.embedding_norm);
        m_embedding_map = linear(m_network.embedding_map);
        for (const NetworkLayer& host : m_network.layers) {
            DeviceLayer layer;
            layer.attention_input_norm = norm(host.attention_input_norm);
            layer.query = linear(host.query);
            layer.key = linear(host.key);
            layer.value = linear(host.value);
            layer.attention_output = linear(host.attention_output);
            layer.query_norm = norm(host.query_norm);
            layer.key_norm = norm(host.key_norm);
            layer.positions = {to_device(host.positions.bias, m_device),
                               spread_over_pairs(host.positions.key_offsets),
                               spread_over_pairs(host.positions.query_offsets),
                               spread_over_pairs(host.positions.value_offsets),
                               to_device(host.positions.rotary_cosines, m_device),
                               to_device(host.positions.rotary_sines, m_device),
                               host.positions.rotary_interleaved};
            layer.attention_output_norm = norm(host.attention_output_norm);
            layer.feed_forward_input_norm = norm(host.feed_forward_input_norm);
            layer.feed_forward_in = linear(host.feed_forward_in);
            layer.feed_forward_gate = linear(host.feed_forward_gate);
            layer.feed_forward_out = linear(host.feed_forward_out);
            layer.feed_forward_output_norm = norm(host.feed_forward_output_norm);
            layer.attention_branch_scale = to_device(host.attention_branch_scale, m_device);
            layer.feed_forward_branch_scale = to_device(host.feed_forward_branch_scale, m_device);
            layer.activation = find_activation(host.activation);
            layer.parallel = host.parallel;
            m_layers.push_back(std::move(layer));
        }
        const at::TensorOptions flags = at::TensorOptions(at::kBool).device(m_device);
        const auto hide = [&](const at::Tensor& entries) {
            m_hidden_keys = m_hidden_keys.defined() ? m_hidden_keys.logical_or(entries) : entries;
        };
        const at::Tensor all = at::ones({m_length, m_length}, flags);
        if (m_network.causal) hide(all.triu(1));
        if (m_network.window_after >= 0) hide(all.triu(m_network.window_after + 1));
        if (m_network.window_before >= 0) hide(all.tril(-m_network.window_before - 1));
        const at::TensorOptions sums = at::TensorOptions(at::kDouble).device(m_device);
        const auto groups = static_cast<std::int64_t>(m_options.groups);
        m_logit_sums = at::zeros({groups, m_network.heads, m_length, m_length}, sums);
        if (m_options.probabilities) m_probability_sums = at::zeros_like(m_logit_sums);
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

    /// How many words run together: as many as fill the device, but no more than can be stopped between two layers
    /// within about 100 ms and than fit the memory set aside for them. On the CPU each thread takes batches of its own
    /// where there are words enough.
    void choose_batches()
    {
        const auto hidden = static_cast<double>(m_hidden);
        const auto length = static_cast<double>(m_length);
        const double inner = static_cast<double>(m_network.heads * m_network.head_dim);
        const HostTensor& wide = m_network.layers.front().feed_forward_in.weight;
        const double inside = wide.empty() ? 0.0 : static_cast<double>(wide.dim(0));
        const double maps = static_cast<double>(m_network.heads) * length * length;

        const double operations =
            2.0 * length * (4.0 * hidden * inner + 2.0 * hidden * inside) + 4.0 * length * length * inner;
        // Two halves of a step exist at once: input, projections and output; logits, probabilities and their doubles.
        const double bytes =
            4.0 * length * (4.0 * hidden + 6.0 * inner + 3.0 * inside) + (2.0 * 4.0 + 2.0 * 8.0) * maps;

        const bool has_pairs = std::any_of(m_layers.begin(), m_layers.end(), [](const DeviceLayer& layer) {
            return layer.positions.key_pairs.defined() || layer.positions.query_pairs.defined() ||
                   layer.positions.value_pairs.defined();
        });
        const double pair_bytes = has_pairs ? 4.0 * maps * static_cast<double>(m_network.head_dim) : 0.0;

        constexpr double thread_operations = 1e9;
        constexpr double thread_bytes = 64.0 * 1024 * 1024;
        constexpr double cuda_operations = 1e12;
        constexpr double cuda_bytes = 4.0 * 1024 * 1024 * 1024;
        const auto threads = static_cast<double>(std::max<std::size_t>(1, m_options.threads));
        double fitting = 0.0;
        if (!m_device.is_cpu()) {
            // The GPU is handed all layers of a batch at once and waited for at its end.
            fitting = std::min(cuda_operations / (operations * static_cast<double>(m_layer_count)),
                               cuda_bytes / (bytes + pair_bytes));
        } else if (m_options.threads > 1 && static_cast<double>(m_words) >= 2.0 * threads) {
            m_workers = m_options.threads;
            const double share = std::floor(static_cast<double>(m_words) / threads);
            fitting = std::min({thread_operations / operations, thread_bytes / (bytes + pair_bytes), share});
        } else {
            fitting = threads * std::min(thread_operations / operations, thread_bytes / (bytes + pair_bytes));
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
                                 std::to_string(m_length),
                             where};
            piece /= 2;
            m_batch = std::min<std::int64_t>(m_batch, piece);
        }
        return true;
    }

    /// [count, heads, length, head_dim] of a projection [count, length, heads * head_dim].
    [[nodiscard]] at::Tensor by_head(const at::Tensor& projected) const
    {
        return projected.view({projected.size(0), m_length, m_network.heads, m_network.head_dim})
            .transpose(1, 2);
    }

    [[nodiscard]] at::Tensor input_rows(std::int64_t first, std::int64_t count) const
    {
        const at::Tensor order =
            at::from_blob(const_cast<std::int64_t*>(m_order.data()) + first, {count}, at::kLong).to(m_device);
        at::Tensor content =
            m_word_rows.index_select(0, order).unsqueeze(1).expand({count, m_length, m_word_rows.size(1)});
        if (!m_special_rows.empty()) {
            content = content.contiguous();
            for (const auto& [position, row] : m_special_rows) content.select(1, position).copy_(row);
        }
        const at::Tensor rows = m_embedding_norm(content.add(m_position_rows));
        return m_embedding_map.defined() ? m_embedding_map(rows) : rows;
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

    /// sum over features of vectors [count, heads, length, head_dim] and pairs [heads or 1, i, j, head_dim], the
    /// vector being that of i or of j: [count, heads, i, j].
    [[nodiscard]] static at::Tensor against_pairs(const at::Tensor& vectors, const at::Tensor& pairs,
                                                  bool of_query)
    {
        return vectors.unsqueeze(of_query ? 3 : 2).mul(pairs.unsqueeze(0)).sum(-1);
    }

    [[nodiscard]] at::Tensor logits_of(const DeviceLayer& layer, const at::Tensor& normed) const
    {
        const at::Tensor query = layer.query_norm(by_head(layer.query(normed)));
        const at::Tensor key = layer.key_norm(by_head(layer.key(normed)));
        const DevicePositions& positions = layer.positions;
        at::Tensor logits = at::matmul(turned(positions, query), turned(positions, key).transpose(2, 3));
        if (positions.key_pairs.defined()) logits.add_(against_pairs(query, positions.key_pairs, true));
        if (positions.query_pairs.defined()) logits.add_(against_pairs(key, positions.query_pairs, false));
        logits.mul_(m_network.logit_scale);
        if (positions.bias.defined()) logits.add_(positions.bias);
        return logits;
    }

    [[nodiscard]] at::Tensor probabilities_of(const at::Tensor& logits) const
    {
        constexpr double none = -std::numeric_limits<double>::infinity();
        return at::softmax(m_hidden_keys.defined() ? logits.masked_fill(m_hidden_keys, none) : logits, -1);
    }

    [[nodiscard]] at::Tensor attended(const DeviceLayer& layer, const at::Tensor& normed) const
    {
        const at::Tensor probabilities = probabilities_of(logits_of(layer, normed));
        at::Tensor mixed = at::matmul(probabilities, by_head(layer.value(normed)));
        if (layer.positions.value_pairs.defined())
            mixed =
                mixed.add(probabilities.unsqueeze(4).mul(layer.positions.value_pairs.unsqueeze(0)).sum(3));
        const at::Tensor output = layer.attention_output(
            mixed.transpose(1, 2).reshape({normed.size(0), m_length, m_network.heads * m_network.head_dim}));
        return layer.attention_branch_scale.defined() ? output.mul(layer.attention_branch_scale) : output;
    }

    [[nodiscard]] static at::Tensor fed_forward(const DeviceLayer& layer, const at::Tensor& normed)
    {
        at::Tensor inner = layer.feed_forward_in(normed);
        inner = layer.feed_forward_gate.defined()
                    ? inner.mul(layer.activation(layer.feed_forward_gate(normed)))
                    : layer.activation(inner);
        const at::Tensor output = layer.feed_forward_out(inner);
        return layer.feed_forward_branch_scale.defined() ? output.mul(layer.feed_forward_branch_scale)
                                                         : output;
    }

    /// Adds the maps of words `first` .. `first + count - 1` (in m_order) to the sums. False where memory ran out:
    /// the sums are then as before.
    Result<bool> run_batch(std::int64_t first, std::int64_t count, bool reports)
    {
        try {
            at::Tensor rows = input_rows(first, count);
            for (std::int64_t n = 0; n + 1 < m_layer_count; ++n) {
                if (m_ctx.cancelled()) return cancelled_error(where);
                if (reports) report(count * n);
                const DeviceLayer& layer = m_layers[static_cast<std::size_t>(n)];
                const at::Tensor normed = layer.attention_input_norm(rows);
                const at::Tensor branch = attended(layer, normed);
                if (m_ctx.cancelled()) return cancelled_error(where);
                if (layer.parallel) {
                    const bool own_norm = layer.feed_forward_input_norm.kind != NormKind::none;
                    const at::Tensor other =
                        fed_forward(layer, own_norm ? layer.feed_forward_input_norm(rows) : normed);
                    rows = rows.add(branch).add_(other);
                    continue;
                }
                rows = layer.attention_output_norm(branch.add(rows));
                rows = layer.feed_forward_output_norm(
                    fed_forward(layer, layer.feed_forward_input_norm(rows)).add(rows));
            }
            if (m_ctx.cancelled()) return cancelled_error(where);
            if (reports) report(count * (m_layer_count - 1));
            const at::Tensor logits = logits_of(m_layers.back(), m_layers.back().attention_input_norm(rows));
            rows = at::Tensor();
            const at::Tensor probabilities =
                m_options.probabilities ? probabilities_of(logits) : at::Tensor();
            add_to_sums(first, count, logits, probabilities);
            // CUDA works behind the program's back: wait here, so that progress is true and a stop takes effect.
            if (!m_device.is_cpu()) (void)m_logit_sums.view({-1}).select(0, 0).item<double>();
            m_steps += static_cast<std::size_t>(count * m_layer_count);
            return true;
        } catch (const c10::Error& error) {
            if (is_out_of_memory(error)) return false;
            throw;
        } catch (const std::bad_alloc&) {
            return false;
        }
    }

    /// Only the caller's own thread reports: steps of finished batches and of its own unfinished one.
    void report(std::int64_t own_steps) const
    {
        m_ctx.report({"forward", m_steps + static_cast<std::size_t>(own_steps), total_steps()});
    }

    void add_to_sums(std::int64_t first, std::int64_t count, const at::Tensor& logits,
                     const at::Tensor& probabilities)
    {
        // All of them before the first is added: only these steps allocate.
        std::vector<std::pair<at::Tensor, at::Tensor>> additions;
        for (std::int64_t from = 0; from < count;) {
            const auto group_at = [&](std::int64_t n) {
                return group_of(m_order[static_cast<std::size_t>(first + n)]);
            };
            std::int64_t to = from + 1;
            while (to < count && group_at(to) == group_at(from)) ++to;
            const auto group = static_cast<std::int64_t>(group_at(from));
            additions.emplace_back(m_logit_sums.select(0, group),
                                   logits.narrow(0, from, to - from).sum(0, false, at::kDouble));
            if (probabilities.defined())
                additions.emplace_back(m_probability_sums.select(0, group),
                                       probabilities.narrow(0, from, to - from).sum(0, false, at::kDouble));
            from = to;
        }
        const std::scoped_lock lock(m_sums);
        for (auto& [sum, addition] : additions) sum.add_(addition);
    }

    Result<ForwardMaps> means()
    {
        if (!at::isfinite(m_logit_sums).all().item<bool>())
            return Error{ErrorCode::numeric_failure,
                         "attention logits that are NaN or infinite came out of the forward pass through " +
                             counted(m_network.layers.size(), "layer", "layers") +
                             "; finite ones were expected: look for such values in the weights",
                         where};
        std::vector<double> counts(m_options.groups, 0.0);
        for (const std::size_t group : m_options.group_of_word) counts[group] += 1.0;
        const at::Tensor divisor =
            at::from_blob(counts.data(), {static_cast<std::int64_t>(counts.size()), 1, 1, 1}, at::kDouble)
                .to(m_device);
        ForwardMaps maps;
        maps.device = m_device.str();
        const auto words = static_cast<double>(m_words);
        maps.attention_logits = to_host(m_logit_sums.sum(0).div(words));
        if (m_probability_sums.defined())
            maps.attention_probabilities = to_host(m_probability_sums.sum(0).div(words));
        maps.group_attention_logits = to_host(m_logit_sums.div_(divisor));
        if (m_probability_sums.defined())
            maps.group_attention_probabilities = to_host(m_probability_sums.div_(divisor));
        return maps;
    }

    const Network& m_network;
    const ForwardOptions& m_options;
    at::Device m_device;
    const RunContext& m_ctx;
    std::int64_t m_words, m_hidden, m_length, m_layer_count;

    at::Tensor m_word_rows, m_position_rows;
    at::Tensor m_hidden_keys; ///< [length, length]: true where a query does not attend; undefined: nowhere
    std::vector<std::pair<std::int64_t, at::Tensor>> m_special_rows;
    DeviceNorm m_embedding_norm;
    DeviceLinear m_embedding_map;
    std::vector<DeviceLayer> m_layers;
    std::vector<std::int64_t> m_order;
    std::mutex m_sums;
    at::Tensor m_logit_sums, m_probability_sums; ///< [groups, heads, length, length], double

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

Result<ForwardMaps> forward_attention_maps(const Network& network, const ForwardOptions& options,
                                           const at::Device& device, const RunContext& ctx)
{
    if (auto fault = NetworkCheck(network).find_fault()) return *fault;
    if (auto fault = find_fault_in_groups(options, static_cast<std::size_t>(network.word_rows.dim(0))))
        return *fault;
    if (ctx.cancelled()) return cancelled_error(where);
    return ForwardPass(network, options, device, ctx).run();
}

} // namespace posiscope::core
