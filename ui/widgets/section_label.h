// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLabel>

namespace posiscope::ui {

/// Heads a group of settings: small capitals in quiet text.
class SectionLabel : public QLabel {
    Q_OBJECT

public:
    explicit SectionLabel(const QString& text, QWidget* parent = nullptr);
};

} // namespace posiscope::ui
