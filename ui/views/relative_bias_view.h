// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/metrics/relative_bias.h"
#include "ui/views/position_view.h"

class QComboBox;

namespace posiscope::ui {

class ChartPlot;
class HeatmapPlot;

/// What a relative scheme adds to the logits, by offset and as a map.
class RelativeBiasView : public PositionView {
    Q_OBJECT

public:
    explicit RelativeBiasView(QWidget* parent = nullptr);

    [[nodiscard]] QVariantMap choices() const override;
    void setChoices(const QVariantMap& choices) override;
    [[nodiscard]] FigureSpec figure() const override;

    [[nodiscard]] ChartPlot* curves() const { return m_curves; }
    [[nodiscard]] HeatmapPlot* picture() const { return m_picture; }

protected:
    void resizeEvent(QResizeEvent* event) override;
    void compute() override;
    void showCursor() override;
    [[nodiscard]] QString pictureLine() const override;

private:
    void show();
    void takeShown();
    [[nodiscard]] int head() const;

    QComboBox* m_shown;
    QComboBox* m_head;
    ChartPlot* m_curves;
    HeatmapPlot* m_picture;
    std::shared_ptr<const core::RelativeBias> m_bias;
};

} // namespace posiscope::ui
