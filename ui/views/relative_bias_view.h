// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/metrics/relative_bias.h"
#include "ui/figure/chart.h"
#include "ui/views/position_view.h"

class QComboBox;

namespace posiscope::ui {

class ChartPlot;
class HeatmapPlot;

/// Curves of a bias against the offset: each head thin, the mean thick, where buckets begin, and the white band.
ChartContent relative_bias_chart(const core::RelativeBias& bias, bool everyHead);

/// What a relative scheme adds to the logits, by offset and as a map.
class RelativeBiasView : public PositionView {
    Q_OBJECT

public:
    explicit RelativeBiasView(QWidget* parent = nullptr);

    void saveChoices(QSettings& settings) const override;
    void restoreChoices(QSettings& settings) override;
    [[nodiscard]] FigureSpec figure() const override;

    [[nodiscard]] ChartPlot* curves() const { return m_curves; }
    [[nodiscard]] HeatmapPlot* picture() const { return m_picture; }

protected:
    void compute() override;
    void showCursor() override;
    [[nodiscard]] QString pictureLine() const override;

private:
    void show();
    [[nodiscard]] QString valueName() const;

    QComboBox* m_shown;
    QComboBox* m_head;
    ChartPlot* m_curves;
    HeatmapPlot* m_picture;
    std::shared_ptr<const core::RelativeBias> m_bias;
};

} // namespace posiscope::ui
