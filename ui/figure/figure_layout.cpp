// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/figure/figure_layout.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include <QCoreApplication>
#include <QStringList>

#include "ui/figure/chart_layout.h"
#include "ui/figure/table_layout.h"
#include "ui/plot/plot_colors.h"
#include "ui/plot/ticks.h"

namespace posiscope::ui {
namespace {

constexpr double points_per_mm = 72.0 / 25.4;
constexpr double line_width = 0.5;
constexpr double curve_width = 1.0;

QString tr_text(const char* text)
{
    return QCoreApplication::translate("posiscope::ui::Figure", text);
}

/// Distances in points, all in proportion to the font.
struct Spaces {
    explicit Spaces(double em)
        : tick(0.35 * em), tick_label(0.25 * em), name(0.4 * em), gap(1.1 * em), bar(1.1 * em),
          triangle(0.9 * em)
    {
    }
    double edge = 1.0; ///< around everything: half a line and rounding
    double tick;
    double tick_label;
    double name;
    double gap;
    double bar;
    double triangle;
};

double widest(const std::vector<Tick>& ticks, const TextMeasure& measure)
{
    double width = 0.0;
    for (const Tick& tick : ticks) width = std::max(width, measure.width(tick.label));
    return width;
}

QStringList label_lines(const QString& label, double width, const TextMeasure& measure)
{
    return wrapped_label(label, width, [&](const QString& line) { return measure.width(line); })
        .split(QLatin1Char('\n'));
}

/// Height of the strip above the plot for title and letter; 0 without them.
double strip_height(const FigureSpec& spec, const FigureOptions& options, const TextMeasure& measure)
{
    const bool any = !options.letter.isEmpty() || (options.title && !spec.title.isEmpty());
    return any ? 1.35 * measure.line_height() : 0.0;
}

/// Cuts a text that is wider than `width`, with an ellipsis at the end.
QString fitted(QString text, double width, const TextMeasure& measure)
{
    if (measure.width(text) <= width) return text;
    while (!text.isEmpty() && measure.width(text + QChar(0x2026)) > width) text.chop(1);
    return text + QChar(0x2026);
}

void draw_strip(FigureCanvas& canvas, const FigureSpec& spec, const FigureOptions& options,
                const TextMeasure& measure, double left, double right, double page_width)
{
    const double baseline = 1.0 + measure.ascent();
    double title_left = left;
    if (!options.letter.isEmpty()) {
        const QString letter = QLatin1Char('(') + options.letter + QLatin1Char(')');
        canvas.text({{1.0, baseline}, letter, TextAnchor::start, 0.0, true, Qt::black});
        title_left =
            std::max(title_left, 1.0 + measure.width(letter, true) + measure.width(QStringLiteral("n")));
    }
    if (!options.title || spec.title.isEmpty()) return;
    // Over the plot's middle where it fits there, else from the left, else cut.
    const double width = measure.width(spec.title);
    const double middle = 0.5 * (left + right);
    if (middle - 0.5 * width >= title_left && middle + 0.5 * width <= page_width - 1.0) {
        canvas.text({{middle, baseline}, spec.title, TextAnchor::middle, 0.0, false, Qt::black});
    } else {
        if (title_left + width > page_width - 1.0 && options.letter.isEmpty()) title_left = 1.0;
        const QString text = fitted(spec.title, page_width - 1.0 - title_left, measure);
        canvas.text({{title_left, baseline}, text, TextAnchor::start, 0.0, false, Qt::black});
    }
}

/// A name along a vertical axis, read from below (-90) or from above (90), its first line nearest the axis at the
/// right side and farthest at the left.
void draw_vertical_name(FigureCanvas& canvas, const QStringList& lines, double x, double middle, double angle,
                        const TextMeasure& measure)
{
    // Both read from the side of the first line to the last: at -90 lines go to the right, at 90 to the left.
    const auto count = static_cast<double>(lines.size());
    for (qsizetype n = 0; n < lines.size(); ++n) {
        const double step = static_cast<double>(n) * measure.line_height();
        const double baseline = angle < 0.0 ? x + measure.ascent() + step
                                            : x + count * measure.line_height() - measure.ascent() - step;
        canvas.text({{baseline, middle}, lines[n], TextAnchor::middle, angle, false, Qt::black});
    }
}

/// Where a heatmap figure's parts stand, in points.
struct HeatmapFrame {
    int first = 0;
    int last = -1;
    double left = 0.0; ///< widths and heights around the square
    double right = 0.0;
    double top = 0.0;
    double bottom = 0.0;
    std::vector<Tick> bar_ticks;
    QStringList bar_name;

    [[nodiscard]] int count() const { return last - first + 1; }
};

double bar_height(const ColorScale& scale, double side, const Spaces& spaces, const TextMeasure& measure)
{
    double height = side;
    if (scale.has_missing) height -= measure.cap_height() + 1.2 * spaces.gap;
    if (scale.upper_clipped) height -= spaces.triangle;
    if (scale.lower_clipped) height -= spaces.triangle;
    return std::max(height, 4.0);
}

int fitting_ticks(double extent, double each)
{
    return std::clamp(static_cast<int>(extent / each), 2, 13);
}

HeatmapFrame heatmap_frame(const FigureSpec& spec, const HeatmapContent& content,
                           const FigureOptions& options, const TextMeasure& measure, double side)
{
    const Spaces spaces(options.font_pt);
    const ColorScale scale = figure_color_scale(content, options);
    HeatmapFrame frame;
    frame.first = static_cast<int>(content.map.first_position);
    frame.last = frame.first + static_cast<int>(content.map.length) - 1;
    if (content.last >= content.first) {
        frame.first = std::max(frame.first, content.first);
        frame.last = std::min(frame.last, content.last);
    }
    const int shift = content.axes.shift;
    const double position_width = std::max(measure.width(fixed_text(frame.first + shift, 0)),
                                           measure.width(fixed_text(frame.last + shift, 0)));
    frame.left =
        spaces.edge + measure.line_height() + spaces.name + position_width + spaces.tick_label + spaces.tick;
    frame.bottom = spaces.tick + spaces.tick_label + measure.cap_height() + spaces.name +
                   measure.line_height() + spaces.edge;
    frame.top = spaces.edge + std::max(strip_height(spec, options, measure), 0.5 * measure.cap_height());
    const double height = bar_height(scale, side, spaces, measure);
    frame.bar_ticks = color_bar_ticks(scale, std::min(8, fitting_ticks(height, 2.2 * measure.line_height())));
    frame.bar_name = label_lines(content.quantity_label, std::max(side, 20.0), measure);
    double beside_bar = spaces.tick + spaces.tick_label + widest(frame.bar_ticks, measure);
    if (scale.has_missing)
        beside_bar =
            std::max(beside_bar, spaces.tick + spaces.tick_label + measure.width(tr_text("no value")));
    frame.right = spaces.gap + spaces.bar + beside_bar + spaces.name +
                  static_cast<double>(frame.bar_name.size()) * measure.line_height() + spaces.edge;
    return frame;
}

/// The side of the square and the frame around it: each depends on the other, and settles in a few rounds.
double settled_side(const FigureSpec& spec, const HeatmapContent& content, const FigureOptions& options,
                    const TextMeasure& measure, double page_width, double page_height, HeatmapFrame& frame)
{
    double side = page_width;
    for (int round = 0; round < 4; ++round) {
        frame = heatmap_frame(spec, content, options, measure, side);
        double next = page_width - frame.left - frame.right;
        if (page_height > 0.0) next = std::min(next, page_height - frame.top - frame.bottom);
        side = std::max(next, 4.0);
    }
    return side;
}

void draw_color_bar(FigureCanvas& canvas, const ColorScale& scale, const HeatmapFrame& frame,
                    const QRectF& square, const TextMeasure& measure, const Spaces& spaces)
{
    const PlotColors colors = page_colors();
    const FigurePen pen{colors.text, line_width, false};
    const double x = square.right() + spaces.gap;
    const double y = square.top() + (scale.upper_clipped ? spaces.triangle : 0.0);
    const QRectF bar(x, y, spaces.bar, bar_height(scale, square.height(), spaces, measure));
    const QPointF tip_above(bar.center().x(), bar.top() - spaces.triangle);
    const QPointF tip_below(bar.center().x(), bar.bottom() + spaces.triangle);
    // The triangles reach under the bar, so that no viewer shows a seam.
    const QPointF under(0.0, 1.0);
    if (scale.upper_clipped)
        canvas.polygon(
            {bar.topLeft() + under, bar.topLeft(), tip_above, bar.topRight(), bar.topRight() + under},
            QColor(color_map_entry(scale.map, 255)));
    if (scale.lower_clipped)
        canvas.polygon({bar.bottomLeft() - under, bar.bottomLeft(), tip_below, bar.bottomRight(),
                        bar.bottomRight() - under},
                       QColor(color_map_entry(scale.map, 0)));
    canvas.cells(bar, color_bar_image(scale.map));
    QPolygonF outline{bar.topLeft()};
    if (scale.upper_clipped) outline << tip_above;
    outline << bar.topRight() << bar.bottomRight();
    if (scale.lower_clipped) outline << tip_below;
    outline << bar.bottomLeft() << bar.topLeft();
    canvas.polyline(outline, pen);

    for (const Tick& tick : frame.bar_ticks) {
        const double at = bar.bottom() - tick.at * bar.height();
        canvas.line({bar.right(), at}, {bar.right() + spaces.tick, at}, pen);
        canvas.text({{bar.right() + spaces.tick + spaces.tick_label, at + 0.5 * measure.cap_height()},
                     tick.label,
                     TextAnchor::start,
                     0.0,
                     false,
                     colors.text});
    }
    double beside = spaces.tick + spaces.tick_label + widest(frame.bar_ticks, measure);
    if (scale.has_missing) {
        const double size = 1.3 * measure.cap_height();
        const QRectF swatch(bar.left(), square.bottom() - size, spaces.bar, size);
        canvas.fill(swatch, scale.missing);
        canvas.frame(swatch, pen);
        canvas.text({{bar.right() + spaces.tick + spaces.tick_label,
                      swatch.center().y() + 0.5 * measure.cap_height()},
                     tr_text("no value"),
                     TextAnchor::start,
                     0.0,
                     false,
                     colors.text});
    }
    draw_vertical_name(canvas, frame.bar_name, bar.right() + beside + spaces.name, bar.center().y(), 90.0,
                       measure);
}

void draw_heatmap_figure(FigureCanvas& canvas, const FigureSpec& spec, const HeatmapContent& content,
                         const FigureOptions& options, const QSizeF& page)
{
    const TextMeasure measure(figure_font(options));
    const Spaces spaces(options.font_pt);
    const PlotColors colors = page_colors();
    const FigurePen pen{colors.text, line_width, false};
    const ColorScale scale = figure_color_scale(content, options);
    HeatmapFrame frame;
    const double side = settled_side(spec, content, options, measure, page.width(), page.height(), frame);
    const double x = frame.left + 0.5 * (page.width() - frame.left - side - frame.right);
    const double y = frame.top + 0.5 * (page.height() - frame.top - side - frame.bottom);
    const QRectF square(x, y, side, side);

    canvas.cells(square, figure_cells(content, options));
    canvas.frame(square, pen);
    const auto at_position = [&](double position) {
        return (position - frame.first + 0.5) / frame.count() * side;
    };
    const int shift = content.axes.shift;
    const double position_width = std::max(measure.width(fixed_text(frame.first + shift, 0)),
                                           measure.width(fixed_text(frame.last + shift, 0)));
    const std::vector<Tick> position_marks = position_ticks(
        frame.first, frame.last, shift, fitting_ticks(side, position_width + 1.1 * options.font_pt));
    for (const Tick& tick : position_marks) {
        const double at = square.left() + at_position(tick.at);
        canvas.line({at, square.bottom()}, {at, square.bottom() + spaces.tick}, pen);
        canvas.text({{at, square.bottom() + spaces.tick + spaces.tick_label + measure.cap_height()},
                     tick.label,
                     TextAnchor::middle,
                     0.0,
                     false,
                     colors.text});
    }
    for (const Tick& tick : position_marks) {
        const double at = square.top() + at_position(tick.at);
        canvas.line({square.left() - spaces.tick, at}, {square.left(), at}, pen);
        canvas.text({{square.left() - spaces.tick - spaces.tick_label, at + 0.5 * measure.cap_height()},
                     tick.label,
                     TextAnchor::end,
                     0.0,
                     false,
                     colors.text});
    }
    const double name_baseline = square.bottom() + spaces.tick + spaces.tick_label + measure.cap_height() +
                                 spaces.name + measure.ascent();
    canvas.text({{square.center().x(), name_baseline},
                 content.axes.columns.isEmpty() ? tr_text("key position") : content.axes.columns,
                 TextAnchor::middle,
                 0.0,
                 false,
                 colors.text});
    const double name_x = square.left() - frame.left + spaces.edge;
    draw_vertical_name(canvas, {content.axes.rows.isEmpty() ? tr_text("query position") : content.axes.rows},
                       name_x, square.center().y(), -90.0, measure);
    draw_color_bar(canvas, scale, frame, square, measure, spaces);
    draw_strip(canvas, spec, options, measure, square.left(), square.right(), page.width());
}

/// One entry of the legend above a profile.
struct LegendEntry {
    QString text;
    QColor color;
    bool line = false;
};

std::vector<LegendEntry> profile_legend(const ProfileCurve& curve, const PlotColors& colors)
{
    std::vector<LegendEntry> entries;
    entries.push_back({tr_text("mean"), colors.curve, true});
    if (!curve.spread.empty())
        entries.push_back({tr_text("\u00B1 sd along the diagonal"), colors.spread, false});
    if (!curve.standard_error.empty())
        entries.push_back({tr_text("\u00B1 s.e. over words"), colors.standard_error, false});
    if (curve.white_band) {
        const QString text =
            tr_text("white band %1 to %2")
                .arg(fixed_text(curve.white_band->first, 0), fixed_text(curve.white_band->last, 0));
        entries.push_back({text, colors.white_band, false});
    }
    return entries;
}

std::vector<QPointF> legend_places(const std::vector<LegendEntry>& entries, double width, double em,
                                   const TextMeasure& measure, double& height)
{
    std::vector<QPointF> places;
    double x = 0.0;
    double y = 0.0;
    for (const LegendEntry& entry : entries) {
        const double extent = 2.0 * em + measure.width(entry.text);
        if (x > 0.0 && x + extent > width) {
            x = 0.0;
            y += 1.1 * measure.line_height();
        }
        places.emplace_back(x, y);
        x += extent + 1.2 * em;
    }
    height = y + measure.line_height();
    return places;
}

/// Pieces of the curve without gaps, as ranges of entries.
std::vector<std::pair<std::size_t, std::size_t>>
finite_runs(const std::vector<double>& a, const std::vector<double>& b, std::size_t from, std::size_t to)
{
    std::vector<std::pair<std::size_t, std::size_t>> runs;
    const auto finite = [&](std::size_t n) {
        return std::isfinite(a[n]) && (b.empty() || std::isfinite(b[n]));
    };
    for (std::size_t n = from; n < to;) {
        if (!finite(n)) {
            ++n;
            continue;
        }
        std::size_t end = n;
        while (end < to && finite(end)) ++end;
        runs.emplace_back(n, end);
        n = end;
    }
    return runs;
}

void draw_profile_figure(FigureCanvas& canvas, const FigureSpec& spec, const ProfileContent& content,
                         const FigureOptions& options, const QSizeF& page)
{
    const TextMeasure measure(figure_font(options));
    const Spaces spaces(options.font_pt);
    const PlotColors colors = page_colors();
    const FigurePen pen{colors.text, line_width, false};
    const ProfileCurve& curve = content.curve;
    int first = curve.first_offset;
    int last = curve.last_offset();
    if (content.last >= content.first) {
        first = std::max(first, content.first);
        last = std::min(last, content.last);
    }
    if (last < first) return;
    double low = 0.0;
    double high = 1.0;
    if (const auto range = curve_value_range(curve, first, last)) std::tie(low, high) = *range;
    const double pad = high > low ? 0.05 * (high - low) : std::max(1e-12, 0.1 * std::abs(low));
    low -= pad;
    high += pad;

    const std::vector<LegendEntry> legend = profile_legend(curve, colors);
    const double legend_left = spaces.edge + measure.line_height() + spaces.name;
    double legend_height = 0.0;
    const std::vector<QPointF> places = legend_places(legend, page.width() - legend_left - spaces.edge,
                                                      options.font_pt, measure, legend_height);
    const double strip = strip_height(spec, options, measure);
    const double top = spaces.edge + strip + legend_height + 0.5 * spaces.gap;
    const double bottom = spaces.tick + spaces.tick_label + measure.cap_height() + spaces.name +
                          measure.line_height() + spaces.edge;
    const double height = std::max(4.0, page.height() - top - bottom);
    const std::vector<Tick> value_marks =
        value_ticks(low, high, fitting_ticks(height, 2.0 * measure.line_height()));
    const QStringList value_name = label_lines(content.quantity_label, height, measure);
    const double name_width = static_cast<double>(value_name.size()) * measure.line_height();
    const double left = spaces.edge + name_width + spaces.name + widest(value_marks, measure) +
                        spaces.tick_label + spaces.tick;
    const double right_edge = spaces.edge + 0.5 * measure.width(fixed_text(last, 0));
    const QRectF area(left, top, std::max(4.0, page.width() - left - right_edge), height);
    const auto x_of = [&](double offset) {
        return area.left() + (offset - first + 0.5) / (last - first + 1) * area.width();
    };
    const auto y_of = [&](double value) {
        return area.bottom() - (value - low) / (high - low) * area.height();
    };

    if (curve.white_band) {
        const double from = std::max(area.left(), x_of(curve.white_band->first - 0.5));
        const double to = std::min(area.right(), x_of(curve.white_band->last + 0.5));
        if (to > from) canvas.fill(QRectF(from, area.top(), to - from, area.height()), colors.white_band);
    }
    if (first <= 0 && last >= 0)
        canvas.line({x_of(0), area.top()}, {x_of(0), area.bottom()}, {colors.faint, line_width, false});
    const auto from = static_cast<std::size_t>(first - curve.first_offset);
    const auto to = static_cast<std::size_t>(last - curve.first_offset + 1);
    const auto point = [&](std::size_t n, double shift) {
        return QPointF(x_of(curve.first_offset + static_cast<int>(n)), y_of(curve.mean[n] + shift));
    };
    const auto draw_band = [&](const std::vector<double>& width, const QColor& color) {
        if (width.size() < to) return;
        for (const auto& [begin, end] : finite_runs(curve.mean, width, from, to)) {
            QPolygonF outline;
            for (std::size_t n = begin; n < end; ++n) outline << point(n, width[n]);
            for (std::size_t n = end; n-- > begin;) outline << point(n, -width[n]);
            canvas.polygon(outline, color);
        }
    };
    draw_band(curve.spread, colors.spread);
    draw_band(curve.standard_error, colors.standard_error);
    if (low < 0.0 && high > 0.0)
        canvas.line({area.left(), y_of(0.0)}, {area.right(), y_of(0.0)}, {colors.frame, line_width, true});
    for (const auto& [begin, end] : finite_runs(curve.mean, {}, from, to)) {
        QPolygonF line;
        for (std::size_t n = begin; n < end; ++n) line << point(n, 0.0);
        if (line.size() == 1) line << line.first();
        canvas.polyline(line, {colors.curve, curve_width, false});
    }

    canvas.line(area.bottomLeft(), area.bottomRight(), pen);
    canvas.line(area.topLeft(), area.bottomLeft(), pen);
    const double offset_width =
        std::max(measure.width(fixed_text(first, 0)), measure.width(fixed_text(last, 0)));
    for (const Tick& tick :
         integer_ticks(first, last, fitting_ticks(area.width(), offset_width + 1.1 * options.font_pt))) {
        const double at = x_of(tick.at);
        canvas.line({at, area.bottom()}, {at, area.bottom() + spaces.tick}, pen);
        canvas.text({{at, area.bottom() + spaces.tick + spaces.tick_label + measure.cap_height()},
                     tick.label,
                     TextAnchor::middle,
                     0.0,
                     false,
                     colors.text});
    }
    for (const Tick& tick : value_marks) {
        const double at = y_of(tick.at);
        canvas.line({area.left() - spaces.tick, at}, {area.left(), at}, pen);
        canvas.text({{area.left() - spaces.tick - spaces.tick_label, at + 0.5 * measure.cap_height()},
                     tick.label,
                     TextAnchor::end,
                     0.0,
                     false,
                     colors.text});
    }
    const double name_baseline = area.bottom() + spaces.tick + spaces.tick_label + measure.cap_height() +
                                 spaces.name + measure.ascent();
    canvas.text({{area.center().x(), name_baseline},
                 tr_text("offset (key \u2212 query)"),
                 TextAnchor::middle,
                 0.0,
                 false,
                 colors.text});
    draw_vertical_name(canvas, value_name, spaces.edge, area.center().y(), -90.0, measure);
    for (std::size_t n = 0; n < legend.size(); ++n) {
        const QPointF at = places[n] + QPointF(legend_left, spaces.edge + strip);
        const double middle = at.y() + measure.ascent() - 0.5 * measure.cap_height();
        const double em = options.font_pt;
        if (legend[n].line)
            canvas.line({at.x(), middle}, {at.x() + 1.6 * em, middle}, {legend[n].color, curve_width, false});
        else
            canvas.fill(QRectF(at.x(), middle - 0.4 * em, 1.6 * em, 0.8 * em), legend[n].color);
        canvas.text({{at.x() + 2.0 * em, at.y() + measure.ascent()},
                     legend[n].text,
                     TextAnchor::start,
                     0.0,
                     false,
                     colors.text});
    }
    draw_strip(canvas, spec, options, measure, area.left(), area.right(), page.width());
}

} // namespace

ColorScale figure_color_scale(const HeatmapContent& content, const FigureOptions& options)
{
    ColorScale scale = content.scale;
    if (options.color_map && *options.color_map != scale.map) {
        scale.map = *options.color_map;
        scale.missing = missing_color(scale.map);
    }
    return scale;
}

FigureFont figure_font(const FigureOptions& options)
{
    return {options.font_family.isEmpty() ? default_figure_font() : options.font_family, options.font_pt};
}

QImage figure_cells(const HeatmapContent& content, const FigureOptions& options)
{
    const QImage whole = heatmap_image(content.map, figure_color_scale(content, options));
    if (content.last < content.first) return whole;
    const int origin = static_cast<int>(content.map.first_position);
    const int first = std::max(content.first - origin, 0);
    const int last = std::min(content.last - origin, static_cast<int>(content.map.length) - 1);
    return whole.copy(first, first, last - first + 1, last - first + 1);
}

QSizeF figure_size_mm(const FigureSpec& spec, const FigureOptions& options)
{
    if (options.height_mm > 0.0) return {options.width_mm, options.height_mm};
    const double width = options.width_mm * points_per_mm;
    const TextMeasure measure(figure_font(options));
    double height = 0.0;
    if (const auto* heatmap = std::get_if<HeatmapContent>(&spec.content)) {
        HeatmapFrame frame;
        const double side = settled_side(spec, *heatmap, options, measure, width, 0.0, frame);
        height = frame.top + side + frame.bottom;
    } else if (const auto* table = std::get_if<TableContent>(&spec.content)) {
        height = table_height(*table, figure_font(options), width) + strip_height(spec, options, measure);
    } else if (const auto* chart = std::get_if<ChartContent>(&spec.content);
               chart != nullptr && (chart->is_map || !chart->image.isNull())) {
        height = fitting_chart_height(
            *chart, {figure_font(options), page_colors(), strip_height(spec, options, measure)}, width);
    } else {
        // A curve reads best wide; a page-wide one still lower.
        height = (options.width_mm > 120.0 ? 0.42 : 0.64) * width + strip_height(spec, options, measure);
    }
    // Tenths of a millimetre, upwards: a size that can be typed.
    return {options.width_mm, std::ceil(height / points_per_mm * 10.0) / 10.0};
}

void draw_figure(FigureCanvas& canvas, const FigureSpec& spec, const FigureOptions& options)
{
    const QSizeF page = figure_size_mm(spec, options) * points_per_mm;
    canvas.fill(QRectF(QPointF(0, 0), page), page_colors().background);
    if (const auto* heatmap = std::get_if<HeatmapContent>(&spec.content)) {
        if (heatmap->map.length > 0) draw_heatmap_figure(canvas, spec, *heatmap, options, page);
    } else if (const auto* profile = std::get_if<ProfileContent>(&spec.content)) {
        draw_profile_figure(canvas, spec, *profile, options, page);
    } else if (const auto* table = std::get_if<TableContent>(&spec.content)) {
        const TextMeasure measure(figure_font(options));
        draw_table(canvas, *table, figure_font(options), page_colors(), page,
                   strip_height(spec, options, measure));
        draw_strip(canvas, spec, options, measure, 0.0, page.width(), page.width());
    } else if (const auto* chart = std::get_if<ChartContent>(&spec.content)) {
        const TextMeasure measure(figure_font(options));
        const ChartFrame frame =
            draw_chart(canvas, *chart,
                       {figure_font(options), page_colors(), strip_height(spec, options, measure)}, page);
        draw_strip(canvas, spec, options, measure, frame.area.left(), frame.area.right(), page.width());
    }
}

} // namespace posiscope::ui
