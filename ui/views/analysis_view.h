// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QVariantMap>
#include <QWidget>

#include <memory>

#include "core/session/session.h"
#include "ui/analysis_settings.h"

class QSettings;

namespace posiscope::ui {

class SharedCursor;

/// One way of looking at a session. A view shows and computes nothing: numbers come from the session. To add one:
/// a `<name>_view.{h,cpp}` and a row in view_table.cpp.
class AnalysisView : public QWidget {
    Q_OBJECT

public:
    using QWidget::QWidget;

    /// Shows another session. Called on the UI thread with a session that this view's row applies to.
    virtual void setSession(std::shared_ptr<const core::Session> session) = 0;

    /// The line in the panel's head: which settings made what is seen.
    [[nodiscard]] virtual QString contextLine() const = 0;

    /// Marks the place that is pointed at in any view, and tells of the one pointed at here. Not owned.
    virtual void setSharedCursor(SharedCursor* cursor) = 0;

    /// What this view wants computed besides the map.
    [[nodiscard]] virtual ViewNeeds needs() const { return {}; }

    /// Whether this view itself computes something newer than what is seen, and does not show it growing.
    [[nodiscard]] virtual bool isWorking() const { return false; }

    /// Whether anything runs in the background for this view: the window's strip shows it, with a button that stops it.
    [[nodiscard]] virtual bool hasWork() const { return isWorking(); }
    /// Asks it to stop; what is seen stays.
    virtual void stopWork() {}
    /// Whether work was stopped before it was done, which runAgain() does.
    [[nodiscard]] virtual bool isStopped() const { return false; }
    virtual void runAgain() {}

    /// Whether what is seen now can be written.
    [[nodiscard]] virtual bool canExport() const { return true; }
    /// Opens the dialog that writes what is seen to a file.
    virtual void exportShown() = 0;

    /// What a person chose in this view, by name; names are stable, as they are written to settings.
    [[nodiscard]] virtual QVariantMap choices() const { return {}; }
    /// Takes choices over; names that are missing or hold nonsense leave theirs as they are.
    virtual void setChoices(const QVariantMap& choices);

    /// The choices that are kept from one start of the program to the next.
    virtual void saveChoices(QSettings& settings) const;
    virtual void restoreChoices(QSettings& settings);

Q_SIGNALS:
    void needsChanged();
    void contextChanged();
    /// isWorking(), hasWork() or isStopped() may have changed.
    void workChanged();
    void progressed(const QString& stage, qulonglong done, qulonglong total);
    /// A person changed choices(); `what` names the choice ("perplexity") for undo.
    void choiceMade(const QString& what);
    /// A person asked for another view here.
    void viewWanted(const QString& id);
    /// A head was picked here: the settings should take it.
    void headChosen(int head);
    /// A layer was picked here.
    void layerChosen(const QString& stack, int layer);
    /// A write failed.
    void failed(const posiscope::core::Error& error, const QString& subject);
};

} // namespace posiscope::ui
