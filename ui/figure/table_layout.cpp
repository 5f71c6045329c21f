// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/figure/table_layout.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace posiscope::ui {
namespace {

constexpr double edge = 1.0;         ///< around everything: half a line and rounding
constexpr double error_scale = 0.82; ///< type of standard errors
constexpr double heavy = 0.8;        ///< rules above and below; that under the heads is thinner
constexpr double thin = 0.4;
constexpr double least_scale = 0.3;

/// Where everything stands at one size of type, in points.
struct TableFrame {
    double scale = 1.0;
    std::vector<std::size_t> labels, values;
    std::vector<double> label_widths;
    std::size_t in_part = 1; ///< value columns side by side
    double value_width = 0.0;
    double line = 0.0, row = 0.0, head = 0.0, gap = 0.0;
    bool has_note = false;
    bool fits = true; ///< one column beside the labels has room

    [[nodiscard]] std::size_t parts() const
    {
        return values.empty() ? 1 : (values.size() + in_part - 1) / in_part;
    }
};

double column_width(const TableColumn& column, const TextMeasure& measure)
{
    double width = measure.width(column.head);
    for (const TableCell& cell : column.cells)
        width = std::max({width, measure.width(cell.text), error_scale * measure.width(cell.error)});
    return width;
}

TableFrame table_frame(const TableContent& content, const FigureFont& font, double page_width, double scale)
{
    const TextMeasure measure(font);
    const double em = scale * font.points;
    TableFrame frame;
    frame.scale = scale;
    frame.gap = 1.1 * em;
    frame.line = scale * measure.line_height();
    frame.head = frame.line + 0.7 * em;
    frame.has_note = !content.note.isEmpty();
    bool has_errors = false;
    double widest = 0.0, labels = 0.0;
    for (std::size_t c = 0; c < content.columns.size(); ++c) {
        const TableColumn& column = content.columns[c];
        const double width = scale * column_width(column, measure);
        if (column.is_label) {
            frame.labels.push_back(c);
            frame.label_widths.push_back(width);
            labels += width + frame.gap;
        } else {
            frame.values.push_back(c);
            widest = std::max(widest, width);
        }
        for (const TableCell& cell : column.cells) has_errors = has_errors || !cell.error.isEmpty();
    }
    frame.row = frame.line + (has_errors ? error_scale * 0.95 * frame.line : 0.0) + 0.45 * em;
    const double room = page_width - 2.0 * edge - labels + (frame.labels.empty() ? 0.0 : frame.gap);
    frame.fits = room >= widest;
    const auto most = static_cast<std::size_t>(
        std::max(1.0, std::floor(std::max(0.0, room) / std::max(widest + frame.gap, 1.0))));
    // The same number in each part, so that the last is not a rest of one.
    const std::size_t count = std::max<std::size_t>(frame.values.size(), 1);
    const std::size_t parts = (count + most - 1) / most;
    frame.in_part = (count + parts - 1) / parts;
    frame.value_width = room / static_cast<double>(frame.in_part);
    return frame;
}

double height_of(const TableFrame& frame, std::size_t rows)
{
    const auto parts = static_cast<double>(frame.parts());
    return 2.0 * edge + parts * (frame.head + static_cast<double>(rows) * frame.row + heavy) +
           (parts - 1.0) * 1.2 * frame.gap + (frame.has_note ? 1.3 * frame.line : 0.0);
}

} // namespace

double table_height(const TableContent& content, const FigureFont& font, double width)
{
    TableFrame frame = table_frame(content, font, width, 1.0);
    for (double scale = 0.95; !frame.fits && scale > least_scale; scale -= 0.05)
        frame = table_frame(content, font, width, scale);
    return height_of(frame, content.rows());
}

void draw_table(FigureCanvas& canvas, const TableContent& content, const FigureFont& font,
                const PlotColors& colors, const QSizeF& page, double top)
{
    TableFrame frame = table_frame(content, font, page.width(), 1.0);
    const auto is_right = [&] {
        return frame.fits && height_of(frame, content.rows()) <= page.height() - top + 0.01;
    };
    for (double scale = 0.98; !is_right() && scale > least_scale; scale -= 0.02)
        frame = table_frame(content, font, page.width(), scale);

    const TextMeasure measure(font);
    const double scale = frame.scale, left = edge, right = page.width() - edge;
    const double ascent = scale * measure.ascent();
    const auto write = [&](double x, double baseline, const QString& text, TextAnchor anchor, double size) {
        if (!text.isEmpty()) canvas.text({{x, baseline}, text, anchor, 0.0, false, colors.text, size});
    };
    // On a page with a height of its own the table stands in the middle.
    double y = top + std::max(edge, 0.5 * (page.height() - top - height_of(frame, content.rows())) + edge);
    const double pad = 0.22 * scale * font.points;
    for (std::size_t part = 0; part < frame.parts(); ++part) {
        const double part_top = y;
        canvas.line({left, y}, {right, y}, {colors.text, heavy, false});
        const auto column = [&](const TableColumn& one, double x, TextAnchor anchor) {
            double at = part_top + 0.35 * scale * font.points + ascent;
            write(x, at, one.head, anchor, scale);
            at = part_top + frame.head + pad + ascent;
            for (const TableCell& cell : one.cells) {
                write(x, at, cell.text, anchor, scale);
                write(x, at + 0.95 * error_scale * frame.line, cell.error, anchor, error_scale * scale);
                at += frame.row;
            }
        };
        double x = left;
        for (std::size_t n = 0; n < frame.labels.size(); ++n) {
            column(content.columns[frame.labels[n]], x, TextAnchor::start);
            x += frame.label_widths[n] + frame.gap;
        }
        if (!frame.labels.empty()) x -= frame.gap;
        const std::size_t from = part * frame.in_part;
        const std::size_t to = std::min(from + frame.in_part, frame.values.size());
        for (std::size_t n = from; n < to; ++n) {
            x += frame.value_width;
            column(content.columns[frame.values[n]], x, TextAnchor::end);
        }
        y += frame.head;
        canvas.line({left, y}, {right, y}, {colors.text, thin, false});
        y += static_cast<double>(content.rows()) * frame.row;
        canvas.line({left, y}, {right, y}, {colors.text, heavy, false});
        y += heavy + 1.2 * frame.gap;
    }
    if (frame.has_note)
        write(left, y - 1.2 * frame.gap + 0.25 * frame.line + ascent, content.note, TextAnchor::start,
              std::min(error_scale * scale, (right - left) / std::max(measure.width(content.note), 1.0)));
}

} // namespace posiscope::ui
