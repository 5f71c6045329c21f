// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plot/head_grid.h"

#include <algorithm>
#include <cmath>

#include <QFontMetrics>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>

#include "ui/plot/plot_colors.h"
#include "ui/plot/ticks.h"

namespace posiscope::ui {
namespace {

constexpr int margin = 8;
constexpr int gap = 8;
constexpr int bar_width = 12;
constexpr int tick_space = 6;
constexpr int triangle_height = 8;
constexpr int least_tile = 24;

} // namespace

HeadPictures make_head_pictures(std::span<const core::PositionMap> heads, ColorMapId color_map,
                                ScaleKind kind)
{
    HeadPictures pictures;
    pictures.scale = make_color_scale(heads, color_map, kind);
    pictures.images.reserve(heads.size());
    for (const core::PositionMap& head : heads)
        pictures.images.push_back(heatmap_image(head, pictures.scale));
    return pictures;
}

HeadGrid::HeadGrid(QWidget* parent) : QWidget(parent)
{
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setAccessibleName(tr("All heads of the layer"));
    setMinimumSize(minimumSizeHint());
}

void HeadGrid::setPictures(const HeadPictures& pictures, const QString& quantityLabel)
{
    m_pictures = pictures;
    m_label = quantityLabel;
    m_hovered = core::mean_of_heads;
    arrange();
    update();
}

void HeadGrid::clear()
{
    setPictures({}, {});
}

void HeadGrid::setSelectedHead(int head)
{
    if (m_selected == head) return;
    m_selected = head;
    update();
}

/// The number of columns that makes the pictures largest.
void HeadGrid::arrange()
{
    m_scaled.clear();
    const int count = headCount();
    if (count == 0) return;
    const QFontMetrics metrics(font());
    const int name = metrics.height();
    int label_width = 0;
    for (const Tick& tick : color_bar_ticks(m_pictures.scale, 6))
        label_width = std::max(label_width, metrics.horizontalAdvance(tick.label));
    if (m_pictures.scale.has_missing)
        label_width = std::max(label_width, metrics.horizontalAdvance(tr("no value")));
    const int bar_space = gap + bar_width + tick_space + label_width + 4 + name;
    const int across = width() - 2 * margin - bar_space;
    const int down = height() - 2 * margin;
    m_tile = 0;
    for (int columns = 1; columns <= count; ++columns) {
        const int rows = (count + columns - 1) / columns;
        const int tile =
            std::min((across - (columns - 1) * gap) / columns, (down - (rows - 1) * gap) / rows - name);
        if (tile <= m_tile) continue;
        m_tile = tile;
        m_columns = columns;
    }
    m_tile = std::max(m_tile, least_tile);
    const int rows = (count + m_columns - 1) / m_columns;
    const QSize used(m_columns * (m_tile + gap) - gap + bar_space, rows * (m_tile + name + gap) - gap);
    m_origin = QPoint(std::max(margin, (width() - used.width()) / 2),
                      std::max(margin, (height() - used.height()) / 2));
    const int bar_length = std::max(16, std::min(used.height() - name, 260));
    m_bar = QRect(m_origin.x() + used.width() - bar_space + gap, m_origin.y() + name, bar_width, bar_length);
    if (m_pictures.scale.has_missing) m_bar.setBottom(m_bar.bottom() - name - gap);
    if (m_pictures.scale.upper_clipped) m_bar.setTop(m_bar.top() + triangle_height);
    if (m_pictures.scale.lower_clipped) m_bar.setBottom(m_bar.bottom() - triangle_height);
}

QRect HeadGrid::headRect(int head) const
{
    if (head < 0 || head >= headCount()) return {};
    const int name = QFontMetrics(font()).height();
    const QPoint place(head % m_columns * (m_tile + gap), head / m_columns * (m_tile + name + gap) + name);
    return {m_origin + place, QSize(m_tile, m_tile)};
}

int HeadGrid::headAt(const QPointF& place) const
{
    const int name = QFontMetrics(font()).height();
    for (int head = 0; head < headCount(); ++head)
        if (QRectF(headRect(head).adjusted(0, -name, 0, 0)).contains(place)) return head;
    return core::mean_of_heads;
}

void HeadGrid::paintEvent(QPaintEvent*)
{
    const PlotColors colors = plot_colors(palette());
    QPainter painter(this);
    painter.fillRect(rect(), colors.background);
    if (headCount() == 0) return;
    const double ratio = devicePixelRatioF();
    if (m_scaled.empty()) {
        const int side = static_cast<int>(std::lround(m_tile * ratio));
        for (const QImage& image : m_pictures.images) {
            // Averages where there are more cells than pixels, sharp cells else.
            const auto mode = side < image.width() ? Qt::SmoothTransformation : Qt::FastTransformation;
            m_scaled.push_back(image.scaled(side, side, Qt::IgnoreAspectRatio, mode));
        }
    }
    const QFontMetrics metrics(font());
    painter.setFont(font());
    for (int head = 0; head < headCount(); ++head) {
        const QRect place = headRect(head);
        painter.drawImage(QRectF(place), m_scaled[static_cast<std::size_t>(head)]);
        const bool strong = head == m_selected || head == m_hovered;
        painter.setBrush(Qt::NoBrush);
        painter.setPen(
            QPen(strong ? palette().color(QPalette::Highlight) : colors.frame, strong ? 2.0 : 1.0));
        const int grow = strong ? 1 : 0;
        painter.drawRect(place.adjusted(-grow, -grow, grow - (strong ? 0 : 1), grow - (strong ? 0 : 1)));
        painter.setPen(colors.text);
        painter.drawText(
            QRect(place.left(), place.top() - metrics.height(), place.width(), metrics.height() - 1),
            Qt::AlignLeft | Qt::AlignVCenter,
            metrics.elidedText(m_tile > metrics.horizontalAdvance(tr("head %1").arg(99))
                                   ? tr("head %1").arg(head)
                                   : QString::number(head),
                               Qt::ElideRight, place.width()));
    }

    painter.setRenderHint(QPainter::SmoothPixmapTransform, true);
    painter.drawImage(QRectF(m_bar), color_bar_image(m_pictures.scale.map));
    painter.setRenderHint(QPainter::Antialiasing, true);
    painter.setPen(QPen(colors.frame, 1.0));
    const QRectF edge = QRectF(m_bar).adjusted(0.5, 0.0, -0.5, 0.0);
    if (m_pictures.scale.upper_clipped) {
        painter.setBrush(QColor(color_map_entry(m_pictures.scale.map, 255)));
        painter.drawPolygon(QPolygonF(
            {edge.topLeft(), QPointF(edge.center().x(), edge.top() - triangle_height), edge.topRight()}));
    }
    if (m_pictures.scale.lower_clipped) {
        painter.setBrush(QColor(color_map_entry(m_pictures.scale.map, 0)));
        painter.drawPolygon(
            QPolygonF({edge.bottomLeft(), QPointF(edge.center().x(), edge.bottom() + triangle_height),
                       edge.bottomRight()}));
    }
    painter.setRenderHint(QPainter::Antialiasing, false);
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(m_bar.adjusted(0, 0, -1, -1));
    int widest = 0;
    for (const Tick& tick :
         color_bar_ticks(m_pictures.scale, std::clamp(m_bar.height() / (3 * metrics.height()), 2, 6))) {
        const int y = m_bar.bottom() - static_cast<int>(std::lround(tick.at * (m_bar.height() - 1)));
        painter.setPen(colors.frame);
        painter.drawLine(m_bar.right() + 1, y, m_bar.right() + 3, y);
        painter.setPen(colors.text);
        painter.drawText(QRect(m_bar.right() + tick_space, y - metrics.height() / 2, 400, metrics.height()),
                         Qt::AlignLeft | Qt::AlignVCenter, tick.label);
        widest = std::max(widest, metrics.horizontalAdvance(tick.label));
    }
    if (m_pictures.scale.has_missing) {
        const int top = m_bar.bottom() + gap + (m_pictures.scale.lower_clipped ? triangle_height : 0);
        const QRect swatch(m_bar.left(), top, bar_width, bar_width);
        painter.fillRect(swatch, m_pictures.scale.missing);
        painter.setPen(colors.frame);
        painter.drawRect(swatch.adjusted(0, 0, -1, -1));
        painter.setPen(colors.text);
        painter.drawText(QRect(swatch.right() + tick_space, swatch.center().y() - metrics.height() / 2, 400,
                               metrics.height()),
                         Qt::AlignLeft | Qt::AlignVCenter, tr("no value"));
    }
    painter.save();
    painter.translate(m_bar.right() + tick_space + widest + 4, m_bar.center().y());
    painter.rotate(90.0);
    const QString name = metrics.elidedText(m_label, Qt::ElideRight, height() - 2 * margin);
    painter.drawText(QRectF(-0.5 * height(), -metrics.height(), height(), metrics.height()), Qt::AlignCenter,
                     name);
    painter.restore();
}

void HeadGrid::resizeEvent(QResizeEvent*)
{
    arrange();
}

void HeadGrid::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::FontChange) arrange();
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) update();
}

void HeadGrid::hover(int head)
{
    if (head == m_hovered) return;
    m_hovered = head;
    update();
    if (head == core::mean_of_heads)
        Q_EMIT headLeft();
    else
        Q_EMIT headHovered(head);
}

void HeadGrid::mouseMoveEvent(QMouseEvent* event)
{
    hover(headAt(event->position()));
}

void HeadGrid::mousePressEvent(QMouseEvent* event)
{
    const int head = headAt(event->position());
    if (event->button() == Qt::LeftButton && head != core::mean_of_heads) Q_EMIT headClicked(head);
}

void HeadGrid::leaveEvent(QEvent*)
{
    hover(core::mean_of_heads);
}

void HeadGrid::keyPressEvent(QKeyEvent* event)
{
    if (headCount() == 0) return QWidget::keyPressEvent(event);
    const int from = m_hovered != core::mean_of_heads ? m_hovered : std::max(m_selected, 0);
    switch (event->key()) {
    case Qt::Key_Left: hover(std::max(from - 1, 0)); break;
    case Qt::Key_Right: hover(std::min(from + 1, headCount() - 1)); break;
    case Qt::Key_Up: hover(from >= m_columns ? from - m_columns : from); break;
    case Qt::Key_Down: hover(from + m_columns < headCount() ? from + m_columns : from); break;
    case Qt::Key_Space: Q_EMIT headClicked(from); break;
    default: QWidget::keyPressEvent(event);
    }
}

} // namespace posiscope::ui
