// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QRectF>

#include "ui/figure/chart.h"
#include "ui/figure/figure_canvas.h"
#include "ui/plot/plot_colors.h"

namespace posiscope::ui {

/// Where a chart's units lie on the page, in points.
struct ChartFrame {
    QRectF area;                                             ///< of the plot
    double left = 0.0, right = 1.0, bottom = 0.0, top = 1.0; ///< chart units at the area's edges

    [[nodiscard]] QPointF at(double x, double y) const
    {
        return {area.left() + (x - left) / (right - left) * area.width(),
                area.bottom() - (y - bottom) / (top - bottom) * area.height()};
    }
    [[nodiscard]] QPointF chart_at(const QPointF& place) const
    {
        return {left + (place.x() - area.left()) / area.width() * (right - left),
                bottom + (area.bottom() - place.y()) / area.height() * (top - bottom)};
    }
};

struct ChartStyle {
    FigureFont font;
    PlotColors colors;
    double strip = 0.0; ///< height kept free at the top
};

/// Draws a chart into (0, 0) .. page. @return where it stands
ChartFrame draw_chart(FigureCanvas& canvas, const ChartContent& content, const ChartStyle& style,
                      const QSizeF& page);

/// The height at which a map or a picture fills a page of this width; 0 for other charts.
double fitting_chart_height(const ChartContent& content, const ChartStyle& style, double width);

/// The colour of a point or line of a series.
QColor series_color(const ChartContent& content, const ChartSeries& series, std::size_t point,
                    const PlotColors& colors);

} // namespace posiscope::ui
