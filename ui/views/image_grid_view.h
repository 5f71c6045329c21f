// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/metrics/position_similarity.h"
#include "core/projection/position_vectors.h"
#include "ui/figure/chart.h"
#include "ui/views/position_view.h"

namespace posiscope::ui {

class ChartPlot;

/// One small map for each patch, laid out as the patches are: how similar its position vector is to every patch's.
/// @param map  [rows * columns, rows * columns]
ChartContent image_grid_chart(const core::PositionMap& map, std::int64_t rows, std::int64_t columns);
/// The map of one patch alone.
ChartContent image_patch_chart(const core::PositionMap& map, std::int64_t rows, std::int64_t columns,
                               std::int64_t patch);

/// The grid of similarity maps of an image model's position vectors, with one patch enlarged.
class ImageGridView : public PositionView {
    Q_OBJECT

public:
    explicit ImageGridView(QWidget* parent = nullptr);

    void saveChoices(QSettings& settings) const override;
    void restoreChoices(QSettings& settings) override;
    [[nodiscard]] FigureSpec figure() const override;

    [[nodiscard]] ChartPlot* gridPlot() const { return m_grid_plot; }
    [[nodiscard]] ChartPlot* patchPlot() const { return m_patch_plot; }
    [[nodiscard]] int patch() const { return m_patch; }
    void choosePatch(int patch);

protected:
    void compute() override;
    void showCursor() override;
    [[nodiscard]] QString pictureLine() const override;

private:
    struct Found {
        core::PositionMap map;
        std::int64_t rows = 0, columns = 0;
        std::string source;
        int special = 0; ///< rows before the patches
    };
    [[nodiscard]] std::optional<int> patchAt(const QPointF& place) const;

    ChartPlot* m_grid_plot;
    ChartPlot* m_patch_plot;
    std::shared_ptr<const Found> m_found;
    int m_patch = 0;
};

} // namespace posiscope::ui
