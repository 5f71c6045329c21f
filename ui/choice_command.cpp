// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/choice_command.h"

#include <QDateTime>

namespace posiscope::ui {
namespace {

constexpr qint64 merge_window_ms = 1000; ///< as for the settings
constexpr int command_id = 1000;         ///< apart from every SettingField

} // namespace

ChoiceCommand::ChoiceCommand(Panel* panel, const QVariantMap& before, const QVariantMap& after,
                             const QString& what)
    : m_panel(panel), m_view_id(panel->viewId()), m_before(before), m_after(after),
      m_time_ms(QDateTime::currentMSecsSinceEpoch())
{
    setText(what);
}

void ChoiceCommand::undo()
{
    if (m_panel) m_panel->setChoices(m_view_id, m_before);
}

void ChoiceCommand::redo()
{
    if (m_is_done)
        m_is_done = false;
    else if (m_panel)
        m_panel->setChoices(m_view_id, m_after);
}

int ChoiceCommand::id() const
{
    return command_id;
}

bool ChoiceCommand::mergeWith(const QUndoCommand* other)
{
    const auto* newer = static_cast<const ChoiceCommand*>(other); // QUndoStack compares the ids
    if (newer->m_panel != m_panel || newer->m_view_id != m_view_id || newer->text() != text() ||
        newer->m_time_ms - m_time_ms > merge_window_ms)
        return false;
    m_after = newer->m_after;
    m_time_ms = newer->m_time_ms;
    setObsolete(m_before == m_after);
    return true;
}

} // namespace posiscope::ui
