// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/base/random.h"
#include "core/probe/probe_result.h"

namespace posiscope::tests {

/// What a synthetic probe looks like.
struct SyntheticProbe {
    std::int64_t heads = 2;
    std::int64_t length = 12;
    std::size_t groups = 5;
    bool causal = false;
    bool equal_groups = false; ///< every group has the same maps
    std::uint64_t seed = 1;
};

/// A probe result without a network: logits fall with the distance, differ a little between heads, prefer preceding
/// keys, carry a constant per query, and are noisy from group to group; groups hold 10 words, the first two 11. The
/// mean over words is the weighted mean of the groups.
inline core::ProbeResult synthetic_probe(const SyntheticProbe& made)
{
    using core::HostTensor;
    const auto length = static_cast<std::size_t>(made.length);
    const auto heads = static_cast<std::size_t>(made.heads);
    const std::size_t entries = heads * length * length;

    core::ProbeResult probe;
    probe.options.stack = made.causal ? "decoder" : "encoder";
    probe.options.length = made.length;
    probe.model_name = "synthetic";
    probe.heads = made.heads;
    probe.length = made.length;
    probe.causal = made.causal;
    const core::Shape shape{made.heads, made.length, made.length};
    core::Shape group_shape = shape;
    group_shape.insert(group_shape.begin(), static_cast<std::int64_t>(made.groups));
    probe.groups.attention_logits = HostTensor(group_shape);
    probe.groups.attention_probabilities = HostTensor(group_shape);

    core::Random random(made.seed);
    for (std::size_t g = 0; g < made.groups; ++g) {
        probe.groups.word_counts.push_back(g < 2 ? 11 : 10);
        float* logits = probe.groups.attention_logits.data() + g * entries;
        float* probabilities = probe.groups.attention_probabilities.data() + g * entries;
        for (std::size_t n = 0; n < entries; n += length) {
            const std::size_t i = n / length % length;
            const double head = static_cast<double>(n / (length * length));
            double sum = 0.0;
            for (std::size_t j = 0; j < length; ++j) {
                const double offset = static_cast<double>(j) - static_cast<double>(i);
                double logit = -std::abs(offset) / (8.0 + head) + (offset < 0.0 ? 0.2 : 0.0) +
                               0.5 * std::sin(static_cast<double>(i)) + 0.1 * random.normal();
                if (made.equal_groups && g > 0)
                    logit = static_cast<double>(probe.groups.attention_logits.data()[n + j]);
                logits[n + j] = static_cast<float>(logit);
                const bool exists = !made.causal || j <= i;
                probabilities[n + j] = exists ? std::exp(logits[n + j]) : 0.0f;
                sum += static_cast<double>(probabilities[n + j]);
            }
            for (std::size_t j = 0; j < length; ++j) probabilities[n + j] /= static_cast<float>(sum);
        }
    }
    const auto mean_over_groups = [&](const HostTensor& groups) {
        HostTensor mean(shape);
        double words = 0.0;
        for (const std::size_t count : probe.groups.word_counts) words += static_cast<double>(count);
        for (std::size_t n = 0; n < entries; ++n) {
            double sum = 0.0;
            for (std::size_t g = 0; g < made.groups; ++g)
                sum += static_cast<double>(probe.groups.word_counts[g]) *
                       static_cast<double>(groups.values()[g * entries + n]);
            mean.values()[n] = static_cast<float>(sum / words);
        }
        return mean;
    };
    probe.attention_logits = mean_over_groups(probe.groups.attention_logits);
    probe.attention_probabilities = mean_over_groups(probe.groups.attention_probabilities);
    return probe;
}

} // namespace posiscope::tests
