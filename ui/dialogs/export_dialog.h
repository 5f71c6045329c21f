// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>

#include "ui/figure/figure_spec.h"

class QCheckBox;
class QComboBox;
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

    /// Writes the file, in the format of its extension, and closes the dialog; on failure tells it and stays.
    bool saveTo(const QString& path);
    /// Puts the figure on the clipboard as PNG, SVG and PDF, and says so.
    bool copy();
    /// What the banner says; empty while it is hidden.
    [[nodiscard]] QString bannerText() const;

private:
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
    bool m_setting_many = false;
};

} // namespace posiscope::ui
