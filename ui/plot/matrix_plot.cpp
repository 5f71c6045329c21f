// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plot/matrix_plot.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>

#include "ui/byte_text.h"
#include "ui/plot/plot_colors.h"
#include "ui/plot/ticks.h"

namespace posiscope::ui {
namespace {

constexpr int margin = 6;
constexpr int bar_width = 12;
constexpr int gap = 12;
constexpr int tick_length = 4;
constexpr int triangle_height = 7; ///< of the marks of clipped ends
constexpr double shown_share = 0.99;

/// "12", or "12-15" where a cell stands for several.
QString index_text(std::int64_t cell, std::int64_t step, std::int64_t size, bool single)
{
    const std::int64_t first = cell * step, last = std::min(first + step, size) - 1;
    if (single || first == last) return QString::number(first);
    return QStringLiteral("%1\u2013%2").arg(first).arg(last);
}

int fitting(int extent, int each)
{
    return std::clamp(extent / std::max(each, 1), 2, 11);
}

} // namespace

ColorScale matrix_color_scale(const core::TensorPicture& picture, MatrixRange range)
{
    core::PositionMap map;
    map.values = picture.values; // only the values count for a scale
    const ColorDefaults colors = default_colors(MapMeaning::signed_difference);
    ColorScale scale = make_color_scale(map, colors.map, colors.kind);
    if (range == MatrixRange::all_values) return scale;
    std::vector<double> magnitudes;
    for (const double value : picture.values)
        if (std::isfinite(value)) magnitudes.push_back(std::abs(value));
    if (magnitudes.empty()) return scale;
    const auto at = magnitudes.begin() +
                    static_cast<std::ptrdiff_t>(shown_share * static_cast<double>(magnitudes.size() - 1));
    std::nth_element(magnitudes.begin(), at, magnitudes.end());
    if (!(*at > 0.0) || *at >= scale.upper) return scale; // nearly all zeros, or nothing to cut
    const bool below =
        std::any_of(map.values.begin(), map.values.end(), [&](double value) { return value < -*at; });
    const bool above =
        std::any_of(map.values.begin(), map.values.end(), [&](double value) { return value > *at; });
    scale.lower = -*at;
    scale.upper = *at;
    scale.lower_clipped = below;
    scale.upper_clipped = above;
    return scale;
}

QImage matrix_image(const core::TensorPicture& picture, const ColorScale& scale)
{
    const auto rows = static_cast<int>(picture.plan.rows), columns = static_cast<int>(picture.plan.columns);
    if (picture.values.empty()) return {};
    QImage image(columns, rows, QImage::Format_RGB32);
    const double* value = picture.values.data();
    for (int row = 0; row < rows; ++row) {
        auto* line = reinterpret_cast<QRgb*>(image.scanLine(row));
        for (int column = 0; column < columns; ++column) line[column] = scale.color(*value++);
    }
    return image;
}

MatrixPlot::MatrixPlot(QWidget* parent) : QWidget(parent)
{
    setMouseTracking(true);
    setFocusPolicy(Qt::StrongFocus);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
    setAccessibleName(tr("Picture of the matrix"));
}

void MatrixPlot::setPicture(core::TensorPicture picture, const ColorScale& scale, QImage image)
{
    m_picture = std::move(picture);
    m_scale = scale;
    m_image = std::move(image);
    m_scaled = QImage();
    mark(std::nullopt);
    update();
}

void MatrixPlot::clear()
{
    setPicture({}, {}, {});
}

MatrixPlot::Layout MatrixPlot::places() const
{
    const QFontMetrics metrics(font());
    const int text = metrics.height();
    const auto widest_index = [&](std::int64_t size) {
        return metrics.horizontalAdvance(QString::number(std::max<std::int64_t>(size - 1, 0)));
    };
    const int left = margin + text + 4 + widest_index(m_picture.plan.matrix.rows) + 3 + tick_length;
    const int bottom = margin + text + 2 + text + 3 + tick_length;
    int bar_label = 0;
    for (const Tick& tick : color_bar_ticks(m_scale, 7))
        bar_label = std::max(bar_label, metrics.horizontalAdvance(tick.label));
    if (m_scale.has_missing) bar_label = std::max(bar_label, metrics.horizontalAdvance(tr("no value")));
    const int right = gap + bar_width + tick_length + 3 + bar_label + margin;
    Layout out;
    out.matrix = QRect(left, margin + text / 2, std::max(16, width() - left - right),
                       std::max(16, height() - bottom - margin - text / 2));
    const int missing = m_scale.has_missing ? text + gap / 2 : 0;
    const int side = std::min(out.matrix.height() - missing, 240);
    out.bar = QRect(out.matrix.right() + 1 + gap,
                    out.matrix.top() + (out.matrix.height() - missing - side) / 2, bar_width, side);
    if (m_scale.upper_clipped) out.bar.setTop(out.bar.top() + triangle_height);
    if (m_scale.lower_clipped) out.bar.setBottom(out.bar.bottom() - triangle_height);
    return out;
}

QRectF MatrixPlot::cellRect(int row, int column) const
{
    const QRect place = matrixRect();
    const double wide = static_cast<double>(place.width()) / static_cast<double>(m_picture.plan.columns);
    const double high = static_cast<double>(place.height()) / static_cast<double>(m_picture.plan.rows);
    return {place.left() + column * wide, place.top() + row * high, wide, high};
}

QString MatrixPlot::readout() const
{
    if (!m_marked || isEmpty()) return {};
    const core::PicturePlan& plan = m_picture.plan;
    const double value =
        m_picture.values[static_cast<std::size_t>(m_marked->y() * plan.columns + m_marked->x())];
    return tr("row %1, column %2: %3")
        .arg(index_text(m_marked->y(), plan.row_step, plan.matrix.rows, plan.samples_rows),
             index_text(m_marked->x(), plan.column_step, plan.matrix.columns, false),
             std::isinf(value) ? (value < 0.0 ? QStringLiteral("\u2212\u221E") : QStringLiteral("\u221E"))
                               : value_text(value));
}

void MatrixPlot::mark(std::optional<QPoint> cell)
{
    if (cell == m_marked) return;
    m_marked = cell;
    update();
    Q_EMIT markChanged();
}

void MatrixPlot::paintEvent(QPaintEvent*)
{
    const PlotColors colors = plot_colors(palette());
    QPainter painter(this);
    painter.fillRect(rect(), colors.background);
    if (isEmpty()) return;
    const Layout place = places();
    const QRect& matrix = place.matrix;
    const double ratio = devicePixelRatioF();
    const QSize pixels = matrix.size() * ratio;
    if (m_scaled.size() != pixels) {
        // Smaller: averaged, so that no row is lost. Larger: sharp cells.
        QImage across = m_image.scaled(pixels.width(), m_image.height(), Qt::IgnoreAspectRatio,
                                       pixels.width() < m_image.width() ? Qt::SmoothTransformation
                                                                        : Qt::FastTransformation);
        m_scaled = across.scaled(pixels.width(), pixels.height(), Qt::IgnoreAspectRatio,
                                 pixels.height() < m_image.height() ? Qt::SmoothTransformation
                                                                    : Qt::FastTransformation);
    }
    painter.drawImage(QRectF(matrix), m_scaled);
    painter.setPen(colors.frame);
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(matrix.adjusted(-1, -1, 0, 0));

    const QFontMetrics metrics(font());
    const int text = metrics.height();
    const core::PicturePlan& plan = m_picture.plan;
    const auto last_row = static_cast<int>(std::min<std::int64_t>(plan.matrix.rows - 1, 2'000'000'000));
    const auto last_column = static_cast<int>(std::min<std::int64_t>(plan.matrix.columns - 1, 2'000'000'000));
    const auto middle_of = [](double index, std::int64_t step, std::int64_t cells, int from, int extent) {
        return from +
               (std::floor(index / static_cast<double>(step)) + 0.5) * extent / static_cast<double>(cells);
    };
    for (const Tick& tick : integer_ticks(0, last_row, fitting(matrix.height(), 2 * text))) {
        const int y =
            static_cast<int>(middle_of(tick.at, plan.row_step, plan.rows, matrix.top(), matrix.height()));
        painter.setPen(colors.frame);
        painter.drawLine(matrix.left() - 1 - tick_length, y, matrix.left() - 1, y);
        painter.setPen(colors.text);
        painter.drawText(QRect(0, y - text / 2, matrix.left() - 3 - tick_length, text),
                         Qt::AlignRight | Qt::AlignVCenter, tick.label);
    }
    const int label_width = metrics.horizontalAdvance(QString::number(last_column)) + text;
    for (const Tick& tick : integer_ticks(0, last_column, fitting(matrix.width(), label_width))) {
        const int x = static_cast<int>(
            middle_of(tick.at, plan.column_step, plan.columns, matrix.left(), matrix.width()));
        painter.setPen(colors.frame);
        painter.drawLine(x, matrix.bottom() + 1, x, matrix.bottom() + 1 + tick_length);
        painter.setPen(colors.text);
        painter.drawText(QRect(x - label_width, matrix.bottom() + 1 + tick_length, 2 * label_width, text),
                         Qt::AlignHCenter | Qt::AlignTop, tick.label);
    }
    painter.setPen(colors.text);
    painter.drawText(QRect(matrix.left(), height() - margin - text, matrix.width(), text), Qt::AlignCenter,
                     tr("column"));
    painter.save();
    painter.translate(margin, matrix.center().y());
    painter.rotate(-90.0);
    painter.drawText(QRect(-matrix.height() / 2, 0, matrix.height(), text), Qt::AlignCenter, tr("row"));
    painter.restore();

    const QRect& bar = place.bar;
    painter.drawImage(bar, color_bar_image(m_scale.map));
    painter.setPen(colors.frame);
    painter.drawRect(bar.adjusted(-1, -1, 0, 0));
    painter.setRenderHint(QPainter::Antialiasing, true);
    painter.setPen(Qt::NoPen);
    const auto triangle = [&](int base, int tip, int entry) {
        painter.setBrush(QColor::fromRgb(color_map_entry(m_scale.map, entry)));
        painter.drawPolygon(QPolygonF{QPointF(bar.left() - 0.5, base), QPointF(bar.right() + 1.0, base),
                                      QPointF(bar.center().x() + 0.5, tip)});
    };
    if (m_scale.upper_clipped) triangle(bar.top() - 1, bar.top() - triangle_height, 255);
    if (m_scale.lower_clipped) triangle(bar.bottom() + 2, bar.bottom() + 1 + triangle_height, 0);
    painter.setRenderHint(QPainter::Antialiasing, false);
    int label_before = bar.bottom() + 2 * text;
    for (const Tick& tick : color_bar_ticks(m_scale, std::max(3, std::min(7, bar.height() / (2 * text))))) {
        const int y = bar.bottom() - static_cast<int>(std::lround(tick.at * (bar.height() - 1)));
        if (label_before - y < text) continue; // a low bar has room for two
        label_before = y;
        painter.setPen(colors.frame);
        painter.drawLine(bar.right() + 1, y, bar.right() + tick_length, y);
        painter.setPen(colors.text);
        painter.drawText(QRect(bar.right() + tick_length + 3, y - text / 2, 200, text),
                         Qt::AlignLeft | Qt::AlignVCenter, tick.label);
    }
    if (m_scale.has_missing) {
        const QRect swatch(bar.left(), matrix.bottom() - bar_width + 1, bar_width, bar_width);
        painter.fillRect(swatch, m_scale.missing);
        painter.setPen(colors.frame);
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(swatch.adjusted(-1, -1, 0, 0));
        painter.setPen(colors.text);
        painter.drawText(QRect(swatch.right() + tick_length + 3, swatch.center().y() - text / 2, 200, text),
                         Qt::AlignLeft | Qt::AlignVCenter, tr("no value"));
    }
    if (!m_marked) return;
    const QRectF cell = cellRect(m_marked->y(), m_marked->x());
    // Dark on light: visible on every colour. A cell smaller than a few pixels is ringed, not covered.
    const QRectF ring = cell.width() < 6.0 || cell.height() < 6.0
                            ? QRectF(cell.center() - QPointF(4.0, 4.0), QSizeF(8.0, 8.0))
                            : cell;
    painter.setRenderHint(QPainter::Antialiasing, true);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(QColor(255, 255, 255, 170), 3.0));
    painter.drawRect(ring);
    painter.setPen(QPen(QColor(20, 20, 20), 1.0));
    painter.drawRect(ring);
}

void MatrixPlot::resizeEvent(QResizeEvent*)
{
    m_scaled = QImage();
}

void MatrixPlot::mouseMoveEvent(QMouseEvent* event)
{
    const QRect place = matrixRect();
    const QPoint at = event->position().toPoint();
    if (isEmpty() || !place.contains(at)) return mark(std::nullopt);
    const auto& plan = m_picture.plan;
    mark(QPoint(static_cast<int>((at.x() - place.left()) * plan.columns / place.width()),
                static_cast<int>((at.y() - place.top()) * plan.rows / place.height())));
}

void MatrixPlot::leaveEvent(QEvent*)
{
    mark(std::nullopt);
}

void MatrixPlot::focusOutEvent(QFocusEvent* event)
{
    mark(std::nullopt);
    QWidget::focusOutEvent(event);
}

void MatrixPlot::keyPressEvent(QKeyEvent* event)
{
    QPoint step;
    switch (event->key()) {
    case Qt::Key_Left: step = {-1, 0}; break;
    case Qt::Key_Right: step = {1, 0}; break;
    case Qt::Key_Up: step = {0, -1}; break;
    case Qt::Key_Down: step = {0, 1}; break;
    default: break;
    }
    if (isEmpty() || step.isNull()) return QWidget::keyPressEvent(event);
    const auto rows = static_cast<int>(m_picture.plan.rows),
               columns = static_cast<int>(m_picture.plan.columns);
    QPoint cell = m_marked ? *m_marked + step : QPoint(columns / 2, rows / 2);
    cell.setX(std::clamp(cell.x(), 0, columns - 1));
    cell.setY(std::clamp(cell.y(), 0, rows - 1));
    mark(cell);
}

} // namespace posiscope::ui
