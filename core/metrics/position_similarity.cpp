// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/metrics/position_similarity.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include <Eigen/Dense>

#include "core/base/random.h"
#include "core/kernels/kernel_set.h"
#include "core/kernels/thread_pool.h"
#include "core/metrics/metric_list.h"

namespace posiscope::core {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t folds = 5;
constexpr std::size_t least_decodable = 10;
constexpr std::size_t rows_in_block = 32;
constexpr double ridge = 1e-4;

std::size_t size_of(Eigen::Index n)
{
    return static_cast<std::size_t>(n);
}

Matrix as_matrix(MatrixView vectors)
{
    Matrix out(static_cast<Eigen::Index>(vectors.rows), static_cast<Eigen::Index>(vectors.cols));
    for (Eigen::Index i = 0; i < out.rows(); ++i)
        for (Eigen::Index f = 0; f < out.cols(); ++f)
            out(i, f) = static_cast<double>(vectors(size_of(i), size_of(f)));
    return out;
}

/// rows * rows transposed, by blocks of rows: each entry is summed by one thread in one order.
Matrix products(const Matrix& rows)
{
    Matrix out(rows.rows(), rows.rows());
    const std::size_t n = size_of(rows.rows());
    parallel_blocks((n + rows_in_block - 1) / rows_in_block, [&](std::size_t block) {
        const auto begin = static_cast<Eigen::Index>(block * rows_in_block);
        const Eigen::Index count = std::min(static_cast<Eigen::Index>(rows_in_block), rows.rows() - begin);
        out.middleRows(begin, count).noalias() = rows.middleRows(begin, count) * rows.transpose();
    });
    return out;
}

void find_spectrum(const Matrix& centred_products, PositionSimilarity& out)
{
    const std::size_t n = size_of(centred_products.rows());
    // |sum_p x_p e^(-iwp)|^2 = r_0 + 2 sum_m r_m cos(w m), r_m = sum_p x_p x_(p+m): sums of diagonals.
    std::vector<double> lags(n, 0.0);
    for (std::size_t m = 0; m < n; ++m)
        for (std::size_t p = 0; p + m < n; ++p)
            lags[m] += centred_products(static_cast<Eigen::Index>(p), static_cast<Eigen::Index>(p + m));
    std::vector<double> cosines(n);
    for (std::size_t m = 0; m < n; ++m)
        cosines[m] = std::cos(2.0 * std::numbers::pi * static_cast<double>(m) / static_cast<double>(n));
    double total = 0.0;
    for (std::size_t k = 1; k <= n / 2; ++k) {
        double power = lags[0];
        for (std::size_t m = 1; m < n; ++m) power += 2.0 * lags[m] * cosines[k * m % n];
        out.frequencies.push_back(static_cast<double>(k) / static_cast<double>(n));
        out.power.push_back(std::max(power, 0.0));
        total += out.power.back();
    }
    if (total > 0.0)
        for (double& power : out.power) power /= total;
}

void find_singular_values(const Matrix& rows, const Matrix& row_products, PositionSimilarity& out)
{
    const bool wide = rows.cols() >= rows.rows();
    const Matrix small = wide ? row_products : Matrix(rows.transpose() * rows);
    const Eigen::SelfAdjointEigenSolver<Matrix> solver(small, Eigen::EigenvaluesOnly);
    double total = 0.0;
    for (Eigen::Index k = small.rows(); k > 0; --k) {
        const double squared = std::max(solver.eigenvalues()(k - 1), 0.0);
        out.singular_values.push_back(std::sqrt(squared));
        total += squared;
    }
    for (std::size_t share = 0; share < dimension_shares.size(); ++share) {
        double sum = 0.0;
        std::size_t count = 0;
        while (count < out.singular_values.size() && sum < dimension_shares[share] * total)
            sum += out.singular_values[count] * out.singular_values[count], ++count;
        out.dimensions[share] = count;
    }
}

/// Positions of each fold, ascending.
std::vector<std::vector<std::size_t>> make_folds(std::size_t n, std::uint64_t seed)
{
    std::vector<std::int64_t> all(n);
    std::iota(all.begin(), all.end(), 0);
    const auto shuffled = sample_without_replacement(std::move(all), n, seed);
    std::vector<std::vector<std::size_t>> out(folds);
    for (std::size_t k = 0; k < n; ++k) out[k % folds].push_back(static_cast<std::size_t>(shuffled[k]));
    for (auto& fold : out) std::sort(fold.begin(), fold.end());
    return out;
}

struct FoldResult {
    double absolute = 0.0, squares = 0.0;
    std::size_t right = 0, pairs = 0;
};

/// Ridge regression in the space of the vectors learned from: coefficients (K + penalty)^-1 (y - mean).
void decode_position(const Matrix& gram, const std::vector<std::size_t>& learned,
                     const std::vector<std::size_t>& tested, double penalty, FoldResult& out)
{
    const auto m = static_cast<Eigen::Index>(learned.size());
    Matrix kernel(m, m);
    Eigen::VectorXd wanted(m);
    for (Eigen::Index a = 0; a < m; ++a) {
        wanted(a) = static_cast<double>(learned[size_of(a)]);
        for (Eigen::Index b = 0; b < m; ++b)
            kernel(a, b) = gram(static_cast<Eigen::Index>(learned[size_of(a)]),
                                static_cast<Eigen::Index>(learned[size_of(b)])) +
                           (a == b ? penalty : 0.0);
    }
    const double mean = wanted.mean();
    const Eigen::VectorXd centred = (wanted.array() - mean).matrix();
    const Eigen::VectorXd coefficients = kernel.llt().solve(centred);
    for (const std::size_t t : tested) {
        double found = mean;
        for (Eigen::Index a = 0; a < m; ++a)
            found += coefficients(a) *
                     gram(static_cast<Eigen::Index>(t), static_cast<Eigen::Index>(learned[size_of(a)]));
        const double error = found - static_cast<double>(t);
        out.absolute += std::abs(error);
        out.squares += error * error;
    }
}

/// Logistic regression on differences: score_j - score_i for every pair i < j learned from, by accelerated gradient
/// descent (Nesterov 1983) on the weights, which lie in the span of the vectors.
void decode_order(const Matrix& gram, const std::vector<std::size_t>& learned,
                  const std::vector<std::size_t>& tested, const RunContext& ctx, FoldResult& out)
{
    const auto m = static_cast<Eigen::Index>(learned.size());
    Matrix kernel(m, m);
    for (Eigen::Index a = 0; a < m; ++a)
        for (Eigen::Index b = 0; b < m; ++b)
            kernel(a, b) = gram(static_cast<Eigen::Index>(learned[size_of(a)]),
                                static_cast<Eigen::Index>(learned[size_of(b)]));
    constexpr int steps = 150;
    constexpr double decay = 1e-4;
    const double pairs = static_cast<double>(m) * static_cast<double>(m - 1) / 2.0;
    // The logistic loss bends by at most 1/4, a pair's difference is at most twice the largest vector.
    const double bend = kernel.diagonal().maxCoeff() + decay;
    Eigen::VectorXd at = Eigen::VectorXd::Zero(m), before = at, slopes(m);
    for (int step = 1; step <= steps; ++step) {
        if (ctx.cancelled()) return;
        const Eigen::VectorXd ahead =
            at + (static_cast<double>(step - 1) / static_cast<double>(step + 2)) * (at - before);
        const Eigen::VectorXd scores = kernel * ahead;
        slopes.setZero();
        for (Eigen::Index i = 0; i < m; ++i)
            for (Eigen::Index j = i + 1; j < m; ++j) {
                const double miss = 1.0 / (1.0 + std::exp(scores(j) - scores(i)));
                slopes(j) -= miss;
                slopes(i) += miss;
            }
        before = at;
        at = ahead - (slopes / pairs + decay * ahead) / bend;
    }
    std::vector<double> scores;
    for (const std::size_t t : tested) {
        double score = 0.0;
        for (Eigen::Index a = 0; a < m; ++a)
            score +=
                at(a) * gram(static_cast<Eigen::Index>(t), static_cast<Eigen::Index>(learned[size_of(a)]));
        scores.push_back(score);
    }
    for (std::size_t i = 0; i < scores.size(); ++i)
        for (std::size_t j = i + 1; j < scores.size(); ++j) {
            ++out.pairs;
            if (scores[j] > scores[i]) ++out.right;
        }
}

/// @param gram  products of the centred vectors, divided by their mean squared norm
Decodability find_decodability(const Matrix& gram, std::uint64_t seed, const RunContext& ctx)
{
    const std::size_t n = size_of(gram.rows());
    if (n < least_decodable) return {undefined, undefined, undefined};
    const auto parts = make_folds(n, seed);
    std::vector<FoldResult> results(folds);
    parallel_blocks(folds, [&](std::size_t fold) {
        std::vector<std::size_t> learned;
        for (std::size_t other = 0; other < folds; ++other)
            if (other != fold) learned.insert(learned.end(), parts[other].begin(), parts[other].end());
        std::sort(learned.begin(), learned.end());
        decode_position(gram, learned, parts[fold], ridge, results[fold]);
        decode_order(gram, learned, parts[fold], ctx, results[fold]);
    });
    double absolute = 0.0, squares = 0.0, right = 0.0, pairs = 0.0;
    for (const FoldResult& result : results) {
        absolute += result.absolute;
        squares += result.squares;
        right += static_cast<double>(result.right);
        pairs += static_cast<double>(result.pairs);
    }
    const double count = static_cast<double>(n);
    const double variance = (count * count - 1.0) / 12.0; // of 0 .. n - 1
    return {absolute / count, 1.0 - squares / count / variance, pairs > 0.0 ? right / pairs : undefined};
}

} // namespace

Result<PositionSimilarity> position_similarity(MatrixView vectors, const SimilarityOptions& options,
                                               const RunContext& ctx)
{
    const auto start = std::chrono::steady_clock::now();
    if (vectors.rows < 2)
        return Error{ErrorCode::invalid_argument,
                     "there are " + std::to_string(vectors.rows) + " vectors; a similarity needs at least 2",
                     "position similarity"};
    for (std::size_t i = 0; i < vectors.rows; ++i)
        for (std::size_t f = 0; f < vectors.cols; ++f)
            if (!std::isfinite(vectors(i, f)))
                return Error{ErrorCode::numeric_failure,
                             "row " + std::to_string(i) +
                                 " of the vectors holds a value that is not finite (NaN or infinite)",
                             "position similarity"};
    const auto stage = [&](std::size_t done) {
        ctx.report({"similarity", done, 4});
        return !ctx.cancelled();
    };
    if (!stage(0)) return cancelled_error("the position similarity");
    PositionSimilarity out;
    out.options = options;
    const Matrix rows = as_matrix(vectors);
    const Matrix raw = products(rows);
    const std::size_t n = vectors.rows;
    for (Eigen::Index i = 0; i < rows.rows(); ++i) out.norms.push_back(std::sqrt(raw(i, i)));
    out.map.length = n;
    out.map.values.resize(n * n);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) {
            // Of (i, j) and (j, i) the same bits, and exactly 1 on the diagonal.
            const double product =
                raw(static_cast<Eigen::Index>(std::min(i, j)), static_cast<Eigen::Index>(std::max(i, j)));
            const double lengths = out.norms[i] * out.norms[j];
            out.map(i, j) = options.kind == SimilarityKind::dot ? product
                            : lengths == 0.0                    ? 0.0
                            : i == j                            ? 1.0
                                                                : std::clamp(product / lengths, -1.0, 1.0);
        }
    if (!stage(1)) return cancelled_error("the position similarity");
    find_singular_values(rows, raw, out);
    if (!stage(2)) return cancelled_error("the position similarity");
    const Matrix centred = rows.rowwise() - rows.colwise().mean();
    Matrix gram = products(centred);
    find_spectrum(gram, out);
    if (!stage(3)) return cancelled_error("the position similarity");
    const double mean_square = gram.trace() / static_cast<double>(n);
    if (options.decodability && mean_square > 0.0) {
        gram /= mean_square;
        out.decodability = find_decodability(gram, options.seed, ctx);
        if (ctx.cancelled()) return cancelled_error("the position similarity");
    } else {
        out.decodability = {undefined, undefined, undefined};
    }
    for (const Metric& metric : metric_list())
        out.metrics.push_back(metric.evaluate(out.map, Quantity::logits));
    out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ctx.report({"similarity", 4, 4});
    return out;
}

std::array<double, 2> far_offset_cosine(MatrixView vectors, std::span<const std::int64_t> offsets,
                                        std::int64_t beyond)
{
    std::array<double, 2> out{undefined, undefined};
    for (std::size_t side = 0; side < 2; ++side) {
        std::vector<std::size_t> far;
        for (std::size_t k = 0; k < offsets.size(); ++k)
            if (side == 0 ? offsets[k] < -beyond : offsets[k] > beyond) far.push_back(k);
        double sum = 0.0;
        std::size_t pairs = 0;
        for (std::size_t a = 0; a < far.size(); ++a)
            for (std::size_t b = a + 1; b < far.size(); ++b) {
                double product = 0.0, one = 0.0, other = 0.0;
                for (std::size_t f = 0; f < vectors.cols; ++f) {
                    const auto x = static_cast<double>(vectors(far[a], f)),
                               y = static_cast<double>(vectors(far[b], f));
                    product += x * y;
                    one += x * x;
                    other += y * y;
                }
                sum += one * other > 0.0 ? product / std::sqrt(one * other) : 0.0;
                ++pairs;
            }
        if (pairs > 0) out[side] = sum / static_cast<double>(pairs);
    }
    return out;
}

} // namespace posiscope::core
