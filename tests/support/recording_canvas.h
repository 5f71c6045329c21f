// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "ui/figure/figure_canvas.h"

namespace posiscope::test {

/// Remembers what a figure draws, in points.
class RecordingCanvas : public ui::FigureCanvas {
public:
    struct Cells {
        QRectF rect;
        QImage image;
    };
    std::vector<Cells> pictures;
    std::vector<ui::FigureText> texts;
    std::vector<QPolygonF> polygons;
    std::vector<QPolygonF> lines;
    std::vector<std::pair<QRectF, QColor>> fills;

    void fill(const QRectF& rect, const QColor& color) override { fills.emplace_back(rect, color); }
    void frame(const QRectF& rect, const ui::FigurePen&) override { lines.push_back(QPolygonF(rect)); }
    void line(const QPointF& from, const QPointF& to, const ui::FigurePen&) override
    {
        lines.push_back(QPolygonF({from, to}));
    }
    void polyline(const QPolygonF& points, const ui::FigurePen&) override { lines.push_back(points); }
    void polygon(const QPolygonF& points, const QColor&) override { polygons.push_back(points); }
    void cells(const QRectF& rect, const QImage& image) override { pictures.push_back({rect, image}); }
    void text(const ui::FigureText& text) override { texts.push_back(text); }

    [[nodiscard]] bool has_text(const QString& text) const
    {
        for (const ui::FigureText& one : texts)
            if (one.text == text) return true;
        return false;
    }
};

} // namespace posiscope::test
