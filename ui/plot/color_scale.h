// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include <QColor>
#include <QImage>
#include <QRgb>
#include <QString>

#include "core/metrics/quantity.h"

namespace posiscope::ui {

/// Perceptually uniform colour maps that colour-blind readers can use; the last two are diverging.
enum class ColorMapId { viridis, cividis, magma, greys, blue_white_red, purple_green };

/// How values become places on the colour map: from the least to the largest finite value, linear or logarithmic;
/// from the 2nd to the 98th percentile, where at the upper end at least as many values as a column has are left out;
/// or from -m to m, m the largest magnitude.
enum class ScaleKind { linear, logarithmic, percentile, symmetric };

/// One row of the list of colour maps. `id` is written to settings and the command line.
struct ColorMapRow {
    ColorMapId map;
    std::string_view id;
    const char* label; ///< English source text, translated where it is shown
    bool diverging;
};
std::span<const ColorMapRow> color_maps();

/// One row of the list of scales.
struct ScaleKindRow {
    ScaleKind kind;
    std::string_view id;
    const char* label;
};
std::span<const ScaleKindRow> scale_kinds();

std::optional<ColorMapId> find_color_map(std::string_view id);
std::optional<ScaleKind> find_scale_kind(std::string_view id);
std::string_view color_map_id(ColorMapId map);
std::string_view scale_kind_id(ScaleKind kind);

/// Colour of entry `index` (0 .. 255) of a map.
QRgb color_map_entry(ColorMapId map, int index);

/// Values to colours. The range comes from finite values; infinities take the colours of the ends.
struct ColorScale {
    ColorMapId map = ColorMapId::viridis;
    ScaleKind kind =
        ScaleKind::linear; ///< the kind in effect: logarithmic falls back to linear without positive values
    double lower = 0.0;
    double upper = 1.0;
    bool lower_clipped = false; ///< some values (or an infinity) lie below `lower`
    bool upper_clipped = false;
    QColor missing;           ///< of entries that do not exist (NaN)
    bool has_missing = false; ///< the map has such entries

    /// Place on the colour map, 0 .. 1; values outside take the ends; 1/2 where the range is a single value.
    /// NaN gives NaN.
    [[nodiscard]] double fraction(double value) const;
    /// The value at a place on the colour map: the inverse of fraction().
    [[nodiscard]] double value_at(double fraction) const;
    /// Opaque colour of a value; `missing` for NaN.
    [[nodiscard]] QRgb color(double value) const;

    bool operator==(const ColorScale&) const = default;
};

/// The colour of missing entries on a map: one that the map itself does not hold.
QColor missing_color(ColorMapId map);

/// The scale of one map, or a common one for several.
ColorScale make_color_scale(const core::PositionMap& map, ColorMapId color_map, ScaleKind kind);
ColorScale make_color_scale(std::span<const core::PositionMap> maps, ColorMapId color_map, ScaleKind kind);

/// What a map shows, as far as its colours are concerned.
enum class MapMeaning { magnitude, signed_difference, probability };
MapMeaning meaning_of(core::Quantity quantity);

/// House rule: a sequential map for logits, probabilities and spreads; a diverging one centred at zero for
/// differences, terms and biases. Probabilities by percentiles: a first position that draws most of the attention must
/// not darken all the rest.
struct ColorDefaults {
    ColorMapId map;
    ScaleKind kind;
};
ColorDefaults default_colors(MapMeaning meaning);

/// The map as one image, a pixel a cell: query 0 at the top, key 0 at the left. Safe on any thread.
QImage heatmap_image(const core::PositionMap& map, const ColorScale& scale);

/// The colour map from `upper` (top pixel) down to `lower` as an image of 1 x 256 pixels.
QImage color_bar_image(ColorMapId map);

} // namespace posiscope::ui
