// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>

#include <functional>

#include "ui/figure/figure_spec.h"
#include "ui/task_runner.h"

class QCheckBox;
class QComboBox;
class QDialogButtonBox;
class QDoubleSpinBox;
class QFontComboBox;
class QLabel;
class QLineEdit;
class QSpinBox;

namespace posiscope::ui {

class ErrorBanner;
class FigurePreview;

/// Writes what a panel shows to a file or the clipboard: a live preview at true proportion beside size, font, colours
/// and format. The last choice is remembered. Failures are told inside the dialog, which stays open.
class ExportDialog : public QDialog {
    Q_OBJECT

public:
    explicit ExportDialog(FigureSpec spec, QWidget* parent = nullptr);

    [[nodiscard]] FigureOptions options() const;
    [[nodiscard]] FigureFormat format() const;
    void setOptions(const FigureOptions& options);
    void setFormat(FigureFormat format);

    /// Writes the file, in the format of its extension, and closes the dialog; on failure tells it and stays. While the
    /// record of the figure is still made (isRecording) both follow as soon as that is done.
    void saveTo(const QString& path);
    /// Puts the figure on the clipboard as PNG, SVG and PDF, and says so; later where the record is still made.
    void copy();
    /// Whether the tensors are still read that the figure was computed from.
    [[nodiscard]] bool isRecording() const { return m_recorder.isRunning(); }
    /// What the banner says; empty while it is hidden.
    [[nodiscard]] QString bannerText() const;

private:
    void startRecord();
    void whenRecorded(const QString& doing, std::function<void()> then);
    void write(const QString& path);
    void putOnClipboard();
    void chooseFile();
    void takePreset(int row);
    void settingChanged();
    void restoreChoice();
    void rememberChoice() const;

    FigureSpec m_spec;
    FigurePreview* m_preview;
    QLabel* m_size_text;
    ErrorBanner* m_banner;
    QComboBox* m_preset;
    QDoubleSpinBox* m_width;
    QDoubleSpinBox* m_height;
    QFontComboBox* m_font;
    QDoubleSpinBox* m_font_size;
    QComboBox* m_colors;
    QCheckBox* m_title;
    QLineEdit* m_letter;
    QComboBox* m_format;
    QSpinBox* m_dpi;
    QDialogButtonBox* m_buttons;
    bool m_setting_many = false;
    std::function<void()> m_waiting; ///< what a person asked for while the record was made
    TaskRunner m_recorder;           ///< last member: it stops before the rest goes
};

} // namespace posiscope::ui
