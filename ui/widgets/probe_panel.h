// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "core/probe/probe_result.h"
#include "ui/analysis_settings.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QSlider;
class QSpinBox;
class QStackedWidget;

namespace posiscope::ui {

class AnalysisController;
class SegmentedButtons;

/// PROBE at the left of the window: the one set of settings. Every change acts at once.
class ProbePanel : public QWidget {
    Q_OBJECT

public:
    explicit ProbePanel(AnalysisController* controller, QWidget* parent = nullptr);

    // For tests and for the keys of the window.
    [[nodiscard]] QSlider* lengthSlider() const { return m_length_slider; }
    [[nodiscard]] QSpinBox* lengthBox() const { return m_length_box; }
    [[nodiscard]] SegmentedButtons* quantityButtons() const { return m_quantity; }
    [[nodiscard]] QComboBox* wordsKindBox() const { return m_words_kind; }
    [[nodiscard]] QLineEdit* wordsEdit() const { return m_words_edit; }
    [[nodiscard]] QSpinBox* wordCountBox() const { return m_word_count; }
    [[nodiscard]] QComboBox* headBox() const { return m_head; }
    [[nodiscard]] QCheckBox* specialTokensBox() const { return m_special; }
    [[nodiscard]] QCheckBox* firstPositionBox() const { return m_with_first; }
    [[nodiscard]] QSpinBox* seedBox() const { return m_seed; }
    [[nodiscard]] QSpinBox* layerBox() const { return m_layer; }

private:
    void build();
    void connectAll();
    void takeSettings();
    void takeWords(const core::WordSelection& words);
    void applyWords();
    /// The settings with one change made to them, handed on.
    template <class Change>
    void apply(SettingField field, Change change);

    AnalysisController* m_controller;
    core::WordSelection m_taken_words; ///< as the widgets show them
    bool m_is_taking = false; ///< widgets are being set from the settings: their signals are not wishes

    QLabel* m_stack_label;
    QComboBox* m_stack;
    QSpinBox* m_layer;
    QLabel* m_layer_count;
    QComboBox* m_head;
    SegmentedButtons* m_quantity;
    QComboBox* m_words_kind;
    QStackedWidget* m_words_pages;
    QSpinBox* m_word_count;
    QLineEdit* m_words_edit;
    QLabel* m_words_all;
    QSlider* m_length_slider;
    QSpinBox* m_length_box;
    QCheckBox* m_special;
    QCheckBox* m_with_first;
    QSpinBox* m_seed;
};

} // namespace posiscope::ui
