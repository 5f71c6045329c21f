// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/metrics/grid.h"
#include "core/metrics/quantity.h"
#include "core/model/open_model.h"
#include "core/probe/probe_result.h"

namespace posiscope::core {

/// How well a map over the patches of an image follows the grid: 0 where it does perfectly.
struct GridMetrics {
    double translation_invariance_violation = 0.0; ///< by (rows, columns) between two patches
    double monotonicity_violation = 0.0;           ///< along rows and columns
};

/// What an image grid holds for two patches.
enum class ImageGridKind {
    similarity, ///< cosine of their position vectors
    bias,       ///< what a relative scheme adds to the logits, mean of heads (BEiT, Swin)
};
/// "similarity", "bias": stable.
std::string_view image_grid_kind_name(ImageGridKind kind);

/// A vector before the patches: a class or a distillation token.
struct PrefixSimilarity {
    std::string name;                 ///< "class token"
    std::vector<double> with_patches; ///< cosine with each patch's vector, row by row
};

/// How the patches of an image are placed with regard to each other.
struct ImageGrid {
    ImageGridKind kind = ImageGridKind::similarity;
    Grid grid;
    PositionMap map; ///< over the patches; first_position is the position of the first of them
    std::vector<PrefixSimilarity> prefixes; ///< of vectors; a bias has none
    GridMetrics metrics;                    ///< of `map`
    std::string source;                     ///< as PositionVectors::source or RelativeBias::scheme
};

/// Compares the position vectors of a stack's patches, or where they have none reads the bias between them.
/// @param layer  of a bias
/// @error unsupported_model (no image: the sentence says so), shape_mismatch, and what read_position_vectors and
///        read_relative_bias give
Result<ImageGrid> read_image_grid(const OpenModel& model, const Stack& stack, int layer,
                                  const RunContext& ctx);

/// The two-dimensional metrics of a probe's attention, class token and its kin left out; nothing where the probe is not
/// one of an image.
std::optional<GridMetrics> attention_grid_metrics(const ProbeResult& probe, Quantity quantity, int head);

/// Why a stack has no image grid, as a sentence; empty where it has one. Reads nothing.
std::string lack_of_image_grid(const Stack& stack);

} // namespace posiscope::core
