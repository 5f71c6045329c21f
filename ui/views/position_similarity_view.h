// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPoint>

#include <optional>

#include "core/metrics/position_similarity.h"
#include "core/projection/position_vectors.h"
#include "ui/views/position_view.h"

class QComboBox;
class QLabel;
class QStackedWidget;

namespace posiscope::ui {

class ChartPlot;
class HeatmapPlot;
struct MarkedPlace;

/// What position vectors say by themselves: similarity, norms, singular values, spectrum and decodability.
class PositionSimilarityView : public PositionView {
    Q_OBJECT

public:
    explicit PositionSimilarityView(QWidget* parent = nullptr);

    [[nodiscard]] QVariantMap choices() const override;
    void setChoices(const QVariantMap& choices) override;
    [[nodiscard]] bool canExport() const override; ///< not the page of numbers
    [[nodiscard]] FigureSpec figure() const override;
    [[nodiscard]] bool hasWork() const override
    {
        return PositionView::hasWork() || m_regressions.isRunning();
    }
    void stopWork() override;
    [[nodiscard]] bool isStopped() const override;
    void runAgain() override;

    [[nodiscard]] HeatmapPlot* map() const { return m_map; }
    [[nodiscard]] ChartPlot* chart() const { return m_chart; }
    [[nodiscard]] QString numbersText() const;

protected:
    void compute() override;
    void showCursor() override;
    [[nodiscard]] QString pictureLine() const override;

private:
    struct Found {
        core::PositionVectors vectors;
        core::PositionSimilarity similarity;
        std::array<double, 2> far_cosine{};
    };
    void show();
    void computeDecodability();
    /// Position (or offset) of a row, and the reverse.
    [[nodiscard]] MarkedPlace placeOf(int query, int key) const;
    [[nodiscard]] std::optional<QPoint> cellOf(const MarkedPlace& place) const;
    [[nodiscard]] QString numbersHtml() const;

    QComboBox* m_shown;
    QComboBox* m_kind;
    QStackedWidget* m_stack;
    HeatmapPlot* m_map;
    ChartPlot* m_chart;
    QLabel* m_numbers;
    std::shared_ptr<const Found> m_found;
    std::optional<core::Decodability> m_decodability; ///< of m_found; takes longer than the picture
    bool m_are_regressions_stopped = false;
    TaskRunner m_regressions; ///< last member: it stops before the rest goes
};

} // namespace posiscope::ui
