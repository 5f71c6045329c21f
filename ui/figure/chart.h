// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <QImage>
#include <QString>

#include "ui/plot/color_scale.h"
#include "ui/plot/profile_curve.h"

namespace posiscope::ui {

/// How a series of a chart is coloured: as the main curve, from a row of distinct colours, by a value of each point on
/// the chart's colour map, or as something in the background.
enum class SeriesColor { main, distinct, by_value, faint };

/// Points, perhaps joined, in the chart's own units. NaN breaks the line.
struct ChartSeries {
    QString name; ///< in the legend; empty: not there
    std::vector<double> x, y;
    std::vector<double> values; ///< by_value: 0 .. 1 on the colour map, one for each point
    SeriesColor color = SeriesColor::main;
    double hue = 0.0; ///< distinct: 0 .. 1
    bool line = true;
    bool points = false;
    bool hollow = false; ///< points as rings
    double width = 1.0;  ///< of the line, in points
};

struct ChartLabel {
    double x = 0.0, y = 0.0;
    QString text;
};

struct ChartBar {
    ColorMapId map = ColorMapId::viridis;
    QString label;
    double lower = 0.0, upper = 1.0;
    bool shown = true; ///< false: its colours hold, but a chart beside this one has the bar
};

/// A map of points, curves, or a picture of cells, for the window and for figures: both draw it by draw_chart().
struct ChartContent {
    std::vector<ChartSeries> series;
    std::vector<ChartLabel> labels; ///< beside points, above to the right
    std::vector<ChartLabel> notes;  ///< right of places, at their height
    QString x_label, y_label;
    bool is_map = false;    ///< one unit is as long in both directions, and the axes have no numbers
    bool integer_x = false; ///< whole numbers on the horizontal axis
    bool zero_line = false;
    std::optional<std::pair<double, double>> x_range, y_range; ///< shown; nothing: all
    std::optional<WhiteBandOffsets> white_band;
    std::vector<double> edges; ///< faint vertical lines: where buckets begin
    std::optional<ChartBar> bar;
    QImage image; ///< cells over (0, 0) .. (columns, rows), y downwards; null: none

    [[nodiscard]] bool empty() const { return series.empty() && image.isNull(); }
};

} // namespace posiscope::ui
