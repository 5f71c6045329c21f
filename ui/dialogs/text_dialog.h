// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>

namespace posiscope::ui {

/// Shows rich text beside the window, which stays usable: explanations, the list of keys.
class TextDialog : public QDialog {
    Q_OBJECT

public:
    TextDialog(const QString& title, const QString& html, QWidget* parent = nullptr);
};

} // namespace posiscope::ui
