// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStyledItemDelegate>

#include <algorithm>

#include "ui/theme.h"

namespace posiscope::ui {

/// Cells of lists and trees with a little air: rows that can be told apart, columns that do not touch.
class RoomyDelegate : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    [[nodiscard]] QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override
    {
        const QSize size = QStyledItemDelegate::sizeHint(option, index);
        return {size.width() + grid, std::max(size.height(), option.fontMetrics.height() + grid)};
    }
};

} // namespace posiscope::ui
