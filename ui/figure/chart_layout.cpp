// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/figure/chart_layout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include <QStringList>

#include "ui/plot/ticks.h"

namespace posiscope::ui {
namespace {

constexpr double thin = 0.5;

/// Least and largest finite value, widened; 0 .. 1 where there is none.
std::pair<double, double> spanned(const ChartContent& content, bool horizontal)
{
    double least = std::numeric_limits<double>::infinity(), most = -least;
    for (const ChartSeries& series : content.series)
        for (const double value : horizontal ? series.x : series.y)
            if (std::isfinite(value)) {
                least = std::min(least, value);
                most = std::max(most, value);
            }
    if (!(least <= most)) return {0.0, 1.0};
    if (!horizontal && content.zero_line) {
        least = std::min(least, 0.0);
        most = std::max(most, 0.0);
    }
    double pad = 0.05 * (most - least);
    if (horizontal && !content.is_map) pad = content.integer_x ? 0.5 : 0.0;
    if (!(most > least) && pad == 0.0) pad = std::max(0.1 * std::abs(least), 1e-9);
    return {least - pad, most + pad};
}

void draw_dot(FigureCanvas& canvas, const QPointF& middle, double radius, const QColor& color, bool hollow)
{
    constexpr int corners = 12;
    QPolygonF outline;
    for (int k = 0; k <= corners; ++k) {
        const double angle = 2.0 * M_PI * k / corners;
        outline << middle + radius * QPointF(std::cos(angle), std::sin(angle));
    }
    if (hollow)
        canvas.polyline(outline, {color, 0.8, false});
    else
        canvas.polygon(outline, color);
}

/// Where a label beside a point hides the fewest points; nothing where every place is off the plot or taken.
std::optional<QRectF> label_place(const ChartContent& content, const ChartFrame& frame, const QPointF& at,
                                  const QSizeF& size, double gap, const std::vector<QRectF>& taken)
{
    std::optional<QRectF> best;
    int fewest = 0;
    // From the upper right corner round: of equal places the first.
    constexpr std::array<std::pair<int, int>, 8> sides{
        {{1, -1}, {-1, -1}, {1, 1}, {-1, 1}, {0, -1}, {0, 1}, {1, 0}, {-1, 0}}};
    for (const auto& [x, y] : sides) {
        const double reach = x != 0 && y != 0 ? 0.7 * gap : 1.3 * gap;
        const QPointF corner(x > 0   ? at.x() + reach
                             : x < 0 ? at.x() - reach - size.width()
                                     : at.x() - 0.5 * size.width(),
                             y > 0   ? at.y() + reach
                             : y < 0 ? at.y() - reach - size.height()
                                     : at.y() - 0.5 * size.height());
        const QRectF box(corner, size);
        if (!frame.area.contains(box) || std::any_of(taken.begin(), taken.end(), [&](const QRectF& other) {
                return other.intersects(box);
            }))
            continue;
        const QRectF around = box.adjusted(-0.4 * gap, -0.4 * gap, 0.4 * gap, 0.4 * gap);
        int hidden = 0;
        for (const ChartSeries& series : content.series)
            for (std::size_t k = 0; k < std::min(series.x.size(), series.y.size()); ++k)
                hidden += around.contains(frame.at(series.x[k], series.y[k])) ? 1 : 0;
        if (best && hidden >= fewest) continue;
        best = box;
        fewest = hidden;
        if (fewest == 0) break;
    }
    return best;
}

int fitting(double extent, double each)
{
    return std::clamp(static_cast<int>(extent / each), 2, 13);
}

/// The colour bar's own room at the right.
struct BarRoom {
    std::vector<Tick> marks;
    double label_width = 0.0;
    double width = 0.0; ///< 0: there is no bar
};

constexpr double edge = 2.0;

BarRoom bar_room(const ChartContent& content, const TextMeasure& measure, double em)
{
    BarRoom room;
    if (!content.bar || !content.bar->shown) return room;
    ColorScale scale;
    scale.map = content.bar->map;
    scale.lower = content.bar->lower;
    scale.upper = content.bar->upper;
    room.marks = color_bar_ticks(scale, 6);
    for (const Tick& mark : room.marks)
        room.label_width = std::max(room.label_width, measure.width(mark.label));
    // Gap, bar, tick, gap, label, gap, name.
    room.width = (1.1 + 1.1 + 0.35 + 0.25 + 0.4 + 0.2) * em + room.label_width + measure.line_height();
    return room;
}

struct LegendRow {
    QString text;
    QColor color;
    bool line;
    double x, y;
};

/// Places of the legend above the plot. @return its height
double place_legend(const ChartContent& content, const ChartStyle& style, const TextMeasure& measure,
                    double width, std::vector<LegendRow>& rows)
{
    for (const ChartSeries& series : content.series)
        if (!series.name.isEmpty())
            rows.push_back({series.name, series_color(content, series, 0, style.colors), series.line, 0, 0});
    if (content.white_band)
        rows.push_back(
            {QStringLiteral("white band %1 to %2")
                 .arg(fixed_text(content.white_band->first, 0), fixed_text(content.white_band->last, 0)),
             style.colors.white_band, false, 0, 0});
    if (rows.empty()) return 0.0;
    const double em = style.font.points;
    double x = 0.0, y = 0.0;
    for (LegendRow& row : rows) {
        const double extent = 2.0 * em + measure.width(row.text);
        if (x > 0.0 && x + extent > width) {
            x = 0.0;
            y += 1.1 * measure.line_height();
        }
        row.x = x;
        row.y = y;
        x += extent + 1.2 * em;
    }
    return y + measure.line_height() + 0.4 * em;
}

} // namespace

QColor series_color(const ChartContent& content, const ChartSeries& series, std::size_t point,
                    const PlotColors& colors)
{
    const ColorMapId map = content.bar ? content.bar->map : ColorMapId::viridis;
    switch (series.color) {
    case SeriesColor::main: return colors.curve;
    case SeriesColor::faint: return colors.faint;
    case SeriesColor::distinct:
        return QColor::fromHslF(static_cast<float>(0.92 * series.hue), 0.55F,
                                colors.background.lightnessF() < 0.5F ? 0.62F : 0.45F);
    case SeriesColor::by_value:
        return point < series.values.size()
                   ? QColor(color_map_entry(
                         map,
                         std::clamp(static_cast<int>(std::lround(255.0 * series.values[point])), 0, 255)))
                   : colors.curve;
    }
    return colors.curve;
}

ChartFrame draw_chart(FigureCanvas& canvas, const ChartContent& content, const ChartStyle& style,
                      const QSizeF& page)
{
    const TextMeasure measure(style.font);
    const PlotColors& colors = style.colors;
    const FigurePen pen{colors.text, thin, false};
    const double em = style.font.points, tick = 0.35 * em, gap = 0.25 * em, name_gap = 0.4 * em;
    std::vector<LegendRow> legend;
    const double legend_height = place_legend(content, style, measure, page.width() - 4.0 * em, legend);

    const BarRoom bar = bar_room(content, measure, em);
    const bool numbers = !content.is_map && content.image.isNull();
    ChartFrame frame;
    std::tie(frame.left, frame.right) = content.x_range.value_or(spanned(content, true));
    std::tie(frame.bottom, frame.top) = content.y_range.value_or(spanned(content, false));
    if (!content.image.isNull() && !content.x_range) {
        frame.left = 0.0;
        frame.right = content.image.width();
        frame.bottom = -static_cast<double>(content.image.height());
        frame.top = 0.0;
    }
    const double top = edge + style.strip + legend_height + (numbers ? 0.5 * measure.cap_height() : 0.0);
    const double below =
        numbers ? tick + gap + measure.cap_height() + name_gap + measure.line_height() + edge : edge;
    const double height = std::max(4.0, page.height() - top - below);
    std::vector<Tick> y_marks;
    double before = edge;
    if (numbers) {
        y_marks = value_ticks(frame.bottom, frame.top, fitting(height, 2.0 * measure.line_height()));
        double widest = 0.0;
        for (const Tick& mark : y_marks) widest = std::max(widest, measure.width(mark.label));
        before += measure.line_height() + name_gap + widest + gap + tick;
    }
    frame.area = QRectF(
        before, top, std::max(4.0, page.width() - before - bar.width - edge - (numbers ? em : 0.0)), height);
    if (content.is_map || !content.image.isNull()) {
        // The unit that fits both ways, the rest shared by both sides.
        const double wide = (frame.right - frame.left) / frame.area.width(),
                     high = (frame.top - frame.bottom) / frame.area.height();
        if (!content.image.isNull()) {
            const double unit = std::max(wide, high);
            const QSizeF size((frame.right - frame.left) / unit, (frame.top - frame.bottom) / unit);
            frame.area = QRectF(frame.area.center() - QPointF(0.5 * size.width(), 0.5 * size.height()), size);
        } else if (wide < high) {
            const double more = 0.5 * (high * frame.area.width() - (frame.right - frame.left));
            frame.left -= more;
            frame.right += more;
        } else {
            const double more = 0.5 * (wide * frame.area.height() - (frame.top - frame.bottom));
            frame.bottom -= more;
            frame.top += more;
        }
    }
    const QRectF& area = frame.area;

    if (content.white_band) {
        const double from =
            std::clamp(frame.at(content.white_band->first - 0.5, 0).x(), area.left(), area.right());
        const double to =
            std::clamp(frame.at(content.white_band->last + 0.5, 0).x(), area.left(), area.right());
        if (to > from) canvas.fill(QRectF(from, area.top(), to - from, area.height()), colors.white_band);
    }
    for (const double x : content.edges)
        if (x > frame.left && x < frame.right)
            canvas.line(frame.at(x, frame.bottom), frame.at(x, frame.top), {colors.faint, thin, false});
    if (content.zero_line && frame.bottom < 0.0 && frame.top > 0.0)
        canvas.line(frame.at(frame.left, 0.0), frame.at(frame.right, 0.0), {colors.frame, thin, true});
    if (!content.image.isNull()) canvas.cells(area, content.image);

    const auto inside = [&](double x, double y) {
        return x >= frame.left && x <= frame.right && y >= frame.bottom && y <= frame.top;
    };
    for (const ChartSeries& series : content.series) {
        const std::size_t count = std::min(series.x.size(), series.y.size());
        if (series.line) {
            QPolygonF piece;
            const auto flush = [&] {
                if (piece.size() > 1)
                    // Between points that have a colour of their own, the line only joins.
                    canvas.polyline(piece, {series.color == SeriesColor::by_value && series.points
                                                ? colors.faint
                                                : series_color(content, series, 0, colors),
                                            series.width, false});
                piece.clear();
            };
            for (std::size_t k = 0; k < count; ++k) {
                // Lines end at the last point inside: a canvas knows no clipping.
                if (!std::isfinite(series.x[k]) || !std::isfinite(series.y[k]) ||
                    !inside(series.x[k], series.y[k])) {
                    flush();
                    continue;
                }
                piece << frame.at(series.x[k], series.y[k]);
            }
            flush();
        }
        if (!series.points) continue;
        const double radius = std::clamp(0.012 * std::min(area.width(), area.height()), 1.2, 0.42 * em);
        for (std::size_t k = 0; k < count; ++k)
            if (std::isfinite(series.x[k]) && std::isfinite(series.y[k]) && inside(series.x[k], series.y[k]))
                draw_dot(canvas, frame.at(series.x[k], series.y[k]), radius,
                         series_color(content, series, k, colors), series.hollow);
    }
    std::vector<QRectF> taken;
    for (const ChartLabel& label : content.labels) {
        if (!inside(label.x, label.y)) continue;
        const QSizeF size(measure.width(label.text), measure.cap_height());
        if (const auto box = label_place(content, frame, frame.at(label.x, label.y), size, 0.5 * em, taken)) {
            taken.push_back(box->adjusted(-1, -1, 1, 1));
            canvas.text({box->bottomLeft(), label.text, TextAnchor::start, 0.0, false, colors.text});
        }
    }

    for (const ChartLabel& note : content.notes)
        canvas.text({frame.at(note.x, note.y) + QPointF(0.6 * em, 0.5 * measure.cap_height()), note.text,
                     TextAnchor::start, 0.0, false, colors.text});

    if (content.is_map)
        canvas.frame(area, {colors.faint, thin, false});
    else if (!content.image.isNull() && !content.image.hasAlphaChannel())
        canvas.frame(area, pen);
    if (numbers) {
        canvas.line(area.bottomLeft(), area.bottomRight(), pen);
        canvas.line(area.topLeft(), area.bottomLeft(), pen);
        const double each = std::max(measure.width(fixed_text(std::floor(frame.left), 0)),
                                     measure.width(fixed_text(std::ceil(frame.right), 0))) +
                            1.1 * em;
        const auto marks =
            content.integer_x
                ? integer_ticks(static_cast<int>(std::ceil(frame.left)),
                                static_cast<int>(std::floor(frame.right)), fitting(area.width(), each))
                : value_ticks(frame.left, frame.right, fitting(area.width(), 4.0 * em));
        for (const Tick& mark : marks) {
            const double x = frame.at(mark.at, 0.0).x();
            canvas.line({x, area.bottom()}, {x, area.bottom() + tick}, pen);
            canvas.text({{x, area.bottom() + tick + gap + measure.cap_height()},
                         mark.label,
                         TextAnchor::middle,
                         0.0,
                         false,
                         colors.text});
        }
        for (const Tick& mark : y_marks) {
            const double y = frame.at(0.0, mark.at).y();
            canvas.line({area.left() - tick, y}, {area.left(), y}, pen);
            canvas.text({{area.left() - tick - gap, y + 0.5 * measure.cap_height()},
                         mark.label,
                         TextAnchor::end,
                         0.0,
                         false,
                         colors.text});
        }
        canvas.text({{area.center().x(),
                      area.bottom() + tick + gap + measure.cap_height() + name_gap + measure.ascent()},
                     content.x_label,
                     TextAnchor::middle,
                     0.0,
                     false,
                     colors.text});
        canvas.text({{edge + measure.ascent(), area.center().y()},
                     content.y_label,
                     TextAnchor::middle,
                     -90.0,
                     false,
                     colors.text});
    }
    if (content.bar && content.bar->shown) {
        const double side = std::min(area.height() - measure.cap_height(), 14.0 * em);
        const QRectF place(area.right() + 1.1 * em, area.center().y() - 0.5 * side, 1.1 * em, side);
        canvas.cells(place, color_bar_image(content.bar->map));
        canvas.frame(place, pen);
        for (const Tick& mark : bar.marks) {
            const double y = place.bottom() - mark.at * place.height();
            canvas.line({place.right(), y}, {place.right() + tick, y}, pen);
            canvas.text({{place.right() + tick + gap, y + 0.5 * measure.cap_height()},
                         mark.label,
                         TextAnchor::start,
                         0.0,
                         false,
                         colors.text});
        }
        canvas.text({{place.right() + tick + gap + bar.label_width + name_gap + measure.descent(),
                      place.center().y()},
                     content.bar->label,
                     TextAnchor::middle,
                     90.0,
                     false,
                     colors.text});
    }
    for (const LegendRow& row : legend) {
        const QPointF at(2.0 * em + row.x, edge + style.strip + row.y);
        const double middle = at.y() + measure.ascent() - 0.5 * measure.cap_height();
        if (row.line)
            canvas.line({at.x(), middle}, {at.x() + 1.6 * em, middle}, {row.color, 1.2, false});
        else
            canvas.fill(QRectF(at.x(), middle - 0.4 * em, 1.6 * em, 0.8 * em), row.color);
        canvas.text({{at.x() + 2.0 * em, at.y() + measure.ascent()},
                     row.text,
                     TextAnchor::start,
                     0.0,
                     false,
                     colors.text});
    }
    return frame;
}

double fitting_chart_height(const ChartContent& content, const ChartStyle& style, double width)
{
    if (!content.is_map && content.image.isNull()) return 0.0;
    const TextMeasure measure(style.font);
    const double room =
        std::max(4.0, width - 2.0 * edge - bar_room(content, measure, style.font.points).width);
    double aspect = 1.0;
    if (!content.image.isNull()) {
        aspect = static_cast<double>(content.image.height()) / content.image.width();
    } else {
        const auto [left, right] = content.x_range.value_or(spanned(content, true));
        const auto [bottom, top] = content.y_range.value_or(spanned(content, false));
        // A thread that lies flat (or stands) still gets a frame to be read in.
        aspect = std::clamp((top - bottom) / (right - left), 0.45, 1.25);
    }
    return room * std::min(aspect, 2.0) + 2.0 * edge + style.strip;
}

} // namespace posiscope::ui
