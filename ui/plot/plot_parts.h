// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <vector>

#include <qcustomplot.h>

#include "ui/plot/plot_colors.h"
#include "ui/plot/ticks.h"

// Parts that the plots share. Included by the .cpp files of ui/plot only: qcustomplot.h defines Qt's keywords.
namespace posiscope::ui {

/// A layout whose elements are placed by hand. `arrange` runs before each replot's layout pass, so that sizes, tick
/// marks and places come from one look at the plot's viewport.
class PlotStage : public QCPLayoutInset {
public:
    std::function<void()> arrange;

    void place(QCPLayoutElement* element, const QRect& rect);
    void update(UpdatePhase phase) override;
    void updateLayout() override;

private:
    QHash<QCPLayoutElement*, QRect> m_rects;
};

/// Draws marks that were computed by ticks.h.
class FixedTicker : public QCPAxisTicker {
public:
    void setMarks(std::vector<Tick> marks) { m_marks = std::move(marks); }
    [[nodiscard]] const std::vector<Tick>& marks() const { return m_marks; }
    void generate(const QCPRange& range, const QLocale& locale, QChar format_char, int precision,
                  QVector<double>& ticks, QVector<double>* sub_ticks, QVector<QString>* labels) override;

private:
    std::vector<Tick> m_marks;
};

/// An item that is drawn by a function with a plain QPainter (QCPPainter rounds lines), clipped to `rect` or (null) not at all.
class DrawnItem : public QCPAbstractItem {
public:
    DrawnItem(QCustomPlot* plot, QCPAxisRect* rect, std::function<void(QPainter&)> drawing);
    double selectTest(const QPointF&, bool, QVariant*) const override { return -1.0; }

protected:
    void draw(QCPPainter* painter) override;

private:
    std::function<void(QPainter&)> m_drawing;
};

/// An axis rect without margins of its own, with the four axes visible as a frame or not at all.
QCPAxisRect* make_axis_rect(QCustomPlot* plot);

/// Colours, font and distances that all axes share.
void style_axis(QCPAxis* axis, const PlotColors& colors, const QFont& font);

/// Length of tick marks, space to the labels and to the axis name, in pixels.
inline constexpr int tick_length = 4;
inline constexpr int tick_padding = 3;
inline constexpr int name_padding = 4;

} // namespace posiscope::ui
