// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/section_label.h"

namespace posiscope::ui {

SectionLabel::SectionLabel(const QString& text, QWidget* parent) : QLabel(text, parent)
{
    QFont label_font = font();
    label_font.setCapitalization(QFont::AllUppercase);
    label_font.setBold(true);
    label_font.setPointSizeF(label_font.pointSizeF() * 0.85);
    label_font.setLetterSpacing(QFont::AbsoluteSpacing, 0.6);
    setFont(label_font);
    setForegroundRole(QPalette::PlaceholderText);
}

} // namespace posiscope::ui
