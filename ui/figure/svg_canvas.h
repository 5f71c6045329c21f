// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QByteArray>
#include <QSizeF>

#include "ui/figure/figure_canvas.h"

namespace posiscope::ui {

/// Largest map that is written as rectangles; above it, one enlarged picture.
inline constexpr int most_svg_cells = 128;

/// Writes a figure as SVG 1.1: text as text, lines as lines, heatmaps up to 128 x 128 as rectangles merged along
/// rows, one path for each colour, with crisp edges (viewers smooth pictures whatever image-rendering says).
class SvgCanvas : public FigureCanvas {
public:
    SvgCanvas(const QSizeF& size_mm, const FigureFont& font, const QString& title,
              const QByteArray& provenance_json);
    void fill(const QRectF& rect, const QColor& color) override;
    void frame(const QRectF& rect, const FigurePen& pen) override;
    void line(const QPointF& from, const QPointF& to, const FigurePen& pen) override;
    void polyline(const QPolygonF& points, const FigurePen& pen) override;
    void polygon(const QPolygonF& points, const QColor& fill) override;
    void cells(const QRectF& rect, const QImage& image) override;
    void text(const FigureText& text) override;

    /// The whole document; nothing may be drawn after it.
    QByteArray finish();

private:
    void cell_paths(const QRectF& rect, const QImage& image);
    void cell_picture(const QRectF& rect, const QImage& image);

    QByteArray m_out;
    double m_font_points;
};

} // namespace posiscope::ui
