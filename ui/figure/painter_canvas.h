// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFont>

#include "ui/figure/figure_canvas.h"

class QPainter;

namespace posiscope::ui {

/// A font for a painter whose unit is 1 / font_detail points: whole pixels then still are fine steps, and outlines
/// are not fitted to any screen's grid.
inline constexpr double font_detail = 20.0;
QFont figure_qfont(const FigureFont& font, bool bold);

/// Pixels are placed exactly in raster pictures; in vector files a heatmap is one lossless image.
enum class PainterTarget { raster, vector };

/// Draws a figure with a QPainter that has been scaled so that its unit is a point.
class PainterCanvas : public FigureCanvas {
public:
    PainterCanvas(QPainter& painter, const FigureFont& font, PainterTarget target);
    void fill(const QRectF& rect, const QColor& color) override;
    void frame(const QRectF& rect, const FigurePen& pen) override;
    void line(const QPointF& from, const QPointF& to, const FigurePen& pen) override;
    void polyline(const QPolygonF& points, const FigurePen& pen) override;
    void polygon(const QPolygonF& points, const QColor& fill) override;
    void cells(const QRectF& rect, const QImage& image) override;
    void text(const FigureText& text) override;

private:
    QPainter& m_painter;
    FigureFont m_font;
    PainterTarget m_target;
};

} // namespace posiscope::ui
