// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plot/plot_parts.h"

namespace posiscope::ui {

void PlotStage::place(QCPLayoutElement* element, const QRect& rect)
{
    m_rects.insert(element, rect);
}

void PlotStage::update(UpdatePhase phase)
{
    if (phase == upPreparation && arrange) arrange();
    QCPLayoutInset::update(phase);
}

void PlotStage::updateLayout()
{
    for (int n = 0; n < elementCount(); ++n)
        if (QCPLayoutElement* element = elementAt(n)) element->setOuterRect(m_rects.value(element));
}

void FixedTicker::generate(const QCPRange& range, const QLocale&, QChar, int, QVector<double>& ticks,
                           QVector<double>* sub_ticks, QVector<QString>* labels)
{
    ticks.clear();
    if (sub_ticks) sub_ticks->clear();
    if (labels) labels->clear();
    for (const Tick& mark : m_marks) {
        if (mark.at < range.lower || mark.at > range.upper) continue;
        ticks.append(mark.at);
        if (labels) labels->append(mark.label);
    }
}

DrawnItem::DrawnItem(QCustomPlot* plot, QCPAxisRect* rect, std::function<void(QPainter&)> drawing)
    : QCPAbstractItem(plot), m_drawing(std::move(drawing))
{
    setClipToAxisRect(rect != nullptr);
    if (rect) setClipAxisRect(rect);
    setSelectable(false);
}

void DrawnItem::draw(QCPPainter* painter)
{
    painter->save();
    // Off in QCustomPlot's own way first: it shifts everything by half a pixel along with antialiasing.
    painter->setAntialiasing(false);
    m_drawing(*painter);
    painter->restore();
}

QCPAxisRect* make_axis_rect(QCustomPlot* plot)
{
    auto* rect = new QCPAxisRect(plot, true);
    rect->setAutoMargins(QCP::msNone);
    rect->setMargins(QMargins());
    rect->setMinimumMargins(QMargins());
    rect->setMinimumSize(1, 1);
    rect->setupFullAxesBox(true);
    for (QCPAxis* axis : rect->axes()) {
        axis->setLayer(QStringLiteral("axes"));
        axis->grid()->setVisible(false);
        axis->setSubTicks(false);
        const bool labelled = axis->axisType() == QCPAxis::atLeft || axis->axisType() == QCPAxis::atBottom;
        axis->setTicks(labelled);
        axis->setTickLabels(labelled);
    }
    return rect;
}

void style_axis(QCPAxis* axis, const PlotColors& colors, const QFont& font)
{
    const QPen pen(colors.frame, 1.0);
    axis->setBasePen(pen);
    axis->setTickPen(pen);
    axis->setTickLength(0, tick_length);
    axis->setTickLabelPadding(tick_padding);
    axis->setLabelPadding(name_padding);
    axis->setTickLabelColor(colors.text);
    axis->setLabelColor(colors.text);
    axis->setTickLabelFont(font);
    axis->setLabelFont(font);
}

} // namespace posiscope::ui
