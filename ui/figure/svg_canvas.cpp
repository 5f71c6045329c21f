// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/figure/svg_canvas.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <QBuffer>
#include <QColor>
#include <QHash>

#include "core/base/version.h"

namespace posiscope::ui {
namespace {

/// Pixels across that an enlarged picture has at least.
constexpr int least_picture_side = 2048;

QByteArray number(double value)
{
    QByteArray text = QByteArray::number(value, 'f', 3);
    while (text.endsWith('0')) text.chop(1);
    if (text.endsWith('.')) text.chop(1);
    return text == "-0" ? QByteArray("0") : text;
}

QByteArray hex(const QColor& color)
{
    return color.name(QColor::HexRgb).toLatin1();
}

/// Text for element content and attributes; characters that XML 1.0 forbids are left out.
QByteArray escaped(const QString& text)
{
    QString allowed;
    for (const QChar c : text)
        if (c.unicode() >= 0x20 || c == QLatin1Char('\t') || c == QLatin1Char('\n')) allowed += c;
    return allowed.toHtmlEscaped().toUtf8();
}

QByteArray stroke(const FigurePen& pen)
{
    QByteArray out =
        " fill=\"none\" stroke=\"" + hex(pen.color) + "\" stroke-width=\"" + number(pen.width) + '"';
    if (pen.dashed)
        out += " stroke-dasharray=\"" + number(4.0 * pen.width) + ' ' + number(3.0 * pen.width) + '"';
    return out;
}

QByteArray point_list(const QPolygonF& points)
{
    QByteArray out;
    for (const QPointF& point : points) {
        if (!out.isEmpty()) out += ' ';
        out += number(point.x()) + ',' + number(point.y());
    }
    return out;
}

/// The same picture with a palette where it has few enough colours: a third of the size.
QImage with_palette(const QImage& image)
{
    QHash<QRgb, int> entries;
    QList<QRgb> table;
    QImage out(image.size(), QImage::Format_Indexed8);
    for (int y = 0; y < image.height(); ++y) {
        uchar* line = out.scanLine(y);
        for (int x = 0; x < image.width(); ++x) {
            const QRgb color = image.pixel(x, y);
            auto entry = entries.find(color);
            if (entry == entries.end()) {
                if (table.size() == 256) return image;
                entry = entries.insert(color, static_cast<int>(table.size()));
                table.append(color);
            }
            line[x] = static_cast<uchar>(entry.value());
        }
    }
    out.setColorTable(table);
    return out;
}

} // namespace

SvgCanvas::SvgCanvas(const QSizeF& size_mm, const FigureFont& font, const QString& title,
                     const QByteArray& provenance_json)
    : m_font_points(font.points)
{
    const QByteArray width = number(size_mm.width());
    const QByteArray height = number(size_mm.height());
    const QByteArray box =
        number(size_mm.width() * 72.0 / 25.4) + ' ' + number(size_mm.height() * 72.0 / 25.4);
    m_out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" "
            "version=\"1.1\" "
            "width=\"" +
            width + "mm\" height=\"" + height + "mm\" viewBox=\"0 0 " + box + "\">\n";
    m_out += "<title>" + escaped(title) + "</title>\n";
    m_out += "<desc>Made with Posiscope " + QByteArray(core::version) + "</desc>\n";
    m_out += "<metadata id=\"posiscope-provenance\">" + escaped(QString::fromUtf8(provenance_json)) +
             "</metadata>\n";
    // A single quote cannot be part of a quoted family name here.
    QString family = font.family;
    family.remove(QLatin1Char('\''));
    m_out += "<g font-family=\"'" + escaped(family) + "', Helvetica, Arial, sans-serif\" font-size=\"" +
             number(font.points) + "\">\n";
}

void SvgCanvas::fill(const QRectF& rect, const QColor& color)
{
    m_out += "<rect x=\"" + number(rect.x()) + "\" y=\"" + number(rect.y()) + "\" width=\"" +
             number(rect.width()) + "\" height=\"" + number(rect.height()) + "\" fill=\"" + hex(color) +
             "\"/>\n";
}

void SvgCanvas::frame(const QRectF& rect, const FigurePen& pen)
{
    m_out += "<rect x=\"" + number(rect.x()) + "\" y=\"" + number(rect.y()) + "\" width=\"" +
             number(rect.width()) + "\" height=\"" + number(rect.height()) + '"' + stroke(pen) + "/>\n";
}

void SvgCanvas::line(const QPointF& from, const QPointF& to, const FigurePen& pen)
{
    m_out += "<line x1=\"" + number(from.x()) + "\" y1=\"" + number(from.y()) + "\" x2=\"" + number(to.x()) +
             "\" y2=\"" + number(to.y()) + '"' + stroke(pen) + "/>\n";
}

void SvgCanvas::polyline(const QPolygonF& points, const FigurePen& pen)
{
    m_out +=
        "<polyline points=\"" + point_list(points) + "\" stroke-linejoin=\"round\"" + stroke(pen) + "/>\n";
}

void SvgCanvas::polygon(const QPolygonF& points, const QColor& fill)
{
    m_out += "<polygon points=\"" + point_list(points) + "\" fill=\"" + hex(fill) + "\"/>\n";
}

void SvgCanvas::cells(const QRectF& rect, const QImage& image)
{
    // Of a colour bar only the length counts.
    const bool small = image.width() <= most_svg_cells && image.height() <= most_svg_cells;
    if (small || image.width() == 1 || image.height() == 1)
        cell_paths(rect, image);
    else
        cell_picture(rect, image);
}

void SvgCanvas::cell_paths(const QRectF& rect, const QImage& image)
{
    // Ordered by colour, so that the same figure gives the same file.
    std::map<QRgb, QByteArray> runs;
    for (int y = 0; y < image.height(); ++y) {
        for (int x = 0; x < image.width();) {
            const QRgb color = image.pixel(x, y);
            int end = x + 1;
            while (end < image.width() && image.pixel(end, y) == color) ++end;
            if (qAlpha(color) == 0) { // a gap between pictures
                x = end;
                continue;
            }
            runs[color] += 'M' + QByteArray::number(x) + ' ' + QByteArray::number(y) + 'h' +
                           QByteArray::number(end - x) + "v1h-" + QByteArray::number(end - x) + 'z';
            x = end;
        }
    }
    // Cells are units of their own coordinates: corners are whole numbers, and no rounding opens a seam.
    m_out += "<g class=\"cells\" shape-rendering=\"crispEdges\" transform=\"translate(" + number(rect.x()) +
             ' ' + number(rect.y()) + ") scale(" + QByteArray::number(rect.width() / image.width(), 'g', 12) +
             ' ' + QByteArray::number(rect.height() / image.height(), 'g', 12) + ")\">\n";
    for (const auto& [color, path] : runs)
        m_out += "<path fill=\"" + hex(QColor(color)) + "\" d=\"" + path + "\"/>\n";
    m_out += "</g>\n";
}

void SvgCanvas::cell_picture(const QRectF& rect, const QImage& image)
{
    const int side = std::max(image.width(), image.height());
    const int factor = std::max(2, (least_picture_side + side - 1) / side);
    // Nearest neighbours of a whole factor: every cell is a block of equal pixels.
    const QImage enlarged =
        with_palette(image).scaled(image.size() * factor, Qt::IgnoreAspectRatio, Qt::FastTransformation);
    QByteArray png;
    QBuffer buffer(&png);
    buffer.open(QIODevice::WriteOnly);
    enlarged.save(&buffer, "PNG");
    m_out += "<image x=\"" + number(rect.x()) + "\" y=\"" + number(rect.y()) + "\" width=\"" +
             number(rect.width()) + "\" height=\"" + number(rect.height()) +
             "\" preserveAspectRatio=\"none\" style=\"image-rendering:pixelated\" "
             "xlink:href=\"data:image/png;base64," +
             png.toBase64() + "\"/>\n";
}

void SvgCanvas::text(const FigureText& text)
{
    m_out += "<text x=\"" + number(text.at.x()) + "\" y=\"" + number(text.at.y()) + '"';
    if (text.anchor == TextAnchor::middle) m_out += " text-anchor=\"middle\"";
    if (text.anchor == TextAnchor::end) m_out += " text-anchor=\"end\"";
    if (text.bold) m_out += " font-weight=\"bold\"";
    if (text.scale != 1.0) m_out += " font-size=\"" + number(text.scale * m_font_points) + '"';
    if (text.angle != 0.0)
        m_out += " transform=\"rotate(" + number(text.angle) + ' ' + number(text.at.x()) + ' ' +
                 number(text.at.y()) + ")\"";
    m_out += " fill=\"" + hex(text.color) + "\">" + escaped(text.text) + "</text>\n";
}

QByteArray SvgCanvas::finish()
{
    m_out += "</g>\n</svg>\n";
    return m_out;
}

} // namespace posiscope::ui
