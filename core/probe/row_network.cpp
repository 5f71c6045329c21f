// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/probe/row_network.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>
#include <utility>

#include "core/base/text.h"
#include "core/kernels/kernel_set.h"
#include "core/kernels/thread_pool.h"

namespace posiscope::core {
namespace {

constexpr std::size_t rows_per_block = 64;

/// Calls work(first, end) for blocks of rows on several threads.
template <class Work>
void for_row_blocks(std::size_t rows, const Work& work)
{
    parallel_blocks((rows + rows_per_block - 1) / rows_per_block, [&](std::size_t block) {
        work(block * rows_per_block, std::min(rows, (block + 1) * rows_per_block));
    });
}

void norm_run(const Norm& norm, float* run, std::size_t features)
{
    double mean = 0.0;
    if (norm.kind == NormKind::layer_norm) {
        for (std::size_t f = 0; f < features; ++f) mean += static_cast<double>(run[f]);
        mean /= static_cast<double>(features);
    }
    double square = 0.0;
    for (std::size_t f = 0; f < features; ++f) {
        const double centered = static_cast<double>(run[f]) - mean;
        square += centered * centered;
    }
    const double factor = 1.0 / std::sqrt(square / static_cast<double>(features) + norm.epsilon);
    for (std::size_t f = 0; f < features; ++f) {
        double value = (static_cast<double>(run[f]) - mean) * factor;
        if (!norm.gain.empty()) value *= static_cast<double>(norm.gain.data()[f]);
        if (!norm.bias.empty()) value += static_cast<double>(norm.bias.data()[f]);
        run[f] = static_cast<float>(value);
    }
}

void add(HostTensor& rows, const HostTensor& branch, const HostTensor& scale)
{
    for (std::size_t at = 0; at < rows.size(); ++at)
        rows.data()[at] += branch.data()[at] * (scale.empty() ? 1.0f : scale.data()[at % scale.size()]);
}

double gelu_exact(double x)
{
    return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2));
}
double gelu_tanh(double x)
{
    return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}
double gelu_quick(double x)
{
    return x / (1.0 + std::exp(-1.702 * x));
}
double relu(double x)
{
    return std::max(x, 0.0);
}
double relu_squared(double x)
{
    return relu(x) * relu(x);
}
double silu(double x)
{
    return x / (1.0 + std::exp(-x));
}
double hyperbolic_tangent(double x)
{
    return std::tanh(x);
}
double sigmoid(double x)
{
    return 1.0 / (1.0 + std::exp(-x));
}
double mish(double x)
{
    return x * std::tanh(std::log1p(std::exp(x)));
}

struct Activation {
    std::string_view name;
    double (*apply)(double);
};
constexpr std::array activations{
    Activation{"gelu", gelu_exact},
    Activation{"gelu_python", gelu_exact},
    Activation{"gelu_new", gelu_tanh},
    Activation{"gelu_fast", gelu_tanh},
    Activation{"gelu_accurate", gelu_tanh},
    Activation{"gelu_pytorch_tanh", gelu_tanh},
    Activation{"quick_gelu", gelu_quick},
    Activation{"relu", relu},
    Activation{"relu2", relu_squared},
    Activation{"silu", silu},
    Activation{"swish", silu},
    Activation{"tanh", hyperbolic_tangent},
    Activation{"sigmoid", sigmoid},
    Activation{"mish", mish},
};

Result<HostTensor> feed_forward(const NetworkLayer& layer, const HostTensor& rows)
{
    HostTensor inner = apply_linear(layer.feed_forward_in, rows);
    if (layer.feed_forward_gate.empty()) {
        if (auto done = apply_activation(layer.activation, inner); !done) return done.error();
    } else {
        HostTensor gate = apply_linear(layer.feed_forward_gate, rows);
        if (auto done = apply_activation(layer.activation, gate); !done) return done.error();
        for (std::size_t at = 0; at < inner.size(); ++at) inner.data()[at] *= gate.data()[at];
    }
    return apply_linear(layer.feed_forward_out, inner);
}

} // namespace

void apply_head_norm(const Norm& norm, std::int64_t features, HostTensor& rows)
{
    if (norm.kind == NormKind::none) return;
    const auto run = static_cast<std::size_t>(features);
    const auto columns = static_cast<std::size_t>(rows.dim(1));
    for_row_blocks(static_cast<std::size_t>(rows.dim(0)), [&](std::size_t first, std::size_t end) {
        for (std::size_t at = first * columns; at < end * columns; at += run)
            norm_run(norm, rows.data() + at, run);
    });
}

void apply_norm(const Norm& norm, HostTensor& rows)
{
    apply_head_norm(norm, rows.dim(1), rows);
}

HostTensor apply_linear(const Linear& linear, const HostTensor& rows)
{
    const std::int64_t count = rows.dim(0), in = rows.dim(1), out = linear.weight.dim(0);
    HostTensor result({count, out});
    const auto stride_in = static_cast<std::size_t>(in), stride_out = static_cast<std::size_t>(out);
    for_row_blocks(static_cast<std::size_t>(count), [&](std::size_t first, std::size_t end) {
        kernels().multiply_nt(end - first, stride_out, stride_in, rows.data() + first * stride_in, stride_in,
                              linear.weight.data(), stride_in, result.data() + first * stride_out,
                              stride_out);
        if (linear.bias.empty()) return;
        for (std::size_t r = first; r < end; ++r)
            for (std::size_t f = 0; f < stride_out; ++f)
                result.data()[r * stride_out + f] += linear.bias.data()[f];
    });
    return result;
}

Result<void> apply_activation(const std::string& name, HostTensor& rows)
{
    for (const Activation& activation : activations) {
        if (activation.name != name) continue;
        const auto columns = static_cast<std::size_t>(rows.dim(1));
        for_row_blocks(static_cast<std::size_t>(rows.dim(0)), [&](std::size_t first, std::size_t end) {
            for (std::size_t at = first * columns; at < end * columns; ++at)
                rows.data()[at] = static_cast<float>(activation.apply(static_cast<double>(rows.data()[at])));
        });
        return {};
    }
    return Error{ErrorCode::unsupported_model, "the activation " + in_quotes(name, 60) + " is not known",
                 "feed-forward block"};
}

HostTensor enter_first_layer(const Network& network, HostTensor rows)
{
    apply_norm(network.embedding_norm, rows);
    return network.embedding_map.empty() ? rows : apply_linear(network.embedding_map, rows);
}

void enter_layer(const NetworkLayer& layer, HostTensor& rows)
{
    if (layer.merge.empty()) return;
    const std::int64_t count = rows.dim(0), features = rows.dim(1);
    HostTensor joined({count, 4 * features});
    for (std::int64_t r = 0; r < count; ++r)
        for (std::int64_t part = 0; part < 4; ++part)
            std::copy_n(rows.data() + r * features, features, joined.data() + (4 * r + part) * features);
    apply_norm(layer.merge_norm, joined);
    rows = apply_linear(layer.merge, joined);
}

Result<void> pass_layer(const NetworkLayer& layer, const HostTensor& encoder_rows, HostTensor& rows)
{
    HostTensor normed = rows;
    apply_norm(layer.attention_input_norm, normed);
    const HostTensor attended = apply_linear(layer.attention_output, apply_linear(layer.value, normed));
    if (layer.parallel) {
        if (layer.feed_forward_input_norm.kind != NormKind::none) {
            normed = rows;
            apply_norm(layer.feed_forward_input_norm, normed);
        }
        auto fed = feed_forward(layer, normed);
        if (!fed) return fed.error();
        add(rows, attended, layer.attention_branch_scale);
        add(rows, *fed, layer.feed_forward_branch_scale);
        return {};
    }
    add(rows, attended, layer.attention_branch_scale);
    apply_norm(layer.attention_output_norm, rows);
    if (!layer.cross_value.empty()) {
        add(rows, apply_linear(layer.cross_output, apply_linear(layer.cross_value, encoder_rows)), {});
        apply_norm(layer.cross_output_norm, rows);
    }
    normed = rows;
    apply_norm(layer.feed_forward_input_norm, normed);
    auto fed = feed_forward(layer, normed);
    if (!fed) return fed.error();
    add(rows, *fed, layer.feed_forward_branch_scale);
    apply_norm(layer.feed_forward_output_norm, rows);
    return {};
}

} // namespace posiscope::core
