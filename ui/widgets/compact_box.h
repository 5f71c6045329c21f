// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QComboBox>

namespace posiscope::ui {

/// A choice that is as wide as what is chosen, not as the longest of its entries: a row of them stays short.
class CompactBox : public QComboBox {
    Q_OBJECT

public:
    explicit CompactBox(QWidget* parent = nullptr);

    [[nodiscard]] QSize sizeHint() const override;
    [[nodiscard]] QSize minimumSizeHint() const override { return sizeHint(); }
    void showPopup() override;
};

} // namespace posiscope::ui
