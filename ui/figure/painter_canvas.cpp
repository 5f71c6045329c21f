// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/figure/painter_canvas.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <QFontMetricsF>
#include <QPainter>
#include <QPen>

namespace posiscope::ui {
namespace {

QPen pen_of(const FigurePen& pen)
{
    QPen out(pen.color, pen.width, Qt::SolidLine, Qt::FlatCap, Qt::MiterJoin);
    if (pen.dashed) out.setDashPattern({4.0, 3.0});
    return out;
}

/// The picture at device size: each pixel is the cell under its middle; where there are more cells than pixels, the
/// average of the cells, since leaving rows out might lose the first key.
QImage at_device_size(const QImage& image, const QSize& size)
{
    if (size.width() < image.width() || size.height() < image.height())
        return image.scaled(size, Qt::IgnoreAspectRatio, Qt::SmoothTransformation);
    QImage out(size, image.format());
    std::vector<int> column(static_cast<std::size_t>(size.width()));
    for (int x = 0; x < size.width(); ++x)
        column[static_cast<std::size_t>(x)] = static_cast<int>((x + 0.5) * image.width() / size.width());
    for (int y = 0; y < size.height(); ++y) {
        const auto* from = reinterpret_cast<const QRgb*>(
            image.constScanLine(static_cast<int>((y + 0.5) * image.height() / size.height())));
        auto* to = reinterpret_cast<QRgb*>(out.scanLine(y));
        for (int x = 0; x < size.width(); ++x) to[x] = from[column[static_cast<std::size_t>(x)]];
    }
    return out;
}

} // namespace

QFont figure_qfont(const FigureFont& font, bool bold)
{
    QFont out(font.family);
    out.setPixelSize(std::max(1, static_cast<int>(std::lround(font.points * font_detail))));
    out.setBold(bold);
    out.setHintingPreference(QFont::PreferNoHinting);
    out.setStyleStrategy(QFont::PreferAntialias);
    out.setKerning(true);
    return out;
}

TextMeasure::TextMeasure(const FigureFont& font) : m_font(font)
{
    const QFontMetricsF metrics(figure_qfont(font, false));
    m_ascent = metrics.ascent() / font_detail;
    m_descent = metrics.descent() / font_detail;
    m_cap_height = metrics.capHeight() / font_detail;
}

double TextMeasure::width(const QString& text, bool bold) const
{
    return QFontMetricsF(figure_qfont(m_font, bold)).horizontalAdvance(text) / font_detail;
}

PainterCanvas::PainterCanvas(QPainter& painter, const FigureFont& font, PainterTarget target)
    : m_painter(painter), m_font(font), m_target(target)
{
    m_painter.setRenderHint(QPainter::Antialiasing, true);
    m_painter.setRenderHint(QPainter::TextAntialiasing, true);
    m_painter.setRenderHint(QPainter::SmoothPixmapTransform, false);
    // Without it Qt's PDF writer stores colour pictures as JPEG.
    m_painter.setRenderHint(QPainter::LosslessImageRendering, true);
}

void PainterCanvas::fill(const QRectF& rect, const QColor& color)
{
    m_painter.fillRect(rect, color);
}

void PainterCanvas::frame(const QRectF& rect, const FigurePen& pen)
{
    m_painter.setPen(pen_of(pen));
    m_painter.setBrush(Qt::NoBrush);
    m_painter.drawRect(rect);
}

void PainterCanvas::line(const QPointF& from, const QPointF& to, const FigurePen& pen)
{
    m_painter.setPen(pen_of(pen));
    m_painter.drawLine(from, to);
}

void PainterCanvas::polyline(const QPolygonF& points, const FigurePen& pen)
{
    QPen line_pen = pen_of(pen);
    line_pen.setJoinStyle(Qt::RoundJoin);
    m_painter.setPen(line_pen);
    m_painter.drawPolyline(points);
}

void PainterCanvas::polygon(const QPolygonF& points, const QColor& fill)
{
    m_painter.setPen(Qt::NoPen);
    m_painter.setBrush(fill);
    m_painter.drawPolygon(points);
}

void PainterCanvas::cells(const QRectF& rect, const QImage& image)
{
    if (m_target == PainterTarget::vector) {
        m_painter.drawImage(rect, image, QRectF(image.rect()));
        return;
    }
    const QRectF device = m_painter.transform().mapRect(rect);
    const QPoint corner(static_cast<int>(std::lround(device.left())),
                        static_cast<int>(std::lround(device.top())));
    const QPoint end(static_cast<int>(std::lround(device.right())),
                     static_cast<int>(std::lround(device.bottom())));
    const QSize size(std::max(1, end.x() - corner.x()), std::max(1, end.y() - corner.y()));
    m_painter.save();
    m_painter.resetTransform();
    // Through transparent gaps between pictures the page shows.
    const QImage pixels = image.convertToFormat(image.hasAlphaChannel() ? QImage::Format_ARGB32_Premultiplied
                                                                        : QImage::Format_RGB32);
    m_painter.drawImage(corner, at_device_size(pixels, size));
    m_painter.restore();
}

void PainterCanvas::text(const FigureText& text)
{
    const QFont font = figure_qfont(m_font, text.bold);
    const double width = QFontMetricsF(font).horizontalAdvance(text.text);
    const double share = text.anchor == TextAnchor::start    ? 0.0
                         : text.anchor == TextAnchor::middle ? 0.5
                                                             : 1.0;
    m_painter.save();
    m_painter.translate(text.at);
    m_painter.rotate(text.angle);
    m_painter.scale(text.scale / font_detail, text.scale / font_detail);
    m_painter.setFont(font);
    m_painter.setPen(text.color);
    m_painter.drawText(QPointF(-share * width, 0.0), text.text);
    m_painter.restore();
}

} // namespace posiscope::ui
