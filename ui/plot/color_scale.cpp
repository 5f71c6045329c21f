// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plot/color_scale.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <QCoreApplication>

#include "ui/plot/color_tables.h"

namespace posiscope::ui {
namespace {

/// Share of the finite values that a percentile scale leaves out at either end.
constexpr double percentile_tail = 0.02;

const std::array<std::uint32_t, 256>& table(ColorMapId map)
{
    switch (map) {
    case ColorMapId::viridis: return viridis_table;
    case ColorMapId::cividis: return cividis_table;
    case ColorMapId::magma: return magma_table;
    case ColorMapId::greys: return greys_table;
    case ColorMapId::blue_white_red: return blue_white_red_table;
    case ColorMapId::purple_green: return purple_green_table;
    }
    return viridis_table;
}

/// Linear interpolation between order statistics; `values` is not empty and is reordered.
double quantile(std::vector<double>& values, double share)
{
    const double place = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::ptrdiff_t>(std::floor(place));
    std::nth_element(values.begin(), values.begin() + below, values.end());
    const double low = values[static_cast<std::size_t>(below)];
    const double rest = place - std::floor(place);
    if (rest == 0.0) return low;
    const double high = *std::min_element(values.begin() + below + 1, values.end());
    return low + rest * (high - low);
}

/// @param column  values of the longest column: one that outshines the rest is left out at the upper end whole, also
///                where the map is so small that it is more than the tail
void set_percentile_range(ColorScale& scale, std::vector<double>& finite, std::size_t column)
{
    const auto [least, largest] = std::minmax_element(finite.begin(), finite.end());
    const double full_lower = *least;
    const double full_upper = *largest;
    const auto count = static_cast<double>(finite.size());
    const double steps = std::max(1.0, count - 1.0);
    scale.lower = quantile(finite, percentile_tail);
    scale.upper = quantile(
        finite, std::max(0.5, std::min(1.0 - percentile_tail, 1.0 - static_cast<double>(column) / steps)));
    if (scale.lower < scale.upper || full_lower == full_upper) return;
    // Nearly all values are the same one: a tenth of it to either side, so that the others show as clipped.
    const double step =
        scale.lower == 0.0 ? 0.1 * std::max(-full_lower, full_upper) : 0.1 * std::abs(scale.lower);
    scale.lower = std::max(full_lower, scale.lower - step);
    scale.upper = std::min(full_upper, scale.upper + step);
}

} // namespace

std::span<const ColorMapRow> color_maps()
{
    static constexpr std::array rows{
        ColorMapRow{ColorMapId::viridis, "viridis", QT_TRANSLATE_NOOP("posiscope::ui", "Viridis"), false},
        ColorMapRow{ColorMapId::cividis, "cividis", QT_TRANSLATE_NOOP("posiscope::ui", "Cividis"), false},
        ColorMapRow{ColorMapId::magma, "magma", QT_TRANSLATE_NOOP("posiscope::ui", "Magma"), false},
        ColorMapRow{ColorMapId::greys, "greys", QT_TRANSLATE_NOOP("posiscope::ui", "Greys"), false},
        ColorMapRow{ColorMapId::blue_white_red, "blue_white_red",
                    QT_TRANSLATE_NOOP("posiscope::ui", "Blue-white-red (diverging)"), true},
        ColorMapRow{ColorMapId::purple_green, "purple_green",
                    QT_TRANSLATE_NOOP("posiscope::ui", "Purple-green (diverging)"), true},
    };
    return rows;
}

std::span<const ScaleKindRow> scale_kinds()
{
    static constexpr std::array rows{
        ScaleKindRow{ScaleKind::linear, "linear", QT_TRANSLATE_NOOP("posiscope::ui", "Linear")},
        ScaleKindRow{ScaleKind::logarithmic, "logarithmic",
                     QT_TRANSLATE_NOOP("posiscope::ui", "Logarithmic")},
        ScaleKindRow{ScaleKind::percentile, "percentile",
                     QT_TRANSLATE_NOOP("posiscope::ui", "Percentiles 2 to 98")},
        ScaleKindRow{ScaleKind::symmetric, "symmetric",
                     QT_TRANSLATE_NOOP("posiscope::ui", "Symmetric about 0")},
    };
    return rows;
}

std::optional<ColorMapId> find_color_map(std::string_view id)
{
    for (const ColorMapRow& row : color_maps())
        if (row.id == id) return row.map;
    return std::nullopt;
}

std::optional<ScaleKind> find_scale_kind(std::string_view id)
{
    for (const ScaleKindRow& row : scale_kinds())
        if (row.id == id) return row.kind;
    return std::nullopt;
}

std::string_view color_map_id(ColorMapId map)
{
    return color_maps()[static_cast<std::size_t>(map)].id;
}

std::string_view scale_kind_id(ScaleKind kind)
{
    return scale_kinds()[static_cast<std::size_t>(kind)].id;
}

QRgb color_map_entry(ColorMapId map, int index)
{
    return 0xFF000000u | table(map)[static_cast<std::size_t>(std::clamp(index, 0, 255))];
}

double ColorScale::fraction(double value) const
{
    if (std::isnan(value)) return std::numeric_limits<double>::quiet_NaN();
    if (value < lower) return 0.0;
    if (value > upper) return 1.0;
    if (!(lower < upper)) return 0.5;
    const double place = kind == ScaleKind::logarithmic
                             ? (std::log(value) - std::log(lower)) / (std::log(upper) - std::log(lower))
                             // Halves, because upper - lower may overflow.
                             : (value * 0.5 - lower * 0.5) / (upper * 0.5 - lower * 0.5);
    return std::clamp(place, 0.0, 1.0);
}

double ColorScale::value_at(double fraction) const
{
    if (kind == ScaleKind::logarithmic)
        return std::exp(std::log(lower) + fraction * (std::log(upper) - std::log(lower)));
    return lower * (1.0 - fraction) + upper * fraction;
}

QRgb ColorScale::color(double value) const
{
    const double place = fraction(value);
    if (std::isnan(place)) return missing.rgb();
    return color_map_entry(map, static_cast<int>(place * 256.0));
}

QColor missing_color(ColorMapId map)
{
    // Grey itself is on the grey map, and nearly so on one whose arms are green and purple.
    const bool has_greys = map == ColorMapId::greys || map == ColorMapId::purple_green;
    return has_greys ? QColor(0xE8, 0xC3, 0x8E) : QColor(0xB4, 0xB4, 0xB4);
}

ColorScale make_color_scale(const core::PositionMap& map, ColorMapId color_map, ScaleKind kind)
{
    return make_color_scale(std::span(&map, 1), color_map, kind);
}

ColorScale make_color_scale(std::span<const core::PositionMap> maps, ColorMapId color_map, ScaleKind kind)
{
    ColorScale scale;
    scale.map = color_map;
    scale.kind = kind;
    scale.missing = missing_color(color_map);

    std::vector<double> finite;
    double least_positive = std::numeric_limits<double>::infinity();
    bool negative_infinity = false;
    bool positive_infinity = false;
    std::size_t column = 0;
    for (const core::PositionMap& map : maps) {
        column += map.length;
        for (const double value : map.values) {
            if (std::isfinite(value)) {
                finite.push_back(value);
                if (value > 0.0) least_positive = std::min(least_positive, value);
            } else if (std::isnan(value)) {
                scale.has_missing = true;
            } else {
                (value < 0.0 ? negative_infinity : positive_infinity) = true;
            }
        }
    }
    if (finite.empty()) {
        if (kind == ScaleKind::logarithmic) scale.kind = ScaleKind::linear;
        scale.lower_clipped = negative_infinity;
        scale.upper_clipped = positive_infinity;
        return scale;
    }
    const auto [least, largest] = std::minmax_element(finite.begin(), finite.end());
    const double full_lower = *least;
    const double full_upper = *largest;
    scale.lower = full_lower;
    scale.upper = full_upper;
    if (kind == ScaleKind::logarithmic) {
        if (std::isfinite(least_positive))
            scale.lower = least_positive;
        else
            scale.kind = ScaleKind::linear;
    } else if (kind == ScaleKind::percentile) {
        set_percentile_range(scale, finite, column);
    } else if (kind == ScaleKind::symmetric) {
        scale.upper = std::max(std::abs(full_lower), std::abs(full_upper));
        scale.lower = -scale.upper;
    }
    scale.lower_clipped = negative_infinity || full_lower < scale.lower;
    scale.upper_clipped = positive_infinity || full_upper > scale.upper;
    return scale;
}

ColorDefaults default_colors(MapMeaning meaning)
{
    if (meaning == MapMeaning::signed_difference) return {ColorMapId::blue_white_red, ScaleKind::symmetric};
    return {ColorMapId::viridis,
            meaning == MapMeaning::probability ? ScaleKind::percentile : ScaleKind::linear};
}

MapMeaning meaning_of(core::Quantity quantity)
{
    return quantity == core::Quantity::probabilities ? MapMeaning::probability : MapMeaning::magnitude;
}

QImage heatmap_image(const core::PositionMap& map, const ColorScale& scale)
{
    const int side = static_cast<int>(map.length);
    if (side == 0) return {};
    QImage image(side, side, QImage::Format_RGB32);
    for (int query = 0; query < side; ++query) {
        auto* line = reinterpret_cast<QRgb*>(image.scanLine(query));
        for (int key = 0; key < side; ++key)
            line[key] = scale.color(map(static_cast<std::size_t>(query), static_cast<std::size_t>(key)));
    }
    return image;
}

QImage color_bar_image(ColorMapId map)
{
    QImage image(1, 256, QImage::Format_RGB32);
    for (int row = 0; row < 256; ++row) image.setPixel(0, row, color_map_entry(map, 255 - row));
    return image;
}

} // namespace posiscope::ui
