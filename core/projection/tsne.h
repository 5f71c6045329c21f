// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/projection/point_map.h"

namespace posiscope::core {

enum class TsneStart {
    pca,    ///< the two principal components, shrunk
    random, ///< seeded normal numbers
};
/// "pca", "random": stable.
std::string_view tsne_start_name(TsneStart start);

/// Up to this many vectors repulsion is summed over all pairs, above by a tree.
inline constexpr std::size_t most_all_pairs = 2048;

/// A map while it is being made. The spans live as long as the call.
struct TsneSnapshot {
    std::size_t iteration = 0; ///< 1 .. iterations
    std::span<const double> x, y;
};

struct TsneOptions {
    double perplexity = 30.0;
    std::size_t iterations = 1000;
    std::uint64_t seed = 0;
    TsneStart start = TsneStart::pca;

    /// Factor on p at the start; it falls to 1, by the same factor in each of the first `exaggerated` iterations (at
    /// most half of all).
    double early_exaggeration = 12.0;
    std::size_t exaggerated = 500;
    double learning_rate = 0.0;        ///< 0: n / early_exaggeration / 4, at least 50
    double least_gradient_norm = 1e-7; ///< stops below, once the exaggeration is over and it no longer grows
    double openness = 0.5;             ///< of the tree, where one is used (PointTree::collect)

    bool operator==(const TsneOptions&) const = default;
};

struct TsneResult {
    PointMap2D points; ///< centred at 0
    TsneOptions options;
    double perplexity = 0.0;    ///< the one used: at most (n - 1) / 3
    double divergence = 0.0;    ///< of Kullback and Leibler, in nats (core/projection/tsne_affinities.h)
    std::size_t iterations = 0; ///< done
    double gradient_norm = 0.0; ///< at the end
    double seconds = 0.0;
    std::vector<std::string> warnings; ///< a perplexity that was too large
};

/// t-SNE of vectors. Momentum 0.5 and then 0.8, and gains as in van der Maaten's own code; the exaggeration of 12 and
/// the start from principal components as in scikit-learn and openTSNE. Where they end the exaggeration at one stroke,
/// here it fades: on tables of positions, which hold many nearly equal distances, that ends in lower divergences
/// (MiniLM's: 1.08 against 1.10 to 1.16, whatever the start). The gradient in float32 with the positions in double; over all pairs up to
/// most_all_pairs vectors, above with a tree. The same seed gives the same bits on any number of threads (with one set of
/// kernels).
/// Source: van der Maaten and Hinton 2008; van der Maaten 2014 (tree); Kobak and Berens 2019 (start); Belkina et al.
/// 2019 (learning rate).
/// @param vectors  at least 4, finite, not all equal
/// @param watch  called after every iteration on the calling thread; may be empty
/// @error invalid_argument (too few vectors, all equal, options out of range), numeric_failure, cancelled
Result<TsneResult> tsne(MatrixView vectors, const TsneOptions& options, const RunContext& ctx,
                        const std::function<void(const TsneSnapshot&)>& watch = {});

} // namespace posiscope::core
