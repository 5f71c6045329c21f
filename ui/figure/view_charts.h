// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/metrics/position_similarity.h"
#include "core/metrics/relative_bias.h"
#include "core/projection/position_vectors.h"
#include "core/session/image_grid.h"
#include "ui/figure/chart.h"
#include "ui/figure/figure_spec.h"

// What the views of positions draw, from core's numbers: the window and `posiscope figure` both draw these.
namespace posiscope::ui {

/// A map of vectors: coloured by position with a bar, neighbours joined, numbers at round positions, special and unused
/// rows as rings in the background's colour.
ChartContent position_map_chart(const core::PositionVectors& vectors, const std::vector<double>& x,
                                const std::vector<double>& y, bool joined);

/// Name of what position vectors are numbered by: "position" or "offset (key - query)".
QString position_axis_label(const core::PositionVectors& vectors);

/// The similarity of every two position vectors, in colours centred at zero where some are negative.
HeatmapContent similarity_content(const core::PositionVectors& vectors,
                                  const core::PositionSimilarity& similarity);
/// The length of each vector; the singular values with the dimensions that hold 90, 95 and 99 %; the Fourier spectrum
/// along the positions.
ChartContent norms_chart(const core::PositionVectors& vectors, const core::PositionSimilarity& similarity);
ChartContent singular_values_chart(const core::PositionSimilarity& similarity);
ChartContent spectrum_chart(const core::PositionVectors& vectors, const core::PositionSimilarity& similarity);

/// "bias", "word-independent term", "mean cosine of the rotation".
QString relative_bias_label(const core::RelativeBias& bias);
/// Curves of a bias against the offset: each head thin, the mean thick, where buckets begin, and the white band.
ChartContent relative_bias_chart(const core::RelativeBias& bias);
/// The map of one head, or of the mean.
HeatmapContent relative_bias_content(const core::RelativeBias& bias, int head);

/// One small map for each patch, laid out as the patches are; apart below those of tokens before the patches.
ChartContent image_grid_chart(const core::ImageGrid& grid);
/// The map of one patch alone; numbers from grid.map.length on are the tokens before the patches.
ChartContent image_patch_chart(const core::ImageGrid& grid, std::size_t patch);
/// Which map of image_grid_chart() lies at a place (chart units), numbered as in image_patch_chart().
std::optional<std::size_t> image_patch_at(const core::ImageGrid& grid, const QPointF& place);
/// The middle of a map of image_grid_chart(), in chart units.
QPointF image_patch_middle(const core::ImageGrid& grid, std::size_t patch);

} // namespace posiscope::ui
