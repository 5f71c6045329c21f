// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

#include <array>

#include "ui/figure/figure_spec.h"
#include "ui/plot/color_scale.h"
#include "ui/task_runner.h"
#include "ui/views/analysis_view.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QStackedWidget;
class QToolButton;

namespace posiscope::ui {

class HeadGrid;
class HeatmapPlot;

/// The attention map: the mean or the spread over words of the quantity that the settings choose, or one of the terms
/// of the logits; or all heads as small maps, of which one is picked.
class AttentionHeatmapView : public AnalysisView {
    Q_OBJECT

public:
    explicit AttentionHeatmapView(QWidget* parent = nullptr);

    void setSession(std::shared_ptr<const core::Session> session) override;
    [[nodiscard]] QString contextLine() const override;
    void setSharedCursor(SharedCursor* cursor) override;
    [[nodiscard]] ViewNeeds needs() const override;
    [[nodiscard]] bool canExport() const override; ///< one map, not the heads side by side
    void exportShown() override;
    [[nodiscard]] QVariantMap choices() const override;
    void setChoices(const QVariantMap& choices) override;

    [[nodiscard]] HeatmapPlot* plot() const { return m_plot; }
    [[nodiscard]] QComboBox* shownBox() const { return m_shown; }
    [[nodiscard]] QComboBox* scaleBox() const { return m_scale; }
    [[nodiscard]] QComboBox* colorsBox() const { return m_colors; }
    [[nodiscard]] QToolButton* headsButton() const { return m_heads; }
    [[nodiscard]] HeadGrid* headGrid() const { return m_grid; }
    /// What "Export" would write; the map must be there.
    [[nodiscard]] FigureSpec figure() const;

private:
    [[nodiscard]] QString shownId() const;
    [[nodiscard]] bool showsTerm() const;
    [[nodiscard]] MapMeaning meaning() const;
    /// The map that the choices ask for; null where the session lacks it.
    [[nodiscard]] const core::PositionMap* chosenMap() const;
    [[nodiscard]] QString quantityName() const;
    void takeColors();
    [[nodiscard]] QString quantityOfGrid() const;
    void showChosen();
    void showMap();
    void showHeads();
    void tellContext();
    void showCursor();

    std::shared_ptr<const core::Session> m_session;
    SharedCursor* m_cursor = nullptr;
    QString m_context_line;
    std::array<ColorDefaults, 3> m_choice_of_colors; ///< by MapMeaning

    QComboBox* m_shown;
    QComboBox* m_scale;
    QComboBox* m_colors;
    QCheckBox* m_profiles;
    QToolButton* m_heads;
    HeatmapPlot* m_plot;
    HeadGrid* m_grid;
    QLabel* m_absent;
    QStackedWidget* m_pages;
    TaskRunner m_picture_runner; ///< last member: it stops before the rest goes
};

} // namespace posiscope::ui
