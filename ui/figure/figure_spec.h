// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include <QByteArray>
#include <QSizeF>
#include <QString>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/checkpoint/read_recorder.h"
#include "core/metrics/quantity.h"
#include "ui/figure/chart.h"
#include "ui/figure/table_content.h"
#include "ui/plot/color_scale.h"
#include "ui/plot/heatmap_axes.h"
#include "ui/plot/profile_curve.h"

namespace posiscope::ui {

/// A heatmap to draw: positions first .. last (in the input, as labelled) of a map.
struct HeatmapContent {
    core::PositionMap map;
    ColorScale scale;
    QString quantity_label;
    int first = 0;
    int last = -1; ///< below `first`: the whole map
    HeatmapAxes axes;
};

/// An offset profile to draw: offsets first .. last.
struct ProfileContent {
    ProfileCurve curve;
    QString quantity_label;
    int first = 0;
    int last = -1; ///< below `first`: all offsets
};

/// By the tensor's name.
using TensorDigests = std::map<std::string, core::TensorDigest>;

/// What a figure shows and where it comes from. The same spec gives the same figure on screen and in every format.
struct FigureSpec {
    std::variant<HeatmapContent, ProfileContent, ChartContent, TableContent> content;
    QString title;              ///< drawn on request only: captions are for papers
    QByteArray provenance_json; ///< one JSON object: program version, checkpoint, every setting, seed
    QString suggested_name;     ///< file name without folder and extension
    /// Reads once more what the figure was computed from, for the record. That may take long: a window does it in the
    /// background (take_tensors), else the writer does. Null: the record has the digests, or none belong to it.
    std::function<core::Result<TensorDigests>(const core::RunContext&)> read_tensors;
};

enum class FigureFormat { pdf, svg, png };

/// One row of the list of formats; `id` is the extension.
struct FigureFormatRow {
    FigureFormat format;
    std::string_view id;
    const char* label;
};
std::span<const FigureFormatRow> figure_formats();
/// By the extension of a path ("figure.PDF"); nothing where it is none of ours.
std::optional<FigureFormat> figure_format_of(const QString& path);

/// How a figure is drawn. Sizes do not depend on any window.
struct FigureOptions {
    double width_mm = 84.0;
    double height_mm = 0.0; ///< 0: as high as the figure needs at this width
    QString font_family;    ///< empty: the first of default_figure_fonts() that is installed
    double font_pt = 8.0;
    std::optional<ColorMapId> color_map; ///< of heatmaps; nothing: that of the screen
    bool title = false;
    QString letter; ///< "a" is drawn as (a); empty: none
    int dpi = 300;  ///< of PNG

    bool operator==(const FigureOptions&) const = default;
};

/// Sizes that papers and talks ask for. `id` is written to settings and the command line.
struct FigurePreset {
    std::string_view id;
    const char* label;
    double width_mm;
    double height_mm; ///< 0: as the figure needs
    double font_pt;
};
std::span<const FigurePreset> figure_presets();
const FigurePreset* find_figure_preset(std::string_view id);

/// Limits that the command line and the dialog share.
inline constexpr double least_figure_mm = 20.0;
inline constexpr double largest_figure_mm = 2000.0;
inline constexpr double least_font_pt = 3.0;
inline constexpr double largest_font_pt = 72.0;
inline constexpr int least_dpi = 50;
inline constexpr int largest_dpi = 2400;

/// A length as people type it: "84mm", "8.4 cm", "3.3in", "240pt"; a bare number is millimetres.
std::optional<double> parse_millimetres(const QString& text);
/// A font size as people type it: "8pt", "8", "2.8mm".
std::optional<double> parse_points(const QString& text);

/// The family that an empty font_family stands for.
QString default_figure_font();

} // namespace posiscope::ui
