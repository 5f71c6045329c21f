// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/projection/tsne_affinities.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/kernels/kernel_set.h"
#include "core/kernels/thread_pool.h"

namespace posiscope::core {
namespace {

constexpr std::size_t rows_in_block = 16;
constexpr std::size_t rows_in_tile = 32;
constexpr float least_affinity = 1e-12f;

std::size_t blocks_of(std::size_t n)
{
    return (n + rows_in_block - 1) / rows_in_block;
}

/// The precision at which the distances have the wanted entropy, by bisection, and the weights there.
/// Entropy in nats: log(sum) + precision * (weighted mean distance). It falls from log(n) to log(copies of the nearest)
/// as the precision grows; where the wanted entropy is not reached, the nearest ones share the weight.
/// @param distances  of the others, less the smallest of them; @param weights  filled, not divided by their sum
/// @return precision and sum of weights
std::pair<double, double> fit_gaussian(const float* distances, std::size_t n, double entropy, float* weights)
{
    double mean = 0.0;
    for (std::size_t j = 0; j < n; ++j) mean += static_cast<double>(distances[j]);
    mean /= static_cast<double>(n);
    double precision = mean > 0.0 ? 1.0 / mean : 1.0;
    // 1e30 keeps the product with any distance finite; e^-87 is reached long before.
    const double most = mean > 0.0 ? std::min(1e30, 1e12 / mean) : 1.0;
    double low = 0.0, high = std::numeric_limits<double>::infinity();
    GaussianSums sums;
    for (int step = 0; step < 64; ++step) {
        sums = kernels().points->gaussian(distances, static_cast<float>(precision), n, weights);
        const double weight = static_cast<double>(sums.weight);
        const double excess =
            std::log(weight) + precision * static_cast<double>(sums.moment) / weight - entropy;
        if (std::abs(excess) < 1e-5) break;
        if (excess > 0.0) {
            if (precision >= most) break;
            low = precision;
            precision = std::isinf(high) ? std::min(2.0 * precision, most) : 0.5 * (low + high);
        } else {
            high = precision;
            precision = 0.5 * (low + high);
        }
    }
    return {precision, static_cast<double>(sums.weight)};
}

/// Distances of one row to all others, itself left out, less the smallest. The same bits in both directions.
struct OtherRows {
    std::vector<float> distances, weights;

    void take(const float* all, std::size_t row, std::size_t n)
    {
        distances.resize(n - 1);
        weights.resize(n - 1);
        std::copy(all, all + row, distances.begin());
        std::copy(all + row + 1, all + n, distances.begin() + static_cast<std::ptrdiff_t>(row));
        const float least = *std::min_element(distances.begin(), distances.end());
        for (float& distance : distances) distance -= least;
    }
};

/// One row's conditional probabilities of its nearest neighbours.
struct SparseRow {
    std::vector<std::uint32_t> neighbours; ///< ascending
    std::vector<float> values;
};

void keep_nearest(const OtherRows& others, std::size_t row, std::size_t count, double sum, SparseRow& out,
                  std::vector<std::uint32_t>& order)
{
    order.resize(others.distances.size());
    std::iota(order.begin(), order.end(), 0u);
    const std::size_t kept = std::min(count, order.size());
    const auto nearer = [&](std::uint32_t a, std::uint32_t b) {
        return others.distances[a] != others.distances[b] ? others.distances[a] < others.distances[b] : a < b;
    };
    std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept - 1), order.end(),
                     nearer);
    order.resize(kept);
    std::sort(order.begin(), order.end());
    out.neighbours.resize(kept);
    out.values.resize(kept);
    for (std::size_t k = 0; k < kept; ++k) {
        out.values[k] = static_cast<float>(static_cast<double>(others.weights[order[k]]) / sum);
        out.neighbours[k] = order[k] + (order[k] >= row ? 1u : 0u);
    }
}

/// (p + p transposed) / (2 n), scaled to sum 1 (the tails that were cut off are missing).
void symmetrise(const std::vector<SparseRow>& rows, Affinities& out)
{
    const std::size_t n = rows.size();
    std::vector<std::vector<std::pair<std::uint32_t, float>>> merged(n);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t k = 0; k < rows[i].neighbours.size(); ++k) {
            merged[i].emplace_back(rows[i].neighbours[k], rows[i].values[k]);
            merged[rows[i].neighbours[k]].emplace_back(static_cast<std::uint32_t>(i), rows[i].values[k]);
        }
    double total = 0.0;
    out.first.assign(1, 0);
    for (std::size_t i = 0; i < n; ++i) {
        // Both directions of a pair add the same two numbers, smaller first: the same bits.
        std::sort(merged[i].begin(), merged[i].end());
        for (const auto& [j, value] : merged[i]) {
            if (out.neighbours.size() > out.first.back() && out.neighbours.back() == j)
                out.values.back() += value;
            else {
                out.neighbours.push_back(j);
                out.values.push_back(value);
            }
            total += static_cast<double>(value);
        }
        out.first.push_back(out.neighbours.size());
    }
    for (float& value : out.values) value = static_cast<float>(static_cast<double>(value) / total);
}

} // namespace

Result<Affinities> find_affinities(MatrixView vectors, double perplexity, const RunContext& ctx)
{
    const std::size_t n = vectors.rows;
    const double entropy = std::log(perplexity);
    const bool dense = n <= most_dense, exact = n <= most_exact;
    const auto neighbours = std::min(n - 1, static_cast<std::size_t>(std::floor(3.0 * perplexity)));
    Affinities out;
    out.count = n;
    out.precisions.assign(exact ? n : 0, 0.0);
    if (exact) out.squared_distances.assign(n * n, 0.0f);
    if (dense) out.dense.assign(n * n, 0.0f);
    std::vector<SparseRow> sparse(dense ? 0 : n);

    // Scaled so that the largest feature is 1: squares of very large or very small vectors stay in float32's range.
    float largest = 0.0f;
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t f = 0; f < vectors.cols; ++f) largest = std::max(largest, std::abs(vectors(i, f)));
    const std::size_t d = vectors.cols;
    std::vector<float> scaled(n * d);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t f = 0; f < d; ++f) scaled[i * d + f] = vectors(i, f) / largest;

    const PointKernels& loops = *kernels().points;
    parallel_blocks(blocks_of(n), [&](std::size_t block) {
        const std::size_t begin = block * rows_in_block, end = std::min(n, begin + rows_in_block);
        std::vector<float> here(exact ? 0 : (end - begin) * n);
        float* block_distances = exact ? out.squared_distances.data() + begin * n : here.data();
        // By tiles that stay in the cache while all rows of the block meet them.
        for (std::size_t tile = 0; tile < n; tile += rows_in_tile) {
            if (ctx.cancelled()) return;
            const std::size_t count = std::min(rows_in_tile, n - tile);
            for (std::size_t i = begin; i < end; ++i)
                loops.squared_distances(scaled.data() + i * d, scaled.data() + tile * d, d, count, d,
                                        block_distances + (i - begin) * n + tile);
        }
        OtherRows others;
        std::vector<std::uint32_t> order;
        for (std::size_t i = begin; i < end; ++i) {
            if (ctx.cancelled()) return;
            const float* distances = block_distances + (i - begin) * n;
            others.take(distances, i, n);
            const auto [precision, sum] =
                fit_gaussian(others.distances.data(), n - 1, entropy, others.weights.data());
            if (exact) out.precisions[i] = precision;
            if (!dense) {
                keep_nearest(others, i, neighbours, sum, sparse[i], order);
                continue;
            }
            float* row = out.dense.data() + i * n;
            for (std::size_t j = 0; j + 1 < n; ++j)
                row[j + (j >= i ? 1 : 0)] = static_cast<float>(static_cast<double>(others.weights[j]) / sum);
        }
    });
    if (ctx.cancelled()) return cancelled_error("t-SNE");
    if (!dense) {
        symmetrise(sparse, out);
        return out;
    }
    const float share = 1.0f / (2.0f * static_cast<float>(n));
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = i + 1; j < n; ++j) {
            const float value =
                std::max((out.dense[i * n + j] + out.dense[j * n + i]) * share, least_affinity);
            out.dense[i * n + j] = value;
            out.dense[j * n + i] = value;
        }
    return out;
}

double divergence(const Affinities& affinities, std::span<const double> xs, std::span<const double> ys)
{
    const std::size_t n = affinities.count;
    const bool exact = !affinities.squared_distances.empty();
    std::vector<double> sums(n, 0.0); ///< exact: of exp(-precision * (distance - least)) over the others
    std::vector<double> least(n, 0.0);
    std::vector<double> weights(n, 0.0), parts(n, 0.0);
    parallel_blocks(blocks_of(n), [&](std::size_t block) {
        for (std::size_t i = block * rows_in_block; i < std::min(n, (block + 1) * rows_in_block); ++i) {
            for (std::size_t j = 0; j < n; ++j) {
                const double dx = xs[i] - xs[j], dy = ys[i] - ys[j];
                if (j != i) weights[i] += 1.0 / (1.0 + dx * dx + dy * dy);
            }
            if (!exact) continue;
            const float* row = affinities.squared_distances.data() + i * n;
            float nearest = std::numeric_limits<float>::max();
            for (std::size_t j = 0; j < n; ++j)
                if (j != i) nearest = std::min(nearest, row[j]);
            least[i] = static_cast<double>(nearest);
            for (std::size_t j = 0; j < n; ++j)
                if (j != i)
                    sums[i] += std::exp(-affinities.precisions[i] * (static_cast<double>(row[j]) - least[i]));
        }
    });
    const double log_total = std::log(std::accumulate(weights.begin(), weights.end(), 0.0));
    // p log(p / q), q = w / Z
    const auto part = [&](std::size_t i, std::size_t j, double p) {
        const double dx = xs[i] - xs[j], dy = ys[i] - ys[j];
        return p > 0.0 ? p * (std::log(p) + std::log1p(dx * dx + dy * dy) + log_total) : 0.0;
    };
    parallel_blocks(blocks_of(n), [&](std::size_t block) {
        for (std::size_t i = block * rows_in_block; i < std::min(n, (block + 1) * rows_in_block); ++i) {
            if (!exact) {
                for (std::size_t k = affinities.first[i]; k < affinities.first[i + 1]; ++k)
                    parts[i] += part(i, affinities.neighbours[k], static_cast<double>(affinities.values[k]));
                continue;
            }
            const float* row = affinities.squared_distances.data() + i * n;
            const auto conditional = [&](std::size_t of, double distance) {
                return std::exp(-affinities.precisions[of] * (distance - least[of])) / sums[of];
            };
            for (std::size_t j = i + 1; j < n; ++j) {
                const auto distance = static_cast<double>(row[j]);
                const double p =
                    (conditional(i, distance) + conditional(j, distance)) / (2.0 * static_cast<double>(n));
                parts[i] += 2.0 * part(i, j, p);
            }
        }
    });
    return std::accumulate(parts.begin(), parts.end(), 0.0);
}

} // namespace posiscope::core
