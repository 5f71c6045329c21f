// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plot/chart_plot.h"

#include <cmath>

#include <QEvent>
#include <QFontMetricsF>
#include <QMouseEvent>
#include <QPainter>
#include <QWheelEvent>

#include "ui/figure/painter_canvas.h"

namespace posiscope::ui {

ChartPlot::ChartPlot(QWidget* parent) : QWidget(parent)
{
    setMouseTracking(true);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

void ChartPlot::setChart(ChartContent content, bool keepView)
{
    if (keepView) {
        content.x_range = m_content.x_range;
        content.y_range = m_content.y_range;
    }
    m_content = std::move(content);
    m_picture = QPixmap();
    update();
}

void ChartPlot::setMarks(std::vector<QPointF> rings, std::optional<double> line, const QString& readout)
{
    if (m_rings == rings && m_line == line && m_readout == readout) return;
    m_rings = std::move(rings);
    m_line = line;
    m_readout = readout;
    update();
}

double ChartPlot::pixelsPerPoint() const
{
    return logicalDpiY() / 72.0;
}

QPointF ChartPlot::chartAt(const QPointF& place) const
{
    return m_frame.chart_at(place / pixelsPerPoint());
}

QPointF ChartPlot::placeOf(double x, double y) const
{
    return m_frame.at(x, y) * pixelsPerPoint();
}

bool ChartPlot::isInside(const QPointF& place) const
{
    return m_frame.area.contains(place / pixelsPerPoint());
}

std::optional<std::size_t> ChartPlot::pointNear(std::size_t series, const QPointF& place, double reach) const
{
    if (series >= m_content.series.size()) return std::nullopt;
    const ChartSeries& points = m_content.series[series];
    std::optional<std::size_t> nearest;
    double least = reach * reach;
    for (std::size_t k = 0; k < points.x.size(); ++k) {
        const QPointF step = placeOf(points.x[k], points.y[k]) - place;
        const double squared = QPointF::dotProduct(step, step);
        if (squared < least) {
            least = squared;
            nearest = k;
        }
    }
    return nearest;
}

void ChartPlot::drawPicture()
{
    const double ratio = devicePixelRatioF(), scale = pixelsPerPoint();
    m_picture = QPixmap(size() * ratio);
    m_picture.setDevicePixelRatio(ratio);
    const PlotColors colors = plot_colors(palette());
    m_picture.fill(colors.background);
    if (m_content.empty() || width() < 20 || height() < 20) return;
    QPainter painter(&m_picture);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.scale(scale, scale);
    const FigureFont chart_font{font().family(),
                                font().pointSizeF() > 0.0 ? font().pointSizeF() * 0.92 : 9.0};
    PainterCanvas canvas(painter, chart_font, PainterTarget::raster);
    m_frame = draw_chart(canvas, m_content, {chart_font, colors, 0.0}, QSizeF(size()) / scale);
}

void ChartPlot::paintEvent(QPaintEvent*)
{
    if (m_picture.isNull()) drawPicture();
    QPainter painter(this);
    if (!isEnabled()) painter.setOpacity(0.45); // a picture that belongs to older settings
    painter.drawPixmap(0, 0, m_picture);
    if (m_content.empty()) return;
    const PlotColors colors = plot_colors(palette());
    painter.setRenderHint(QPainter::Antialiasing);
    const QRectF area(m_frame.area.topLeft() * pixelsPerPoint(), m_frame.area.size() * pixelsPerPoint());
    painter.setClipRect(area);
    painter.setPen(QPen(colors.mark, 1.5));
    painter.setBrush(Qt::NoBrush);
    if (m_line) {
        const double x = placeOf(*m_line, 0.0).x();
        painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
    }
    for (const QPointF& ring : m_rings) painter.drawEllipse(placeOf(ring.x(), ring.y()), 7.0, 7.0);
    if (m_readout.isEmpty()) return;
    painter.setClipping(false);
    const QRectF text = readoutPlace(painter, area);
    QColor back = colors.background;
    back.setAlphaF(0.85F);
    painter.fillRect(text.adjusted(-3, -2, 3, 2), back);
    painter.setPen(colors.text);
    painter.drawText(text, Qt::AlignCenter, m_readout);
}

/// The corner of the plot where the line of text hides the fewest curves.
QRectF ChartPlot::readoutPlace(const QPainter& painter, const QRectF& area) const
{
    const QRectF inside = area.adjusted(6, 4, -6, -4);
    QSizeF size = QFontMetricsF(painter.font()).size(Qt::TextSingleLine, m_readout);
    size.setWidth(std::min(size.width(), inside.width()));
    std::optional<QRectF> best;
    int fewest = 0;
    for (const bool bottom : {false, true})
        for (const bool left : {false, true}) {
            const QRectF corner(QPointF(left ? inside.left() : inside.right() - size.width(),
                                        bottom ? inside.bottom() - size.height() : inside.top()),
                                size);
            int hidden = 0;
            for (const ChartSeries& series : m_content.series)
                for (std::size_t k = 0; k < series.x.size(); ++k) {
                    const QPointF here = placeOf(series.x[k], series.y[k]);
                    // A line between two points passes through the middle as well.
                    const QPointF middle =
                        k == 0 ? here : 0.5 * (here + placeOf(series.x[k - 1], series.y[k - 1]));
                    hidden += corner.contains(here) || corner.contains(middle) ? 1 : 0;
                }
            if (!best || hidden < fewest) {
                best = corner;
                fewest = hidden;
            }
        }
    return *best;
}

void ChartPlot::resizeEvent(QResizeEvent*)
{
    m_picture = QPixmap();
}

void ChartPlot::mouseMoveEvent(QMouseEvent* event)
{
    if (m_pressed && (event->buttons() & Qt::LeftButton) && m_content.image.isNull()) {
        const QPointF step = event->position() - *m_pressed;
        if (m_dragged || step.manhattanLength() > 6.0) {
            const QPointF from = chartAt(*m_pressed), to = chartAt(event->position());
            m_content.x_range = {m_frame.left - (to.x() - from.x()), m_frame.right - (to.x() - from.x())};
            if (m_content.is_map)
                m_content.y_range = {m_frame.bottom - (to.y() - from.y()), m_frame.top - (to.y() - from.y())};
            m_pressed = event->position();
            m_dragged = true;
            m_picture = QPixmap();
            update();
            return;
        }
    }
    if (isInside(event->position()))
        Q_EMIT hovered(event->position());
    else
        Q_EMIT left();
}

void ChartPlot::mousePressEvent(QMouseEvent* event)
{
    if (event->button() != Qt::LeftButton) return;
    m_pressed = event->position();
    m_dragged = false;
}

void ChartPlot::mouseReleaseEvent(QMouseEvent* event)
{
    if (event->button() != Qt::LeftButton) return;
    if (m_pressed && !m_dragged && isInside(event->position())) Q_EMIT clicked(event->position());
    m_pressed.reset();
}

void ChartPlot::mouseDoubleClickEvent(QMouseEvent*)
{
    m_content.x_range.reset();
    m_content.y_range.reset();
    m_picture = QPixmap();
    update();
}

void ChartPlot::wheelEvent(QWheelEvent* event)
{
    if (!isInside(event->position()) || !m_content.image.isNull()) return;
    const QPointF at = chartAt(event->position());
    const double factor = std::pow(0.998, event->angleDelta().y());
    const auto shrunk = [&](double low, double high, double about) {
        return std::pair(about + factor * (low - about), about + factor * (high - about));
    };
    m_content.x_range = shrunk(m_frame.left, m_frame.right, at.x());
    if (m_content.is_map) m_content.y_range = shrunk(m_frame.bottom, m_frame.top, at.y());
    m_picture = QPixmap();
    update();
    event->accept();
}

void ChartPlot::leaveEvent(QEvent*)
{
    Q_EMIT left();
}

void ChartPlot::changeEvent(QEvent* event)
{
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) {
        m_picture = QPixmap();
        update();
    } else if (event->type() == QEvent::EnabledChange) {
        update();
    }
    QWidget::changeEvent(event);
}

} // namespace posiscope::ui
