// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/segmented_buttons.h"

#include <QButtonGroup>
#include <QEvent>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QToolButton>

#include "ui/theme.h"

namespace posiscope::ui {

SegmentedButtons::SegmentedButtons(QWidget* parent)
    : QWidget(parent), m_group(new QButtonGroup(this)), m_layout(new QHBoxLayout(this))
{
    m_layout->setContentsMargins(0, 0, 0, 0);
    m_layout->setSpacing(0);
    connect(m_group, &QButtonGroup::idClicked, this, &SegmentedButtons::chosen);
}

void SegmentedButtons::addChoice(const QString& text, const QString& tool_tip, const QString& accessible_name)
{
    auto* button = new QToolButton(this);
    button->setText(text);
    button->setToolTip(tool_tip);
    button->setAccessibleName(accessible_name);
    button->setCheckable(true);
    button->setFocusPolicy(Qt::StrongFocus);
    button->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    m_group->addButton(button, static_cast<int>(m_buttons.size()));
    m_buttons.append(button);
    m_layout->addWidget(button, 1);
    restyle();
}

void SegmentedButtons::setCurrent(int index)
{
    m_buttons.at(index)->setChecked(true);
}

int SegmentedButtons::current() const
{
    return m_group->checkedId();
}

void SegmentedButtons::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange) restyle();
}

void SegmentedButtons::restyle()
{
    const QString line = divider_color(QGuiApplication::palette()).name();
    for (qsizetype k = 0; k < m_buttons.size(); ++k) {
        const int left = k == 0 ? 4 : 0;
        const int right = k + 1 == m_buttons.size() ? 4 : 0;
        const QString style =
            QStringLiteral(
                "QToolButton { border: 1px solid %1; %2 padding: 4px 4px; background: palette(base);"
                " color: palette(text); border-top-left-radius: %3px; border-bottom-left-radius: %3px;"
                " border-top-right-radius: %4px; border-bottom-right-radius: %4px; }"
                "QToolButton:hover { background: palette(alternate-base); }"
                "QToolButton:focus { border-color: palette(highlight); }"
                "QToolButton:checked { background: palette(highlight); color: palette(highlighted-text);"
                " border-color: palette(highlight); }"
                "QToolButton:checked:focus { border-color: palette(text); }"
                "QToolButton:disabled { color: palette(mid); }")
                .arg(line, k == 0 ? QString() : QStringLiteral("border-left: none;"))
                .arg(left)
                .arg(right);
        // Setting a style sheet sends a palette change: only where there is something to set.
        if (m_buttons[k]->styleSheet() != style) m_buttons[k]->setStyleSheet(style);
    }
}

} // namespace posiscope::ui
