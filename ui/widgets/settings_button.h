// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/widgets/menu_button.h"

class QFormLayout;
class QFrame;

namespace posiscope::ui {

/// A button that opens a small form below it: choices that are changed seldom and would crowd the row.
class SettingsButton : public MenuButton {
    Q_OBJECT

public:
    explicit SettingsButton(const QString& text, QWidget* parent = nullptr);

    /// A labelled control; the label takes the focus there.
    void addRow(const QString& label, QWidget* control);
    [[nodiscard]] QFrame* popup() const { return m_popup; }
    void openPopup();

private:
    QFrame* m_popup;
    QFormLayout* m_form;
};

} // namespace posiscope::ui
