// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/metrics/metric_table.h"
#include "core/metrics/position_similarity.h"
#include "core/metrics/relative_bias.h"
#include "core/model/open_model.h"
#include "core/projection/pca.h"
#include "core/projection/position_vectors.h"
#include "core/projection/tsne.h"
#include "core/session/image_grid.h"
#include "core/session/session.h"
#include "ui/figure/figure_spec.h"

// The figure of each view, with title, name and provenance: what the window exports and `posiscope figure` writes.
namespace posiscope::ui {

/// @param id  of what the heatmap shows: empty for the mean over words, else "spread" or a term's
FigureSpec attention_heatmap_figure(const core::Session& session, HeatmapContent content,
                                    const QString& id = {});
FigureSpec offset_profile_figure(const core::Session& session, ProfileContent content);

/// What the heatmap and the profile show of a session at first: the mean over words in the colours of its quantity.
HeatmapContent attention_heatmap_content(const core::Session& session, std::optional<ColorMapId> map = {},
                                         std::optional<ScaleKind> scale = {});
ProfileContent offset_profile_content(const core::Session& session);

/// The rows as a table: quantities and choices of positions (and whatever else differs between rows) against metrics,
/// with standard errors. Metrics that no row has are left out.
/// @param probe  of the session, for words and length in the title; may be null
FigureSpec metric_table_figure(const core::Session& session, const core::MetricTable& rows);

/// The model, stack and layer that a view without a probe looks at.
struct FigureOrigin {
    const core::OpenModel& model;
    const core::Stack& stack;
    int layer = 0;
    TensorDigests read; ///< what the picture was computed from
};

/// A figure of such a view without its content: title, name and provenance.
FigureSpec weights_figure(const FigureOrigin& origin, std::string_view view_id, const QString& line,
                          const std::string& settings_json);

FigureSpec position_map_figure(const FigureOrigin& origin, const core::PositionVectors& vectors,
                               const core::TsneResult& map, bool joined = true);
FigureSpec position_map_figure(const FigureOrigin& origin, const core::PositionVectors& vectors,
                               const core::PcaMap& map, bool joined = true);

/// One row of what a view can show: `id` is written to settings and the command line.
struct ShownPart {
    std::string_view id;
    const char* label; ///< English source text, context "posiscope"
};
/// Of the position similarity: similarity, norms, singular_values, spectrum.
std::span<const ShownPart> similarity_parts();
/// Of the relative bias: curves, map.
std::span<const ShownPart> relative_bias_parts();
/// The first row for an id that none has.
const ShownPart& find_part(std::span<const ShownPart> parts, std::string_view id);

FigureSpec position_similarity_figure(const FigureOrigin& origin, const core::PositionVectors& vectors,
                                      const core::PositionSimilarity& similarity, std::string_view part);
/// @param head  of the map; core::mean_of_heads for the mean
FigureSpec relative_bias_figure(const FigureOrigin& origin, const core::RelativeBias& bias,
                                std::string_view part, int head);
FigureSpec image_grid_figure(const FigureOrigin& origin, const core::ImageGrid& grid);

/// "t-SNE, perplexity 30, 1000 iterations, KL 1.083", with a word on a perplexity that was too large.
QString tsne_line(const core::TsneResult& map, std::size_t vectors);
/// "white band 0 to 0, depth 6.52".
QString white_band_line(const core::WhiteBand& band);

} // namespace posiscope::ui
