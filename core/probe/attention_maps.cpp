// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/probe/attention_maps.h"

#include <algorithm>

namespace posiscope::core {

AttentionMaps make_attention_maps(const MapOptions& options, std::size_t heads, std::size_t length)
{
    AttentionMaps maps;
    const auto H = static_cast<std::int64_t>(heads), L = static_cast<std::int64_t>(length);
    const auto groups = static_cast<std::int64_t>(options.group_spread ? options.group_sizes.size() : 0);
    maps.attention_logits = HostTensor({H, L, L});
    if (options.probabilities) maps.attention_probabilities = HostTensor({H, L, L});
    if (groups == 0) return maps;
    maps.group_attention_logits = HostTensor({groups, H, L, L});
    if (options.probabilities) maps.group_attention_probabilities = HostTensor({groups, H, L, L});
    return maps;
}

std::vector<WordChunk> divide_into_chunks(const MapOptions& options, std::size_t words)
{
    std::vector<WordChunk> chunks;
    const auto add = [&](std::size_t begin, std::size_t end, std::size_t group) {
        for (std::size_t at = begin; at < end; at += words_per_chunk)
            chunks.push_back({at, std::min(at + words_per_chunk, end), group});
    };
    if (!options.group_spread) {
        add(0, words, 0);
        return chunks;
    }
    std::size_t begin = 0;
    for (std::size_t group = 0; group < options.group_sizes.size(); ++group) {
        add(begin, begin + options.group_sizes[group], group);
        begin += options.group_sizes[group];
    }
    return chunks;
}

std::vector<WordBlock> join_into_blocks(std::span<const WordChunk> chunks)
{
    std::vector<WordBlock> blocks;
    for (std::size_t c = 0; c < chunks.size(); ++c) {
        if (blocks.empty() || chunks[c].end - chunks[blocks.back().first_chunk].begin > words_per_chunk)
            blocks.push_back({c, c});
        blocks.back().last_chunk = c + 1;
    }
    return blocks;
}

void SharedProgress::step()
{
    const std::lock_guard lock(m_mutex);
    ++m_done;
    if (!stopped()) m_ctx.report({"probe", m_done, m_total});
}

void store_mean(std::span<const double> sums, double count, float* out)
{
    for (std::size_t n = 0; n < sums.size(); ++n) out[n] = static_cast<float>(sums[n] / count);
}

} // namespace posiscope::core
