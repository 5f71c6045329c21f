// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/compact_box.h"

#include <QAbstractItemView>
#include <QScrollBar>
#include <QStyleOptionComboBox>

#include <algorithm>

namespace posiscope::ui {

CompactBox::CompactBox(QWidget* parent) : QComboBox(parent)
{
    setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Fixed);
    connect(this, &QComboBox::currentTextChanged, this, &CompactBox::updateGeometry);
}

QSize CompactBox::sizeHint() const
{
    QStyleOptionComboBox option;
    initStyleOption(&option);
    const QFontMetrics metrics = fontMetrics();
    const QSize text(metrics.horizontalAdvance(currentText()) + 2, std::max(metrics.height(), 14) + 2);
    return style()->sizeFromContents(QStyle::CT_ComboBox, &option, text, this);
}

void CompactBox::showPopup()
{
    // The list shows every entry in full.
    view()->setMinimumWidth(view()->sizeHintForColumn(0) + 2 * view()->frameWidth() +
                            view()->verticalScrollBar()->sizeHint().width());
    QComboBox::showPopup();
}

} // namespace posiscope::ui
