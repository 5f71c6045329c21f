// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/probe/offset_attention.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "core/kernels/kernel_set.h"
#include "core/kernels/thread_pool.h"
#include "core/probe/row_network.h"

namespace posiscope::core {
namespace {

/// Words whose probabilities are summed in float32.
constexpr std::size_t words_per_softmax_sum = 16;

std::size_t as_size(std::int64_t n)
{
    return static_cast<std::size_t>(n);
}

/// Queries and keys of one content, or of many: rows of [n, heads * head_dim].
struct Contents {
    HostTensor queries, keys;
    [[nodiscard]] std::size_t count() const { return queries.empty() ? 0 : as_size(queries.dim(0)); }
};

Contents project(const Network& network, const NetworkLayer& layer, const HostTensor& rows)
{
    Contents contents;
    if (rows.empty()) return contents;
    HostTensor normed = rows;
    apply_norm(layer.attention_input_norm, normed);
    contents.queries = apply_linear(layer.query, normed);
    contents.keys = apply_linear(layer.key, normed);
    apply_head_norm(layer.query_norm, network.head_dim, contents.queries);
    apply_head_norm(layer.key_norm, network.head_dim, contents.keys);
    return contents;
}

/// pair(q, k, o) of one head for many pairs at once.
class PairLogits {
public:
    PairLogits(const Network& network, const NetworkLayer& layer, std::size_t head, std::size_t length);

    /// out [count, 2L - 1] for the pairs (q_n, k_n); strides are between rows, 0 repeats one row.
    void all_offsets(std::size_t count, const float* queries, std::size_t query_stride, const float* keys,
                     std::size_t key_stride, std::vector<float>& out);
    /// Scaled product without anything positional.
    [[nodiscard]] double content(const float* query, const float* key) const;

    [[nodiscard]] std::size_t offsets() const { return m_offsets; }

private:
    const float* offset_rows(const HostTensor& table) const
    {
        if (table.empty()) return nullptr;
        return table.data() + (table.dim(0) == 1 ? 0 : m_head) * m_offsets * m_head_dim;
    }

    std::size_t m_head, m_head_dim, m_offsets, m_pairs;
    bool m_interleaved;
    double m_scale;
    const float* m_key_offsets;
    const float* m_query_offsets;
    std::vector<float> m_turn;         ///< [2L - 1, 2 * pairs]: cosine, then sine of the offset's angles
    std::vector<float> m_coefficients; ///< [count, 2 * pairs]
    std::vector<float> m_left, m_product;
};

PairLogits::PairLogits(const Network& network, const NetworkLayer& layer, std::size_t head,
                       std::size_t length)
    : m_head(head), m_head_dim(as_size(network.head_dim)), m_offsets(2 * length - 1),
      m_pairs(layer.positions->rotary_cosines.empty() ? 0 : as_size(layer.positions->rotary_cosines.dim(1))),
      m_interleaved(layer.positions->rotary_interleaved), m_scale(network.logit_scale),
      m_key_offsets(offset_rows(layer.positions->key_offsets)),
      m_query_offsets(offset_rows(layer.positions->query_offsets))
{
    m_turn.resize(m_offsets * 2 * m_pairs);
    for (std::size_t o = 0; o < m_offsets; ++o) {
        const bool follows = o + 1 >= length;
        const std::size_t distance = follows ? o + 1 - length : length - 1 - o;
        for (std::size_t p = 0; p < m_pairs; ++p) {
            const std::size_t at = distance * m_pairs + p;
            // The tables carry a factor on every turned query and key: here once, in their product twice. At
            // distance 0 the cosine is that factor.
            const float factor = layer.positions->rotary_cosines.data()[p];
            m_turn[o * 2 * m_pairs + p] = factor * layer.positions->rotary_cosines.data()[at];
            m_turn[o * 2 * m_pairs + m_pairs + p] =
                (follows ? factor : -factor) * layer.positions->rotary_sines.data()[at];
        }
    }
}

double PairLogits::content(const float* query, const float* key) const
{
    double sum = 0.0;
    for (std::size_t f = 0; f < m_head_dim; ++f)
        sum += static_cast<double>(query[f]) * static_cast<double>(key[f]);
    return m_scale * sum;
}

void PairLogits::all_offsets(std::size_t count, const float* queries, std::size_t query_stride,
                             const float* keys, std::size_t key_stride, std::vector<float>& out)
{
    out.assign(count * m_offsets, 0.0f);
    m_product.resize(count * m_offsets);
    const auto add_product = [&](const float* rows, std::size_t features, const float* table) {
        kernels().multiply_nt(count, m_offsets, features, rows, features, table, features, m_product.data(),
                              m_offsets);
        for (std::size_t n = 0; n < out.size(); ++n) out[n] += m_product[n];
    };
    const auto add_table = [&](const float* rows, std::size_t stride, const float* table) {
        m_left.resize(count * m_head_dim);
        for (std::size_t n = 0; n < count; ++n)
            std::copy_n(rows + n * stride, m_head_dim, m_left.data() + n * m_head_dim);
        add_product(m_left.data(), m_head_dim, table);
    };
    if (m_pairs > 0) {
        // With q = a + ib and k = c + id, each turned by its position's angle:
        // Re(q e^(i x) conj(k e^(i y))) = (ac + bd) cos(y - x) + (bc - ad) sin(y - x).
        m_coefficients.resize(count * 2 * m_pairs);
        for (std::size_t n = 0; n < count; ++n)
            for (std::size_t p = 0; p < m_pairs; ++p) {
                const std::size_t first = m_interleaved ? 2 * p : p;
                const std::size_t second = m_interleaved ? 2 * p + 1 : m_pairs + p;
                const float a = queries[n * query_stride + first], b = queries[n * query_stride + second];
                const float c = keys[n * key_stride + first], d = keys[n * key_stride + second];
                m_coefficients[n * 2 * m_pairs + p] = a * c + b * d;
                m_coefficients[n * 2 * m_pairs + m_pairs + p] = b * c - a * d;
            }
        add_product(m_coefficients.data(), 2 * m_pairs, m_turn.data());
    }
    if (m_key_offsets != nullptr) add_table(queries, query_stride, m_key_offsets);
    if (m_query_offsets != nullptr) add_table(keys, key_stride, m_query_offsets);
    for (std::size_t n = 0; n < count; ++n) {
        double still = 0.0; // features that nothing turns
        for (std::size_t f = 2 * m_pairs; f < m_head_dim; ++f)
            still += static_cast<double>(queries[n * query_stride + f]) *
                     static_cast<double>(keys[n * key_stride + f]);
        for (std::size_t o = 0; o < m_offsets; ++o) {
            float& logit = out[n * m_offsets + o];
            logit = static_cast<float>(m_scale * (static_cast<double>(logit) + still));
        }
    }
}

/// Sums over words of pair at every offset, for each combination of contents.
struct PairSums {
    std::vector<double> word_word;                 ///< [2L - 1]
    std::vector<std::vector<double>> word_special; ///< per special token [2L - 1]: word as query
    std::vector<std::vector<double>> special_word; ///< per special token [2L - 1]: word as key

    PairSums(std::size_t special, std::size_t offsets)
        : word_word(offsets, 0.0), word_special(special, std::vector<double>(offsets, 0.0)),
          special_word(special, std::vector<double>(offsets, 0.0))
    {
    }
    void add(const PairSums& other)
    {
        const auto plus = [](std::vector<double>& to, const std::vector<double>& from) {
            for (std::size_t n = 0; n < to.size(); ++n) to[n] += from[n];
        };
        plus(word_word, other.word_word);
        for (std::size_t s = 0; s < word_special.size(); ++s) {
            plus(word_special[s], other.word_special[s]);
            plus(special_word[s], other.special_word[s]);
        }
    }
};

/// One head of the layer over all words.
class Head {
public:
    Head(const Network& network, const NetworkLayer& layer, const Contents& words, const Contents& special,
         std::size_t head, std::size_t length);

    void prepare(std::size_t first, std::size_t count);
    void add_logits(std::size_t begin, std::size_t size, PairSums& sums) const;
    void add_probabilities(std::size_t begin, std::size_t size, std::vector<double>& sums);
    /// out [L, L]: mean logits from sums over `count` words.
    void store_logits(const PairSums& sums, double count, float* out) const;
    /// out [L, L]: mean logits with everything positional taken out.
    void store_content(float* out) const;

private:
    [[nodiscard]] const float* query(const Contents& contents, std::size_t row) const
    {
        return contents.queries.data() + row * m_width + m_head * m_head_dim;
    }
    [[nodiscard]] const float* key(const Contents& contents, std::size_t row) const
    {
        return contents.keys.data() + row * m_width + m_head * m_head_dim;
    }

    const Network& m_network;
    const Contents& m_words;
    const Contents& m_special;
    std::size_t m_head, m_length, m_head_dim, m_width;
    PairLogits m_pairs;
    const float* m_bias;                   ///< [L, L], or null
    const float* m_mask;                   ///< [L, L], inside the softmax only, or null
    double m_constant;                     ///< added to every logit; belongs to the content
    std::vector<std::size_t> m_special_at; ///< [L]: 1 + number of the special token there, 0: a word
    std::size_t m_keys_before, m_keys_after;

    std::vector<std::vector<float>> m_special_special; ///< [special * special][2L - 1]
    std::vector<float> m_word_word;                    ///< [words of the block, 2L - 1]
    std::vector<std::vector<float>> m_word_special, m_special_word;
    std::vector<float> m_row, m_part;
};

Head::Head(const Network& network, const NetworkLayer& layer, const Contents& words, const Contents& special,
           std::size_t head, std::size_t length)
    : m_network(network), m_words(words), m_special(special), m_head(head), m_length(length),
      m_head_dim(as_size(network.head_dim)), m_width(as_size(network.heads) * m_head_dim),
      m_pairs(network, layer, head, length), m_bias(nullptr),
      m_mask(layer.positions->mask.empty() ? nullptr : layer.positions->mask.data()),
      m_constant(layer.logit_constants.empty() ? 0.0
                                               : static_cast<double>(layer.logit_constants.data()[head])),
      m_special_at(length, 0),
      m_keys_before(network.window_before < 0 ? length : as_size(network.window_before)),
      m_keys_after(network.causal             ? 0
                   : network.window_after < 0 ? length
                                              : as_size(network.window_after)),
      m_special_special(special.count() * special.count()), m_word_special(special.count()),
      m_special_word(special.count()), m_row(length)
{
    if (!layer.positions->bias.empty())
        m_bias =
            layer.positions->bias.data() + (layer.positions->bias.dim(0) == 1 ? 0 : head) * length * length;
    for (std::size_t s = 0; s < special.count(); ++s) {
        m_special_at[as_size(network.special_rows[s].position)] = s + 1;
        for (std::size_t t = 0; t < special.count(); ++t)
            m_pairs.all_offsets(1, query(special, s), 0, key(special, t), 0,
                                m_special_special[s * special.count() + t]);
    }
}

void Head::prepare(std::size_t first, std::size_t count)
{
    m_pairs.all_offsets(count, query(m_words, first), m_width, key(m_words, first), m_width, m_word_word);
    for (std::size_t s = 0; s < m_special.count(); ++s) {
        m_pairs.all_offsets(count, query(m_words, first), m_width, key(m_special, s), 0, m_word_special[s]);
        m_pairs.all_offsets(count, query(m_special, s), 0, key(m_words, first), m_width, m_special_word[s]);
    }
}

void Head::add_logits(std::size_t begin, std::size_t size, PairSums& sums) const
{
    const std::size_t n = m_pairs.offsets();
    for (std::size_t w = begin; w < begin + size; ++w) {
        kernels().add_to_double(m_word_word.data() + w * n, sums.word_word.data(), n);
        for (std::size_t s = 0; s < m_special.count(); ++s) {
            kernels().add_to_double(m_word_special[s].data() + w * n, sums.word_special[s].data(), n);
            kernels().add_to_double(m_special_word[s].data() + w * n, sums.special_word[s].data(), n);
        }
    }
}

void Head::add_probabilities(std::size_t begin, std::size_t size, std::vector<double>& sums)
{
    const std::size_t L = m_length, n = m_pairs.offsets(), special = m_special.count();
    m_part.resize(L * L);
    for (std::size_t first = begin; first < begin + size; first += words_per_softmax_sum) {
        std::fill(m_part.begin(), m_part.end(), 0.0f);
        for (std::size_t w = first; w < std::min(first + words_per_softmax_sum, begin + size); ++w)
            for (std::size_t i = 0; i < L; ++i) {
                const std::size_t from = i > m_keys_before ? i - m_keys_before : 0;
                const std::size_t end = std::min(L, i + m_keys_after + 1);
                const std::size_t at = m_special_at[i];
                // The offsets of row i are a run of the word's 2L - 1.
                const float* run =
                    (at == 0 ? m_word_word.data() : m_special_word[at - 1].data()) + w * n + L - 1 - i;
                std::copy(run + from, run + end, m_row.data());
                for (std::size_t s = 0; s < special; ++s) {
                    const std::size_t j = as_size(m_network.special_rows[s].position);
                    if (j < from || j >= end) continue;
                    const std::size_t offset = j + L - 1 - i;
                    m_row[j - from] = at == 0 ? m_word_special[s][w * n + offset]
                                              : m_special_special[(at - 1) * special + s][offset];
                }
                if (m_bias != nullptr)
                    for (std::size_t j = from; j < end; ++j) m_row[j - from] += m_bias[i * L + j];
                if (m_mask != nullptr)
                    for (std::size_t j = from; j < end; ++j) m_row[j - from] += m_mask[i * L + j];
                kernels().add_row_softmax(m_row.data(), end - from, m_part.data() + i * L + from);
            }
        kernels().add_to_double(m_part.data(), sums.data(), L * L);
    }
}

void Head::store_logits(const PairSums& sums, double count, float* out) const
{
    const std::size_t L = m_length, special = m_special.count();
    for (std::size_t i = 0; i < L; ++i)
        for (std::size_t j = 0; j < L; ++j) {
            const std::size_t offset = j + L - 1 - i, at = m_special_at[i], to = m_special_at[j];
            double logit = 0.0;
            if (at == 0 && to == 0)
                logit = sums.word_word[offset] / count;
            else if (at == 0)
                logit = sums.word_special[to - 1][offset] / count;
            else if (to == 0)
                logit = sums.special_word[at - 1][offset] / count;
            else
                logit = static_cast<double>(m_special_special[(at - 1) * special + to - 1][offset]);
            if (m_bias != nullptr) logit += static_cast<double>(m_bias[i * L + j]);
            out[i * L + j] = static_cast<float>(logit + m_constant);
        }
}

void Head::store_content(float* out) const
{
    const std::size_t L = m_length, words = m_words.count(), special = m_special.count(), sides = special + 1;
    // means[a * sides + b]: query of class a, key of class b; class 0 are the words.
    std::vector<double> means(sides * sides, 0.0);
    for (std::size_t w = 0; w < words; ++w) {
        means[0] += m_pairs.content(query(m_words, w), key(m_words, w)) / static_cast<double>(words);
        for (std::size_t s = 0; s < special; ++s) {
            means[s + 1] +=
                m_pairs.content(query(m_words, w), key(m_special, s)) / static_cast<double>(words);
            means[(s + 1) * sides] +=
                m_pairs.content(query(m_special, s), key(m_words, w)) / static_cast<double>(words);
        }
    }
    for (std::size_t s = 0; s < special; ++s)
        for (std::size_t t = 0; t < special; ++t)
            means[(s + 1) * sides + t + 1] = m_pairs.content(query(m_special, s), key(m_special, t));
    for (std::size_t i = 0; i < L; ++i)
        for (std::size_t j = 0; j < L; ++j)
            out[i * L + j] =
                static_cast<float>(means[m_special_at[i] * sides + m_special_at[j]] + m_constant);
}

} // namespace

Result<AttentionMaps> offset_attention(const Network& network, const NetworkLayer& layer,
                                       const HostTensor& word_rows, const HostTensor& special_rows,
                                       const MapOptions& options, const RunContext& ctx)
{
    if (ctx.cancelled()) return cancelled_error("the probe");
    const Contents words = project(network, layer, word_rows);
    const Contents special = project(network, layer, special_rows);
    const std::size_t heads = as_size(network.heads), L = as_size(network.position_rows.dim(0)),
                      cells = L * L;
    const std::vector<WordChunk> chunks = divide_into_chunks(options, words.count());
    const std::vector<WordBlock> blocks = join_into_blocks(chunks);
    AttentionMaps maps = make_attention_maps(options, heads, L);
    const bool spread = options.group_spread;
    if (options.terms) {
        maps.terms.push_back({"word_word", HostTensor(maps.attention_logits.shape())});
        maps.terms.push_back({"relative", HostTensor(maps.attention_logits.shape())});
    }

    SharedProgress progress(ctx, chunks.size() * heads);
    parallel_blocks(heads, [&](std::size_t h) {
        if (progress.stopped()) return;
        Head head(network, layer, words, special, h, L);
        const PairSums none(special.count(), 2 * L - 1);
        PairSums total = none, group = none;
        std::vector<double> total_probabilities(options.probabilities ? cells : 0),
            group_probabilities(total_probabilities);
        for (const WordBlock& block : blocks) {
            const std::size_t block_begin = chunks[block.first_chunk].begin;
            head.prepare(block_begin, chunks[block.last_chunk - 1].end - block_begin);
            for (std::size_t c = block.first_chunk; c < block.last_chunk; ++c) {
                if (progress.stopped()) return;
                const WordChunk& chunk = chunks[c];
                head.add_logits(chunk.begin - block_begin, chunk.size(), group);
                if (options.probabilities)
                    head.add_probabilities(chunk.begin - block_begin, chunk.size(), group_probabilities);
                if (c + 1 == chunks.size() || chunks[c + 1].group != chunk.group) {
                    const double count =
                        static_cast<double>(spread ? options.group_sizes[chunk.group] : words.count());
                    const std::size_t slot = (chunk.group * heads + h) * cells;
                    if (spread) head.store_logits(group, count, maps.group_attention_logits.data() + slot);
                    if (spread && options.probabilities)
                        store_mean(group_probabilities, count,
                                   maps.group_attention_probabilities.data() + slot);
                    total.add(group);
                    group = none;
                    for (std::size_t n = 0; n < group_probabilities.size(); ++n) {
                        total_probabilities[n] += group_probabilities[n];
                        group_probabilities[n] = 0.0;
                    }
                }
                progress.step();
            }
        }
        const auto count = static_cast<double>(words.count());
        head.store_logits(total, count, maps.attention_logits.data() + h * cells);
        if (options.probabilities)
            store_mean(total_probabilities, count, maps.attention_probabilities.data() + h * cells);
        if (!options.terms) return;
        float* content = maps.terms[0].values.data() + h * cells;
        head.store_content(content);
        for (std::size_t n = 0; n < cells; ++n)
            maps.terms[1].values.data()[h * cells + n] =
                maps.attention_logits.data()[h * cells + n] - content[n];
    });
    if (ctx.cancelled()) return cancelled_error("the probe");
    return maps;
}

} // namespace posiscope::core
