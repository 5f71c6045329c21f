// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>

#include "core/session/image_grid.h"
#include "ui/figure/chart.h"
#include "ui/views/position_view.h"

class QLabel;

namespace posiscope::ui {

class ChartPlot;

/// The grid of similarity maps of an image model's position vectors, with one patch enlarged and the two-dimensional
/// metrics of the vectors and of the attention.
class ImageGridView : public PositionView {
    Q_OBJECT

public:
    explicit ImageGridView(QWidget* parent = nullptr);

    void setSession(std::shared_ptr<const core::Session> session) override;
    [[nodiscard]] FigureSpec figure() const override;

    [[nodiscard]] ChartPlot* gridPlot() const { return m_grid_plot; }
    [[nodiscard]] ChartPlot* patchPlot() const { return m_patch_plot; }
    /// The enlarged map: a patch, or from the number of patches on a token before them.
    [[nodiscard]] int patch() const { return m_patch; }
    void choosePatch(int patch);
    [[nodiscard]] QString metricsText() const;

protected:
    void compute() override;
    void showCursor() override;
    [[nodiscard]] QString pictureLine() const override;

private:
    /// Made by the task, pictures and all.
    struct Found {
        core::ImageGrid grid;
        ChartContent chart;
        [[nodiscard]] int patches() const { return static_cast<int>(grid.map.length); }
        [[nodiscard]] int special() const { return static_cast<int>(grid.map.first_position); }
    };
    [[nodiscard]] std::optional<int> patchAt(const QPointF& place) const;
    void computeAttention();
    void showMetrics();

    ChartPlot* m_grid_plot;
    ChartPlot* m_patch_plot;
    QLabel* m_metrics;
    std::shared_ptr<const Found> m_found;
    std::shared_ptr<const core::Session> m_session;
    std::optional<core::GridMetrics> m_attention; ///< of what the heatmap shows
    QString m_attention_name;
    int m_patch = 0;
    TaskRunner m_attention_runner; ///< last member: it stops before the rest goes
};

} // namespace posiscope::ui
