// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/session/layer_metrics.h"
#include "ui/views/stacks_view.h"

class QComboBox;
class QProgressBar;
class QToolButton;

namespace posiscope::ui {

class ChartPlot;

/// One metric of every stack against the layer.
ChartContent layer_metric_chart(const core::LayerMetrics& found, std::size_t metric);
/// Attention distance of one stack against the query position, a curve for each layer.
/// @param ratio  to that of a uniform row over the same keys
ChartContent layer_distance_chart(const core::StackLayers& stack, bool ratio);

/// Each property metric against the layer, for all stacks of the model, and how far each query looks, layer by layer.
/// The whole network runs, so the old picture stays while the new one is computed, with progress and a way to stop.
class LayerMetricsView : public StacksView {
    Q_OBJECT

public:
    explicit LayerMetricsView(QWidget* parent = nullptr);

    [[nodiscard]] QString contextLine() const override;
    [[nodiscard]] FigureSpec figure() const override;
    [[nodiscard]] QVariantMap choices() const override;
    void setChoices(const QVariantMap& choices) override;
    [[nodiscard]] bool isWorking() const override { return false; } ///< shows its progress itself

    [[nodiscard]] ChartPlot* plot() const { return m_plot; }
    [[nodiscard]] QComboBox* shownBox() const { return m_shown; }
    [[nodiscard]] QToolButton* stopButton() const { return m_stop; }

protected:
    void compute() override;
    void showCursor() override;

private:
    [[nodiscard]] bool showsDistance() const;
    [[nodiscard]] const core::StackLayers* shownStack() const;
    void show();
    void showWork();
    void goToLayerAt(const QPointF& place);

    StacksWish m_found_for;
    std::shared_ptr<const core::LayerMetrics> m_found;
    QComboBox* m_shown;
    QProgressBar* m_progress;
    QToolButton* m_stop;
    ChartPlot* m_plot;
};

} // namespace posiscope::ui
