// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>

#include "core/projection/pca.h"
#include "core/projection/position_vectors.h"
#include "core/projection/tsne.h"
#include "ui/figure/chart.h"
#include "ui/views/position_view.h"

class QCheckBox;
class QComboBox;
class QDoubleSpinBox;
class QSpinBox;

namespace posiscope::ui {

class ChartPlot;

/// A map of vectors as a chart: coloured by position with a bar, neighbours joined, numbers at round positions, special and
/// unused rows as rings in the background's colour.
ChartContent position_map_chart(const core::PositionVectors& vectors, const std::vector<double>& x,
                                const std::vector<double>& y, bool joined);

/// The position vectors in the plane: t-SNE, which can be watched, and principal components beside it.
class PositionMapView : public PositionView {
    Q_OBJECT

public:
    explicit PositionMapView(QWidget* parent = nullptr);

    void saveChoices(QSettings& settings) const override;
    void restoreChoices(QSettings& settings) override;
    [[nodiscard]] FigureSpec figure() const override;

    [[nodiscard]] ChartPlot* tsnePlot() const { return m_tsne_plot; }
    [[nodiscard]] ChartPlot* pcaPlot() const { return m_pca_plot; }

protected:
    void compute() override;
    void showCursor() override;
    [[nodiscard]] QString pictureLine() const override;

private:
    /// Everything the task makes, t-SNE last.
    struct Maps {
        std::shared_ptr<const core::PositionVectors> vectors;
        core::PcaMap pca;
        core::TsneResult tsne;
    };
    /// What the running task has so far; handed over whole, so that nobody waits.
    struct Watched {
        std::atomic<std::shared_ptr<const core::PositionVectors>> vectors;
        std::atomic<std::shared_ptr<const core::PcaMap>> pca;
        std::atomic<std::shared_ptr<const core::PointMap2D>> points;
        std::atomic<std::size_t> iteration{0};
    };

    void showWatched();
    void showMap(ChartPlot* plot, const core::PointMap2D& points, bool keepView);
    void connectPlot(ChartPlot* plot);
    void hover(ChartPlot* plot, const QPointF& place, bool click);
    [[nodiscard]] QString nearestText(std::size_t row) const;

    QComboBox* m_shown;
    QDoubleSpinBox* m_perplexity;
    QSpinBox* m_iterations;
    QSpinBox* m_seed;
    QComboBox* m_start;
    QCheckBox* m_joined;
    ChartPlot* m_tsne_plot;
    ChartPlot* m_pca_plot;

    std::shared_ptr<Watched> m_watched;
    std::shared_ptr<const core::PositionVectors> m_vectors;
    std::optional<core::TsneResult> m_tsne;
    core::PcaMap m_pca;
    std::vector<std::vector<std::size_t>> m_nearest;
    std::size_t m_iteration = 0;
};

} // namespace posiscope::ui
