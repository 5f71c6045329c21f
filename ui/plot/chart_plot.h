// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <vector>

#include <QPointF>
#include <QWidget>

#include "ui/figure/chart_layout.h"

namespace posiscope::ui {

/// A chart in the window, drawn as figures are. The wheel zooms about the pointer, dragging moves, a double click shows
/// all again.
class ChartPlot : public QWidget {
    Q_OBJECT

public:
    explicit ChartPlot(QWidget* parent = nullptr);

    /// Shows a chart. @param keepView  the zoom stays
    void setChart(ChartContent content, bool keepView = false);
    [[nodiscard]] const ChartContent& chart() const { return m_content; }

    /// Makes another chart show the part that is seen here.
    void giveView(ChartContent& content) const
    {
        content.x_range = m_content.x_range;
        content.y_range = m_content.y_range;
    }

    /// Rings around points (chart units), a vertical line, and a line of text at the top; all drawn over the chart.
    void setMarks(std::vector<QPointF> rings, std::optional<double> line = {}, const QString& readout = {});
    [[nodiscard]] const std::vector<QPointF>& rings() const { return m_rings; }
    [[nodiscard]] std::optional<double> markedLine() const { return m_line; }

    /// The point of a series nearest to a place, within `reach` pixels.
    [[nodiscard]] std::optional<std::size_t> pointNear(std::size_t series, const QPointF& place,
                                                       double reach = 24.0) const;
    /// Chart units at a place of this widget, and the reverse. Valid after the first painting.
    [[nodiscard]] QPointF chartAt(const QPointF& place) const;
    [[nodiscard]] QPointF placeOf(double x, double y) const;
    [[nodiscard]] bool isInside(const QPointF& place) const;

    [[nodiscard]] QSize sizeHint() const override { return {320, 280}; }
    [[nodiscard]] QSize minimumSizeHint() const override { return {140, 120}; }

Q_SIGNALS:
    void hovered(const QPointF& place);
    void left();
    void clicked(const QPointF& place);

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    [[nodiscard]] double pixelsPerPoint() const;
    void drawPicture();
    [[nodiscard]] QRectF readoutPlace(const QPainter& painter, const QRectF& area) const;

    ChartContent m_content;
    ChartFrame m_frame; ///< in points
    QPixmap m_picture;  ///< the chart without marks; null: to be drawn
    std::vector<QPointF> m_rings;
    std::optional<double> m_line;
    QString m_readout;
    std::optional<QPointF> m_pressed;
    bool m_dragged = false;
};

} // namespace posiscope::ui
