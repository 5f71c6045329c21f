// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/metrics/quantity.h"
#include "core/tensor/matrix_view.h"

namespace posiscope::core {

enum class SimilarityKind { cosine, dot };

struct SimilarityOptions {
    SimilarityKind kind = SimilarityKind::cosine;
    std::uint64_t seed = 0; ///< of the five folds
    bool decodability = true;

    bool operator==(const SimilarityOptions&) const = default;
};

/// How well the position can be read from its vector by linear means, on positions that were not learned from. All NaN
/// with fewer than 10 vectors.
struct Decodability {
    double position_error = 0.0; ///< mean |predicted - true position|, ridge regression
    double position_r2 = 0.0;    ///< 1 - squared error / variance
    double order_accuracy = 0.0; ///< share of pairs (i, j) whose order is told right, logistic regression
};

/// What the vectors of positions say by themselves.
struct PositionSimilarity {
    SimilarityOptions options;
    PositionMap map;                     ///< [n, n]; a zero vector has cosine 0 with all
    std::vector<double> norms;           ///< Euclidean
    std::vector<double> singular_values; ///< of the vectors as they are, descending
    std::array<std::size_t, 3>
        dimensions{};                ///< singular values whose squares make 90, 95 and 99 % of their sum
    std::vector<double> frequencies; ///< cycles per position, 1/n .. 1/2
    std::vector<double> power; ///< share of the variance at each frequency, over all features; sums to 1
    Decodability decodability;
    std::vector<double>
        metrics; ///< of the map as logits, one for each row of metric_list(); NaN where undefined
    double seconds = 0.0;
};

/// Shares of `dimensions`.
inline constexpr std::array<double, 3> dimension_shares{0.90, 0.95, 0.99};

/// Similarity, norms, singular values, spectrum and decodability of vectors in the order of their positions.
///     power[k] = sum over features f of |sum over p of (x_pf - mean_f) exp(-2 pi i k p / n)|^2, divided by its sum
/// Decodability by five-fold cross-validation over positions (seeded). Position: ridge regression with penalty 1e-4 times
/// the mean squared norm. Order: logistic regression on the difference of two vectors, over all pairs of the positions
/// learned from (the same as on both vectors side by side with each pair in both orders), tested on the pairs of the
/// positions left out.
/// Source: Wang and Chen 2020, "What Do Position Embeddings Learn?" (regressions; the folds over positions, so that no tested
/// position was learned from, are this project's).
/// @param vectors  at least 2, finite
/// @error invalid_argument, numeric_failure, cancelled
Result<PositionSimilarity> position_similarity(MatrixView vectors, const SimilarityOptions& options,
                                               const RunContext& ctx);

/// The mean cosine between the vectors of different offsets beyond `beyond` on each side: [before, after]; NaN where there
/// are fewer than two. Near 1: far offsets are told apart no more.
std::array<double, 2> far_offset_cosine(MatrixView vectors, std::span<const std::int64_t> offsets,
                                        std::int64_t beyond = 20);

} // namespace posiscope::core
