// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/settings_button.h"

#include <QFormLayout>
#include <QFrame>
#include <QScreen>

#include <algorithm>

#include "ui/theme.h"

namespace posiscope::ui {

SettingsButton::SettingsButton(const QString& text, QWidget* parent)
    : MenuButton(parent), m_popup(new QFrame(this, Qt::Popup)), m_form(new QFormLayout(m_popup))
{
    setText(text);
    setAccessibleName(text);
    m_popup->setFrameShape(QFrame::StyledPanel);
    m_popup->setAccessibleName(text);
    m_popup->setAttribute(Qt::WA_NoMouseReplay); // a click on the button closes, and does not open again
    m_form->setContentsMargins(2 * grid, 2 * grid, 2 * grid, 2 * grid);
    m_form->setHorizontalSpacing(2 * grid);
    m_form->setVerticalSpacing(grid);
    connect(this, &QToolButton::clicked, this, &SettingsButton::openPopup);
}

void SettingsButton::addRow(const QString& label, QWidget* control)
{
    m_form->addRow(label, control);
}

void SettingsButton::openPopup()
{
    m_popup->adjustSize();
    QPoint place = mapToGlobal(QPoint(0, height()));
    // Inside the screen: to the left where the right end is near, above where the lower end is.
    if (const QScreen* its_screen = screen()) {
        const QRect room = its_screen->availableGeometry();
        place.setX(std::max(room.left(), std::min(place.x(), room.right() + 1 - m_popup->width())));
        if (place.y() + m_popup->height() > room.bottom() + 1)
            place.setY(mapToGlobal(QPoint(0, 0)).y() - m_popup->height());
    }
    m_popup->move(place);
    m_popup->show();
    if (m_form->rowCount() > 0) m_form->itemAt(0, QFormLayout::FieldRole)->widget()->setFocus();
}

} // namespace posiscope::ui
