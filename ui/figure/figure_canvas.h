// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QImage>
#include <QPointF>
#include <QPolygonF>
#include <QRectF>
#include <QString>

namespace posiscope::ui {

/// Family and size of all text of a figure.
struct FigureFont {
    QString family;
    double points = 8.0;
};

/// Which end of a text is at its anchor.
enum class TextAnchor { start, middle, end };

/// One line of text; `at` is on its baseline.
struct FigureText {
    QPointF at;
    QString text;
    TextAnchor anchor = TextAnchor::start;
    double angle = 0.0; ///< degrees, clockwise, about `at`
    bool bold = false;
    QColor color = Qt::black;
    double scale = 1.0; ///< of the figure's size of text
};

/// A line's look; width in points.
struct FigurePen {
    QColor color = Qt::black;
    double width = 0.5;
    bool dashed = false;
};

/// What figures are drawn on. The unit is a point (1/72 inch), the origin the top left corner, y points down. The
/// layout knows nothing else, so every format and the preview show the same figure.
class FigureCanvas {
public:
    virtual ~FigureCanvas() = default;
    virtual void fill(const QRectF& rect, const QColor& color) = 0;
    virtual void frame(const QRectF& rect, const FigurePen& pen) = 0;
    virtual void line(const QPointF& from, const QPointF& to, const FigurePen& pen) = 0;
    virtual void polyline(const QPolygonF& points, const FigurePen& pen) = 0;
    virtual void polygon(const QPolygonF& points, const QColor& fill) = 0;
    /// A picture whose pixels are cells with sharp edges and exact colours.
    virtual void cells(const QRectF& rect, const QImage& image) = 0;
    virtual void text(const FigureText& text) = 0;
};

/// Sizes of text in points, at a precision that does not depend on any screen.
class TextMeasure {
public:
    explicit TextMeasure(const FigureFont& font);
    [[nodiscard]] double width(const QString& text, bool bold = false) const;
    [[nodiscard]] double ascent() const { return m_ascent; }
    [[nodiscard]] double descent() const { return m_descent; }
    [[nodiscard]] double cap_height() const { return m_cap_height; }
    [[nodiscard]] double line_height() const { return m_ascent + m_descent; }

private:
    FigureFont m_font;
    double m_ascent = 0.0;
    double m_descent = 0.0;
    double m_cap_height = 0.0;
};

} // namespace posiscope::ui
