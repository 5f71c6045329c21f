// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/probe/first_layer.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>

#include "core/kernels/kernel_set.h"
#include "core/kernels/thread_pool.h"

namespace posiscope::core {
namespace {

/// Words whose probabilities are summed in float32.
constexpr std::size_t words_per_softmax_sum = 16;
/// Words that are projected at once; bounds the memory.
constexpr std::size_t words_per_pass = 2048;
/// Rows of a product that one thread computes.
constexpr std::size_t rows_per_block = 64;

std::size_t dim(const HostTensor& tensor, std::size_t axis)
{
    return static_cast<std::size_t>(tensor.dim(axis));
}

/// Memory that is written before it is read: not set to zero first, since touching it twice costs more than some of
/// the products.
class Buffer {
public:
    void resize(std::size_t size)
    {
        if (size > m_capacity) {
            m_values = std::make_unique_for_overwrite<float[]>(size);
            m_capacity = size;
        }
    }
    float* data() { return m_values.get(); }
    [[nodiscard]] const float* data() const { return m_values.get(); }
    float& operator[](std::size_t n) { return m_values[n]; }
    float operator[](std::size_t n) const { return m_values[n]; }

private:
    std::unique_ptr<float[]> m_values;
    std::size_t m_capacity = 0;
};

/// out[r] = row r of `rows` without its feature mean (LayerNorm only), and its squared length.
void center_rows(const HostTensor& rows, std::size_t first, std::size_t count, NormKind norm, float* out,
                 std::vector<double>& squared_length)
{
    const std::size_t d = dim(rows, 1);
    squared_length.resize(count);
    parallel_blocks((count + rows_per_block - 1) / rows_per_block, [&](std::size_t block) {
        for (std::size_t r = block * rows_per_block; r < std::min(count, (block + 1) * rows_per_block); ++r) {
            const float* in = rows.data() + (first + r) * d;
            double mean = 0.0;
            if (norm == NormKind::layer_norm) {
                for (std::size_t f = 0; f < d; ++f) mean += static_cast<double>(in[f]);
                mean /= static_cast<double>(d);
            }
            double square = 0.0;
            for (std::size_t f = 0; f < d; ++f) {
                const float centered = static_cast<float>(static_cast<double>(in[f]) - mean);
                out[r * d + f] = centered;
                square += static_cast<double>(centered) * static_cast<double>(centered);
            }
            squared_length[r] = square;
        }
    });
}

/// The first layer prepared for any number of words: folded weights, projected positions and constants.
class ClosedForm {
public:
    explicit ClosedForm(const FirstLayer& layer);

    /// Projects words first .. first + count - 1 and finds their norm factors.
    void project_words(std::size_t first, std::size_t count);

    const FirstLayer& layer;
    std::size_t length, heads, head_dim, width; ///< width = heads * head_dim
    std::size_t classes;                        ///< of constant rows: 0 is plain, then one a special token
    std::vector<std::size_t> class_of;          ///< [L]

    Buffer word_projected;     ///< [count, 2 * width]: query, then key
    Buffer position_projected; ///< [L, 2 * width]
    Buffer constant_projected; ///< [classes, 2 * width]
    Buffer beta;               ///< [count, L]: factor of the position's part
    /// [L, L] bias of one head, or null.
    [[nodiscard]] const float* bias(std::size_t head) const
    {
        if (layer.bias.empty()) return nullptr;
        return layer.bias.data() + (layer.bias.dim(0) == 1 ? 0 : head) * length * length;
    }
    /// Factor of the word's part: the same, but 0 at special positions.
    [[nodiscard]] const float* alpha() const { return classes == 1 ? beta.data() : m_alpha.data(); }

private:
    void project(const Buffer& rows, std::size_t count, Buffer& out) const;
    void find_factors(const Buffer& words, const std::vector<double>& word_squares, std::size_t count,
                      Buffer& out) const;
    void project_special();

    std::size_t m_features;
    Buffer m_folded;                        ///< [2 * width, d]: query and key weights times the norm's gain
    Buffer m_positions;                     ///< [L, d], centred
    std::vector<double> m_position_squares; ///< [L]
    std::vector<float> m_special_factor;    ///< [L]: norm factor of special rows
    Buffer m_words, m_alpha;
};

ClosedForm::ClosedForm(const FirstLayer& first_layer)
    : layer(first_layer), length(dim(first_layer.position_rows, 0)), heads(first_layer.heads),
      head_dim(first_layer.head_dim), width(heads * head_dim),
      classes(1 + first_layer.special_content.size()), class_of(length, 0),
      m_features(dim(first_layer.position_rows, 1)), m_special_factor(length, 0.0f)
{
    const std::size_t d = m_features;
    m_folded.resize(2 * width * d);
    constant_projected.resize(classes * 2 * width);
    parallel_blocks((2 * width + rows_per_block - 1) / rows_per_block, [&](std::size_t block) {
        for (std::size_t r = block * rows_per_block; r < std::min(2 * width, (block + 1) * rows_per_block);
             ++r) {
            const bool is_query = r < width;
            const std::size_t row = is_query ? r : r - width;
            const HostTensor& bias = is_query ? layer.query_bias : layer.key_bias;
            const float* weight = (is_query ? layer.query_weight : layer.key_weight).data() + row * d;
            // The logit scale goes with the query.
            const double scale = is_query ? layer.logit_scale : 1.0;
            double constant = bias.empty() ? 0.0 : static_cast<double>(bias.data()[row]);
            for (std::size_t f = 0; f < d; ++f) {
                const double w = static_cast<double>(weight[f]);
                const double gain =
                    layer.norm_gain.empty() ? 1.0 : static_cast<double>(layer.norm_gain.data()[f]);
                if (!layer.norm_bias.empty()) constant += w * static_cast<double>(layer.norm_bias.data()[f]);
                m_folded[r * d + f] = static_cast<float>(scale * w * gain);
            }
            constant_projected[r] = static_cast<float>(scale * constant);
        }
    });
    m_positions.resize(length * d);
    center_rows(layer.position_rows, 0, length, layer.norm, m_positions.data(), m_position_squares);
    project(m_positions, length, position_projected);
    project_special();
}

/// A special token at position i is the constant row a_i * (its projection) + the plain constant, and its position
/// part keeps the factor a_i.
void ClosedForm::project_special()
{
    for (std::size_t s = 0; s < layer.special_content.size(); ++s) {
        const SpecialContent& special = layer.special_content[s];
        const HostTensor content({1, static_cast<std::int64_t>(m_features)},
                                 {special.row.values().begin(), special.row.values().end()});
        Buffer centered, factors, projected;
        centered.resize(m_features);
        std::vector<double> square;
        center_rows(content, 0, 1, layer.norm, centered.data(), square);
        project(centered, 1, projected);
        find_factors(centered, square, 1, factors);
        const float factor = factors[special.position];
        for (std::size_t c = 0; c < 2 * width; ++c)
            constant_projected[(s + 1) * 2 * width + c] = constant_projected[c] + factor * projected[c];
        class_of[special.position] = s + 1;
        m_special_factor[special.position] = factor;
    }
}

void ClosedForm::project(const Buffer& rows, std::size_t count, Buffer& out) const
{
    out.resize(count * 2 * width);
    parallel_blocks((count + rows_per_block - 1) / rows_per_block, [&](std::size_t block) {
        const std::size_t first = block * rows_per_block;
        const std::size_t here = std::min(rows_per_block, count - first);
        kernels().multiply_nt(here, 2 * width, m_features, rows.data() + first * m_features, m_features,
                              m_folded.data(), m_features, out.data() + first * 2 * width, 2 * width);
    });
}

/// out [count, L]: a_wi = 1 / sqrt((|u_w|^2 + 2 u_w.v_i + |v_i|^2) / d + epsilon); 1 where there is no norm.
void ClosedForm::find_factors(const Buffer& words, const std::vector<double>& word_squares, std::size_t count,
                              Buffer& out) const
{
    out.resize(count * length);
    if (layer.norm == NormKind::none) {
        std::fill_n(out.data(), count * length, 1.0f);
        return;
    }
    parallel_blocks((count + rows_per_block - 1) / rows_per_block, [&](std::size_t block) {
        const std::size_t first = block * rows_per_block;
        const std::size_t here = std::min(rows_per_block, count - first);
        float* products = out.data() + first * length;
        kernels().multiply_nt(here, length, m_features, words.data() + first * m_features, m_features,
                              m_positions.data(), m_features, products, length);
        for (std::size_t w = 0; w < here; ++w)
            for (std::size_t i = 0; i < length; ++i) {
                float& entry = products[w * length + i];
                const double square =
                    word_squares[first + w] + 2.0 * static_cast<double>(entry) + m_position_squares[i];
                const double mean_square = std::max(square, 0.0) / static_cast<double>(m_features);
                entry = static_cast<float>(1.0 / std::sqrt(mean_square + layer.norm_epsilon));
            }
    });
}

void ClosedForm::project_words(std::size_t first, std::size_t count)
{
    m_words.resize(count * m_features);
    std::vector<double> squares;
    center_rows(layer.word_rows, first, count, layer.norm, m_words.data(), squares);
    project(m_words, count, word_projected);
    find_factors(m_words, squares, count, beta);
    if (classes == 1) return;
    m_alpha.resize(count * length);
    std::copy_n(beta.data(), count * length, m_alpha.data());
    for (std::size_t i = 0; i < length; ++i) {
        if (class_of[i] == 0) continue;
        for (std::size_t w = 0; w < count; ++w) {
            m_alpha[w * length + i] = 0.0f;
            beta[w * length + i] = m_special_factor[i];
        }
    }
}

/// Double sums over words of one head.
struct HeadSums {
    std::vector<double> logits, probabilities;
    std::vector<double> word_word, word_position, position_word, position_position;
};

/// Scalar products of one head between the classes of rows: what does not depend on words.
struct HeadConstants {
    HeadConstants(const ClosedForm& form, std::size_t head);

    Buffer position_position; ///< [L, L]: position query . position key
    Buffer constant_position; ///< [classes, L]: constant query . position key
    Buffer position_constant; ///< [L, classes]: position query . constant key
    Buffer constant_constant; ///< [classes, classes]
    /// The same two spread out over keys, for the softmax; empty where there is only one class, since what is
    /// constant in a row does not change its softmax.
    Buffer position_constant_full;
    Buffer additive; ///< [L, L]: constants of special tokens and the layer's bias; where there is either
};

HeadConstants::HeadConstants(const ClosedForm& form, std::size_t head)
{
    const std::size_t L = form.length, R = form.classes, stride = 2 * form.width;
    const float* position_query = form.position_projected.data() + head * form.head_dim;
    const float* position_key = position_query + form.width;
    const float* constant_query = form.constant_projected.data() + head * form.head_dim;
    const float* constant_key = constant_query + form.width;
    const auto products = [&](std::size_t m, std::size_t n, const float* a, const float* b, Buffer& out) {
        out.resize(m * n);
        kernels().multiply_nt(m, n, form.head_dim, a, stride, b, stride, out.data(), n);
    };
    products(L, L, position_query, position_key, position_position);
    products(R, L, constant_query, position_key, constant_position);
    products(L, R, position_query, constant_key, position_constant);
    products(R, R, constant_query, constant_key, constant_constant);
    const float* bias = form.bias(head);
    if (R > 1) {
        position_constant_full.resize(L * L);
        for (std::size_t i = 0; i < L; ++i)
            for (std::size_t j = 0; j < L; ++j)
                position_constant_full[i * L + j] = position_constant[i * R + form.class_of[j]];
    }
    if (R == 1 && bias == nullptr) return;
    additive.resize(L * L);
    for (std::size_t i = 0; i < L; ++i)
        for (std::size_t j = 0; j < L; ++j)
            additive[i * L + j] = constant_constant[form.class_of[i] * R + form.class_of[j]] +
                                  (bias == nullptr ? 0.0f : bias[i * L + j]);
}

/// Sums of the norm factors over the words of each chunk of a pass: the same for every head.
struct FactorSums {
    FactorSums(const ClosedForm& form, std::span<const WordChunk> chunks, std::size_t first_word);

    std::vector<Buffer> beta_beta;         ///< per chunk [L, L]
    std::vector<std::vector<double>> beta; ///< per chunk [L]
};

FactorSums::FactorSums(const ClosedForm& form, std::span<const WordChunk> chunks, std::size_t first_word)
    : beta_beta(chunks.size()), beta(chunks.size())
{
    const std::size_t L = form.length;
    parallel_blocks(chunks.size(), [&](std::size_t c) {
        const float* rows = form.beta.data() + (chunks[c].begin - first_word) * L;
        beta_beta[c].resize(L * L);
        kernels().multiply_tn(L, L, chunks[c].size(), rows, L, rows, L, beta_beta[c].data(), L);
        beta[c].assign(L, 0.0);
        for (std::size_t w = 0; w < chunks[c].size(); ++w)
            kernels().add_to_double(rows + w * L, beta[c].data(), L);
    });
}

/// One head over blocks of words. All of its memory fits a processor's second cache at common lengths.
class HeadPass {
public:
    HeadPass(const ClosedForm& closed_form, const FactorSums& factors, std::size_t head)
        : form(closed_form), m_factors(factors), m_constants(closed_form, head), m_head(head)
    {
    }

    /// Takes up the words first .. first + count - 1 of the pass.
    void prepare(std::size_t first, std::size_t count);
    /// sum [L, L] = logits of one chunk's words, summed. `begin` counts from the block's first word.
    void sum_logits(std::size_t chunk, std::size_t begin, std::size_t size, float* sum);
    /// sums [L, L] += probabilities of one chunk's words.
    void add_probabilities(std::size_t begin, std::size_t size, double* sums);
    void add_terms(std::size_t chunk, std::size_t begin, std::size_t size, HeadSums& sums);

private:
    [[nodiscard]] const float* alpha(std::size_t word) const
    {
        return form.alpha() + (m_first + word) * form.length;
    }
    [[nodiscard]] const float* beta(std::size_t word) const
    {
        return form.beta.data() + (m_first + word) * form.length;
    }

    const ClosedForm& form;
    const FactorSums& m_factors;
    HeadConstants m_constants;
    std::size_t m_head;
    std::size_t m_first = 0;
    Buffer m_word_word;     ///< [words]: query . key of the word's own parts
    Buffer m_word_position; ///< [words, L]: word query . position key
    Buffer m_position_word; ///< [words, L]: word key . position query
    Buffer m_word_constant; ///< [words, classes]: word query . constant key
    Buffer m_constant_word; ///< [words, classes]: word key . constant query
    Buffer m_left, m_right; ///< [2 * words, L]: logits of the words = left^T right + the rest
    Buffer m_part, m_scratch;
};

void HeadPass::prepare(std::size_t first, std::size_t count)
{
    m_first = first;
    const std::size_t L = form.length, R = form.classes, stride = 2 * form.width, n = form.head_dim;
    const float* word_query = form.word_projected.data() + first * stride + m_head * n;
    const float* word_key = word_query + form.width;
    const float* position_query = form.position_projected.data() + m_head * n;
    const float* constant_query = form.constant_projected.data() + m_head * n;
    const auto products = [&](const float* a, const float* b, std::size_t columns, Buffer& out) {
        out.resize(count * columns);
        kernels().multiply_nt(count, columns, n, a, stride, b, stride, out.data(), columns);
    };
    products(word_query, position_query + form.width, L, m_word_position);
    products(word_key, position_query, L, m_position_word);
    products(word_query, constant_query + form.width, R, m_word_constant);
    products(word_key, constant_query, R, m_constant_word);

    m_word_word.resize(count);
    m_left.resize(2 * count * L);
    m_right.resize(2 * count * L);
    for (std::size_t w = 0; w < count; ++w) {
        float dot = 0.0f;
        for (std::size_t f = 0; f < n; ++f) dot += word_query[w * stride + f] * word_key[w * stride + f];
        m_word_word[w] = dot;
        const float* a = alpha(w);
        const float* b = beta(w);
        const float* word_position = m_word_position.data() + w * L;
        const float* position_word = m_position_word.data() + w * L;
        const float* word_constant = m_word_constant.data() + w * R;
        const float* constant_word = m_constant_word.data() + w * R;
        float* left = m_left.data() + 2 * w * L;
        float* right = m_right.data() + 2 * w * L;
        std::copy_n(a, L, left);
        std::copy_n(a, L, right + L);
        if (R == 1) {
            for (std::size_t i = 0; i < L; ++i) {
                right[i] = a[i] * dot + b[i] * word_position[i] + word_constant[0];
                left[L + i] = b[i] * position_word[i] + constant_word[0];
            }
        } else {
            for (std::size_t i = 0; i < L; ++i) {
                right[i] = a[i] * dot + b[i] * word_position[i] + word_constant[form.class_of[i]];
                left[L + i] = b[i] * position_word[i] + constant_word[form.class_of[i]];
            }
        }
    }
}

void HeadPass::sum_logits(std::size_t chunk, std::size_t begin, std::size_t size, float* sum)
{
    const std::size_t L = form.length, R = form.classes;
    kernels().multiply_tn(L, L, 2 * size, m_left.data() + 2 * begin * L, L, m_right.data() + 2 * begin * L, L,
                          sum, L);
    const float* beta_beta = m_factors.beta_beta[chunk].data();
    const std::vector<float> beta_sum(m_factors.beta[chunk].begin(), m_factors.beta[chunk].end());
    std::vector<float> row_constant(R);
    const float* bias = form.bias(m_head);
    for (std::size_t i = 0; i < L; ++i) {
        for (std::size_t r = 0; r < R; ++r)
            row_constant[r] =
                beta_sum[i] * m_constants.position_constant[i * R + r] +
                static_cast<float>(size) * m_constants.constant_constant[form.class_of[i] * R + r];
        const float* position_position = m_constants.position_position.data() + i * L;
        const float* constant_position = m_constants.constant_position.data() + form.class_of[i] * L;
        float* out = sum + i * L;
        for (std::size_t j = 0; j < L; ++j)
            out[j] += beta_beta[i * L + j] * position_position[j] + beta_sum[j] * constant_position[j];
        if (R == 1)
            for (std::size_t j = 0; j < L; ++j) out[j] += row_constant[0];
        else
            for (std::size_t j = 0; j < L; ++j) out[j] += row_constant[form.class_of[j]];
        if (bias != nullptr)
            for (std::size_t j = 0; j < L; ++j) out[j] += static_cast<float>(size) * bias[i * L + j];
    }
}

void HeadPass::add_probabilities(std::size_t begin, std::size_t size, double* sums)
{
    const std::size_t L = form.length;
    m_part.resize(L * L);
    m_scratch.resize(L);
    WordSoftmax word;
    word.length = L;
    word.position_position = m_constants.position_position.data();
    word.constant_position = m_constants.constant_position.data();
    word.class_of_row = form.class_of.data();
    if (form.classes > 1) word.position_constant = m_constants.position_constant_full.data();
    if (form.classes > 1 || form.bias(m_head) != nullptr) word.additive = m_constants.additive.data();
    word.keys_before = form.layer.keys_before;
    word.keys_after = form.layer.keys_after;
    word.scratch = m_scratch.data();
    for (std::size_t first = begin; first < begin + size; first += words_per_softmax_sum) {
        std::fill_n(m_part.data(), L * L, 0.0f);
        for (std::size_t w = first; w < std::min(first + words_per_softmax_sum, begin + size); ++w) {
            word.alpha = alpha(w);
            word.beta = beta(w);
            word.word_key = m_right.data() + 2 * w * L;
            word.word_query = m_left.data() + (2 * w + 1) * L;
            kernels().add_word_softmax(word, m_part.data());
        }
        kernels().add_to_double(m_part.data(), sums, L * L);
    }
}

void HeadPass::add_terms(std::size_t chunk, std::size_t begin, std::size_t size, HeadSums& sums)
{
    const std::size_t L = form.length, R = form.classes;
    std::vector<float> part(L * L), left(2 * size * L), right(2 * size * L);
    const auto add_product = [&](std::size_t rows, std::vector<double>& sum) {
        kernels().multiply_tn(L, L, rows, left.data(), L, right.data(), L, part.data(), L);
        kernels().add_to_double(part.data(), sum.data(), L * L);
    };
    // fill(row, i, word, alpha, beta) for every word of the chunk and every position i.
    const auto for_each_entry = [&](const auto& fill) {
        for (std::size_t row = 0; row < size; ++row) {
            const std::size_t w = begin + row;
            for (std::size_t i = 0; i < L; ++i) fill(row, i, w, alpha(w)[i], beta(w)[i]);
        }
    };
    for_each_entry([&](std::size_t row, std::size_t i, std::size_t w, float a, float) {
        const std::size_t r = form.class_of[i];
        left[2 * row * L + i] = right[(2 * row + 1) * L + i] = a;
        right[2 * row * L + i] = a * m_word_word[w] + m_word_constant[w * R + r];
        left[(2 * row + 1) * L + i] = m_constant_word[w * R + r];
    });
    add_product(2 * size, sums.word_word);
    for_each_entry([&](std::size_t row, std::size_t i, std::size_t w, float a, float b) {
        left[row * L + i] = a;
        right[row * L + i] = b * m_word_position[w * L + i];
    });
    add_product(size, sums.word_position);
    for_each_entry([&](std::size_t row, std::size_t i, std::size_t w, float a, float b) {
        left[row * L + i] = b * m_position_word[w * L + i];
        right[row * L + i] = a;
    });
    add_product(size, sums.position_word);

    const std::vector<double>& beta_sum = m_factors.beta[chunk];
    const auto as_double = [](float value) { return static_cast<double>(value); };
    for (std::size_t i = 0; i < L; ++i)
        for (std::size_t j = 0; j < L; ++j) {
            const std::size_t at = i * L + j;
            const std::size_t query_class = form.class_of[i], key_class = form.class_of[j];
            sums.word_word[at] += static_cast<double>(size) *
                                  as_double(m_constants.constant_constant[query_class * R + key_class]);
            sums.word_position[at] +=
                beta_sum[j] * as_double(m_constants.constant_position[query_class * L + j]);
            sums.position_word[at] +=
                beta_sum[i] * as_double(m_constants.position_constant[i * R + key_class]);
            sums.position_position[at] +=
                as_double(m_factors.beta_beta[chunk][at]) * as_double(m_constants.position_position[at]);
        }
}

} // namespace

Result<AttentionMaps> first_layer_attention(const FirstLayer& layer, const MapOptions& options,
                                            const RunContext& ctx)
{
    const std::size_t words = dim(layer.word_rows, 0);
    const std::vector<WordChunk> chunks = divide_into_chunks(options, words);
    if (ctx.cancelled()) return cancelled_error("the probe");
    ClosedForm form(layer);
    const std::size_t L = form.length, cells = L * L;
    const std::size_t groups = options.group_spread ? options.group_sizes.size() : 0;

    AttentionMaps maps = make_attention_maps(options, form.heads, L);
    const Shape map_shape = maps.attention_logits.shape();

    std::vector<HeadSums> sums(form.heads);
    for (HeadSums& head : sums) {
        head.logits.assign(cells, 0.0);
        if (options.probabilities) head.probabilities.assign(cells, 0.0);
        if (options.terms)
            for (auto* term :
                 {&head.word_word, &head.word_position, &head.position_word, &head.position_position})
                term->assign(cells, 0.0);
    }
    // Sums of the group that is being added up; a group may reach over several passes.
    std::vector<HeadSums> group_sums(form.heads);
    for (HeadSums& head : group_sums) {
        head.logits.assign(cells, 0.0);
        if (options.probabilities) head.probabilities.assign(cells, 0.0);
    }

    SharedProgress progress(ctx, chunks.size() * form.heads);
    for (std::size_t first_chunk = 0; first_chunk < chunks.size();) {
        std::size_t last_chunk = first_chunk;
        const std::size_t first_word = chunks[first_chunk].begin;
        while (last_chunk < chunks.size() && chunks[last_chunk].end - first_word <= words_per_pass)
            ++last_chunk;
        const std::span<const WordChunk> pass(chunks.data() + first_chunk, last_chunk - first_chunk);
        const std::size_t pass_words = pass.back().end - first_word;
        if (ctx.cancelled()) return cancelled_error("the probe");
        form.project_words(first_word, pass_words);
        const FactorSums factors(form, pass, first_word);
        const std::vector<WordBlock> blocks = join_into_blocks(pass);

        parallel_blocks(form.heads, [&](std::size_t h) {
            if (progress.stopped()) return;
            HeadPass head(form, factors, h);
            Buffer part;
            part.resize(cells);
            const auto run_chunk = [&](std::size_t c, std::size_t block_begin) {
                const WordChunk& chunk = pass[c];
                const std::size_t begin = chunk.begin - block_begin;
                head.sum_logits(c, begin, chunk.size(), part.data());
                kernels().add_to_double(part.data(), group_sums[h].logits.data(), cells);
                if (options.probabilities)
                    head.add_probabilities(begin, chunk.size(), group_sums[h].probabilities.data());
                if (options.terms) head.add_terms(c, begin, chunk.size(), sums[h]);
                const std::size_t next = first_chunk + c + 1;
                if (next == chunks.size() || chunks[next].group != chunk.group) {
                    const double count = groups > 0 ? static_cast<double>(options.group_sizes[chunk.group])
                                                    : static_cast<double>(words);
                    const auto finish = [&](std::vector<double>& group, std::vector<double>& total,
                                            HostTensor& out) {
                        if (groups > 0)
                            store_mean(group, count, out.data() + (chunk.group * form.heads + h) * cells);
                        for (std::size_t n = 0; n < cells; ++n) total[n] += group[n];
                        std::fill(group.begin(), group.end(), 0.0);
                    };
                    finish(group_sums[h].logits, sums[h].logits, maps.group_attention_logits);
                    if (options.probabilities)
                        finish(group_sums[h].probabilities, sums[h].probabilities,
                               maps.group_attention_probabilities);
                }
                progress.step();
            };
            for (const WordBlock& block : blocks) {
                const std::size_t block_begin = pass[block.first_chunk].begin;
                head.prepare(block_begin - first_word, pass[block.last_chunk - 1].end - block_begin);
                for (std::size_t c = block.first_chunk; c < block.last_chunk; ++c) {
                    if (progress.stopped()) return;
                    run_chunk(c, block_begin);
                }
            }
        });
        first_chunk = last_chunk;
    }
    if (ctx.cancelled()) return cancelled_error("the probe");

    const auto count = static_cast<double>(words);
    const auto add_term = [&](const char* id, std::vector<double> HeadSums::*member) {
        ProbeTerm term{id, HostTensor(map_shape)};
        for (std::size_t h = 0; h < form.heads; ++h)
            store_mean(sums[h].*member, count, term.values.data() + h * cells);
        maps.terms.push_back(std::move(term));
    };
    for (std::size_t h = 0; h < form.heads; ++h) {
        store_mean(sums[h].logits, count, maps.attention_logits.data() + h * cells);
        if (options.probabilities)
            store_mean(sums[h].probabilities, count, maps.attention_probabilities.data() + h * cells);
    }
    if (options.terms) {
        add_term("word_word", &HeadSums::word_word);
        add_term("word_position", &HeadSums::word_position);
        add_term("position_word", &HeadSums::position_word);
        add_term("position_position", &HeadSums::position_position);
        if (!layer.bias.empty()) {
            ProbeTerm relative{"relative", HostTensor(map_shape)};
            for (std::size_t h = 0; h < form.heads; ++h)
                std::copy_n(form.bias(h), cells, relative.values.data() + h * cells);
            maps.terms.push_back(std::move(relative));
        }
    }
    return maps;
}

} // namespace posiscope::core
