// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include "core/base/run_context.h"
#include "core/probe/probe_result.h"
#include "core/tensor/host_tensor.h"

namespace posiscope::core {

/// What to compute, and how words fall into groups.
struct MapOptions {
    bool probabilities = true;
    bool terms = false;
    bool group_spread = true;
    std::vector<std::size_t> group_sizes; ///< consecutive runs of words; sums to the number of words
};

/// Means over words of one layer's attention.
struct AttentionMaps {
    HostTensor attention_logits;              ///< [heads, L, L]
    HostTensor attention_probabilities;       ///< [heads, L, L], or empty
    HostTensor group_attention_logits;        ///< [groups, heads, L, L], or empty
    HostTensor group_attention_probabilities; ///< the same, or empty
    std::vector<ProbeTerm> terms;
};

/// Tensors of the right shapes, filled with zeros.
AttentionMaps make_attention_maps(const MapOptions& options, std::size_t heads, std::size_t length);

/// Words whose sums are kept in float32 before they go into a double sum.
inline constexpr std::size_t words_per_chunk = 128;

/// A run of words of one group, at most words_per_chunk long.
struct WordChunk {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t group = 0;
    [[nodiscard]] std::size_t size() const { return end - begin; }
};

/// Consecutive chunks of words_per_chunk words at most: what is multiplied at once.
struct WordBlock {
    std::size_t first_chunk = 0;
    std::size_t last_chunk = 0; ///< one past
};

/// Without a spread over words all of them are one group.
std::vector<WordChunk> divide_into_chunks(const MapOptions& options, std::size_t words);
std::vector<WordBlock> join_into_blocks(std::span<const WordChunk> chunks);

/// Progress from several threads, one call at a time, none after the run was asked to stop.
class SharedProgress {
public:
    SharedProgress(const RunContext& ctx, std::size_t total) : m_ctx(ctx), m_total(total) {}

    [[nodiscard]] bool stopped() const { return m_ctx.cancelled(); }
    void step();

private:
    const RunContext& m_ctx;
    std::mutex m_mutex;
    std::size_t m_done = 0;
    std::size_t m_total;
};

/// out[n] = sums[n] / count
void store_mean(std::span<const double> sums, double count, float* out);

} // namespace posiscope::core
