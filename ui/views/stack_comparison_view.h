// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>

#include "core/session/stack_maps.h"
#include "ui/plot/color_scale.h"
#include "ui/views/stacks_view.h"

class QComboBox;
class QLabel;

namespace posiscope::ui {

class ChartPlot;
class HeatmapPlot;

/// How far each query looks in every stack, against its position.
/// @param ratio  to a uniform row over the same keys
ChartContent stack_distance_chart(const core::StackMaps& found, bool ratio);

/// The two stacks of a model side by side: their maps on one colour scale, how far each query looks, and the numbers
/// that tell a decoder from an encoder.
class StackComparisonView : public StacksView {
    Q_OBJECT

public:
    explicit StackComparisonView(QWidget* parent = nullptr);

    [[nodiscard]] QString contextLine() const override;
    [[nodiscard]] FigureSpec figure() const override;
    [[nodiscard]] QVariantMap choices() const override;
    void setChoices(const QVariantMap& choices) override;

    [[nodiscard]] QComboBox* shownBox() const { return m_shown; }
    [[nodiscard]] QComboBox* scaleBox() const { return m_scale; }
    [[nodiscard]] HeatmapPlot* map(std::size_t stack) const { return m_maps.at(stack); }
    [[nodiscard]] ChartPlot* distancePlot() const { return m_distance; }
    [[nodiscard]] QLabel* numbers() const { return m_numbers; }

protected:
    void compute() override;
    void showCursor() override;

private:
    void show();
    [[nodiscard]] MapMeaning meaning() const;
    void takeScale();
    [[nodiscard]] QString numbersHtml() const;

    std::shared_ptr<const core::StackMaps> m_found;
    /// By MapMeaning, as in the heatmap: what suits logits darkens all but the largest probabilities.
    std::array<ScaleKind, 3> m_scales{default_colors(MapMeaning::magnitude).kind,
                                      default_colors(MapMeaning::signed_difference).kind,
                                      default_colors(MapMeaning::probability).kind};
    QComboBox* m_shown;
    QComboBox* m_scale;
    QWidget* m_pair;
    std::array<QLabel*, 2> m_names;
    std::array<HeatmapPlot*, 2> m_maps;
    ChartPlot* m_distance;
    QLabel* m_numbers;
};

} // namespace posiscope::ui
