// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/figure/table_layout.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <QStringList>

namespace posiscope::ui {
namespace {

constexpr double edge = 1.0;         ///< around everything: half a line and rounding
constexpr double error_scale = 0.82; ///< type of standard errors
constexpr double heavy = 0.8;        ///< rules above and below; that under the heads is thinner
constexpr double thin = 0.4;
constexpr double least_scale = 0.3;
constexpr double least_whole_scale = 0.7; ///< smaller than this, a table is broken instead

/// Where everything stands at one size of type, in points.
struct TableFrame {
    double scale = 1.0;
    std::vector<std::size_t> labels, values;
    std::vector<double> label_widths;
    std::size_t in_part = 1; ///< value columns side by side
    double value_width = 0.0;
    double line = 0.0, row = 0.0, head = 0.0, gap = 0.0;
    qsizetype head_lines = 1;
    bool has_groups = false;
    bool has_note = false;
    bool fits = true; ///< one column beside the labels has room

    [[nodiscard]] std::size_t parts() const
    {
        return values.empty() ? 1 : (values.size() + in_part - 1) / in_part;
    }
};

/// Columns of the same group side by side, from `first` on.
std::size_t group_size(const TableContent& content, const std::vector<std::size_t>& columns,
                       std::size_t first, std::size_t end)
{
    std::size_t last = first + 1;
    while (last < end && content.columns[columns[last]].group == content.columns[columns[first]].group)
        ++last;
    return last - first;
}

double column_width(const TableColumn& column, const TextMeasure& measure)
{
    double width = 0.0;
    for (const QString& line : column.head.split(u'\n')) width = std::max(width, measure.width(line));
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
        frame.head_lines = std::max(frame.head_lines, column.head.count(u'\n') + 1);
        frame.has_groups = frame.has_groups || !column.group.isEmpty();
    }
    for (std::size_t n = 0; n < frame.values.size();) {
        const std::size_t count = group_size(content, frame.values, n, frame.values.size());
        const double group = scale * measure.width(content.columns[frame.values[n]].group);
        const auto wide = static_cast<double>(count);
        widest = std::max(widest, (group - (wide - 1.0) * frame.gap) / wide);
        n += count;
    }
    frame.head = static_cast<double>(frame.head_lines) * frame.line + 0.7 * em +
                 (frame.has_groups ? frame.line + 0.4 * em : 0.0);
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

/// Rows and columns changed: what a row was about becomes the head of its column.
TableContent transposed(const TableContent& content)
{
    TableContent out;
    out.note = content.note;
    TableColumn names;
    names.is_label = true;
    std::vector<const TableColumn*> labels, values;
    for (const TableColumn& column : content.columns) (column.is_label ? labels : values).push_back(&column);
    for (const TableColumn* column : values) names.cells.push_back({column->head, {}});
    out.columns.push_back(std::move(names));
    for (std::size_t row = 0; row < content.rows(); ++row) {
        TableColumn column;
        QStringList head;
        for (std::size_t label = 0; label < labels.size(); ++label) {
            const QString text = labels[label]->cells[row].text;
            if (label == 0 && labels.size() > 1)
                column.group = text;
            else
                head.append(QString(text).replace(u' ', u'\n')); // heads may be high, but not wide
        }
        column.head = head.join(u'\n');
        for (const TableColumn* value : values) column.cells.push_back(value->cells[row]);
        out.columns.push_back(std::move(column));
    }
    return out;
}

/// A table at the largest type at which it fits.
struct SetTable {
    TableContent content;
    TableFrame frame;
    [[nodiscard]] double height() const { return height_of(frame, content.rows()); }
};

SetTable set_table(TableContent content, const FigureFont& font, double width, double height)
{
    SetTable out{std::move(content), {}};
    out.frame = table_frame(out.content, font, width, 1.0);
    const auto is_right = [&] { return out.frame.fits && (height <= 0.0 || out.height() <= height + 0.01); };
    for (double scale = 0.98; !is_right() && scale > least_scale; scale -= 0.02)
        out.frame = table_frame(out.content, font, width, scale);
    return out;
}

/// @param height  0: as high as it needs
SetTable best_table(const TableContent& content, const FigureFont& font, double width, double height)
{
    // In one piece, if need be turned or in somewhat smaller type, rather than broken.
    const TableContent other = transposed(content);
    for (double scale = 1.0; scale > least_whole_scale - 0.001; scale -= 0.02)
        for (const TableContent* one : {&content, &other}) {
            SetTable whole{*one, table_frame(*one, font, width, scale)};
            if (whole.frame.fits && whole.frame.parts() == 1 &&
                (height <= 0.0 || whole.height() <= height + 0.01))
                return whole;
        }
    SetTable as_it_is = set_table(content, font, width, height);
    SetTable turned = set_table(other, font, width, height);
    const bool is_better =
        turned.frame.scale > as_it_is.frame.scale + 0.001 ||
        (turned.frame.scale > as_it_is.frame.scale - 0.001 && turned.height() < as_it_is.height());
    return is_better ? turned : as_it_is;
}

} // namespace

double table_height(const TableContent& content, const FigureFont& font, double width)
{
    return best_table(content, font, width, 0.0).height();
}

void draw_table(FigureCanvas& canvas, const TableContent& given, const FigureFont& font,
                const PlotColors& colors, const QSizeF& page, double top)
{
    const SetTable table = best_table(given, font, page.width(), page.height() - top);
    const TableContent& content = table.content;
    const TableFrame& frame = table.frame;
    const TextMeasure measure(font);
    const double scale = frame.scale, left = edge, right = page.width() - edge;
    const double ascent = scale * measure.ascent();
    const auto write = [&](double x, double baseline, const QString& text, TextAnchor anchor, double size) {
        if (!text.isEmpty()) canvas.text({{x, baseline}, text, anchor, 0.0, false, colors.text, size});
    };
    // On a page with a height of its own the table stands in the middle.
    double y = top + edge + std::max(0.0, 0.5 * (page.height() - top - table.height()));
    const double pad = 0.22 * scale * font.points, head_pad = 0.35 * scale * font.points;
    for (std::size_t part = 0; part < frame.parts(); ++part) {
        const double part_top = y;
        canvas.line({left, y}, {right, y}, {colors.text, heavy, false});
        const auto column = [&](const TableColumn& one, double x, TextAnchor anchor) {
            // The last lines of all heads stand beside each other.
            const QStringList lines = one.head.split(u'\n');
            double at =
                part_top + frame.head - head_pad - static_cast<double>(lines.size()) * frame.line + ascent;
            for (const QString& line : lines) {
                write(x, at, line, anchor, scale);
                at += frame.line;
            }
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
        for (std::size_t n = from; frame.has_groups && n < to;) {
            const std::size_t count = group_size(content, frame.values, n, to);
            const double start = x + static_cast<double>(n - from) * frame.value_width + frame.gap;
            const double end = x + static_cast<double>(n - from + count) * frame.value_width;
            const QString& group = content.columns[frame.values[n]].group;
            write(0.5 * (start + end), part_top + head_pad + ascent, group, TextAnchor::middle, scale);
            const double rule = part_top + head_pad + frame.line + 0.1 * scale * font.points;
            if (!group.isEmpty() && count > 1)
                canvas.line({start, rule}, {end, rule}, {colors.text, thin, false});
            n += count;
        }
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
