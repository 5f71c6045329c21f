// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTimer>

#include <atomic>

#include "core/projection/pca.h"
#include "core/projection/position_vectors.h"
#include "core/projection/tsne.h"
#include "ui/views/position_view.h"

class QCheckBox;
class QComboBox;
class QDoubleSpinBox;
class QSpinBox;
class QToolButton;

namespace posiscope::ui {

class ChartPlot;

/// The position vectors in the plane: t-SNE, which can be watched, and principal components beside it.
class PositionMapView : public PositionView {
    Q_OBJECT

public:
    explicit PositionMapView(QWidget* parent = nullptr);

    [[nodiscard]] QVariantMap choices() const override;
    void setChoices(const QVariantMap& choices) override;
    [[nodiscard]] bool isWorking() const override { return false; } ///< the map is watched instead
    [[nodiscard]] bool canExport() const override;
    [[nodiscard]] FigureSpec figure() const override;

    /// Ends t-SNE where it stands; what is seen stays.
    void stop();

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
        std::atomic<std::shared_ptr<const TensorDigests>> read;
    };

    void choose(const QString& what, bool computes);
    [[nodiscard]] core::TsneOptions options() const;
    void takeShown();
    void showWatched();
    void takeStopped();
    void showMap(ChartPlot* plot, const core::PointMap2D& points, bool keepView);
    void connectPlot(ChartPlot* plot);
    void hover(ChartPlot* plot, const QPointF& place, bool click);
    [[nodiscard]] QString nearestText(std::size_t row) const;

    QComboBox* m_shown;
    QToolButton* m_stop;
    QTimer m_stop_delay;
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
