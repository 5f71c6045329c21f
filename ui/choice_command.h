// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPointer>
#include <QUndoCommand>
#include <QVariantMap>

#include <string>

#include "ui/widgets/panel.h"

namespace posiscope::ui {

/// A choice in one view as a step of undo, beside those of the settings. Quick steps of the same choice are one.
class ChoiceCommand : public QUndoCommand {
public:
    /// The choice has been made already.
    ChoiceCommand(Panel* panel, const QVariantMap& before, const QVariantMap& after, const QString& what);

    void undo() override;
    void redo() override;
    [[nodiscard]] int id() const override;
    bool mergeWith(const QUndoCommand* other) override;

private:
    QPointer<Panel> m_panel;
    std::string m_view_id;
    QVariantMap m_before;
    QVariantMap m_after;
    qint64 m_time_ms;
    bool m_is_done = true; ///< QUndoStack calls redo() when a command is pushed
};

} // namespace posiscope::ui
