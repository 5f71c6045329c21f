// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QVariantMap>
#include <QWidget>

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/session/session.h"
#include "ui/analysis_settings.h"

class QSettings;
class QSplitter;

namespace posiscope::ui {

class Panel;
class SharedCursor;

/// One arrangement of panels.
struct WorkspaceLayout {
    std::string_view id; ///< stable: written to settings
    const char* label;   ///< English source text, context "layouts"
    bool single;         ///< one panel only
};
std::span<const WorkspaceLayout> workspace_layouts();

/// The panels: a large one at the left, two above each other at the right; movable, and any of them may fill it all.
class Workspace : public QWidget {
    Q_OBJECT

public:
    explicit Workspace(SharedCursor* cursor, QWidget* parent = nullptr);

    [[nodiscard]] const std::vector<Panel*>& panels() const { return m_panels; }
    /// The panel that has the focus, or had it last.
    [[nodiscard]] Panel* focusedPanel() const { return m_focused; }
    [[nodiscard]] ViewNeeds needs() const;

    void setLayoutId(std::string_view id);
    [[nodiscard]] std::string_view layoutId() const;
    /// Lets one panel fill the workspace; null: back to all.
    void fill(Panel* panel);
    [[nodiscard]] Panel* filled() const { return m_filled; }

    void setSession(const std::shared_ptr<const core::Session>& session);
    void setBusy(bool picture, bool metrics);
    void setProgress(const QString& label, qulonglong done, qulonglong total);
    void setObstacle(const QString& sentence);

    /// The first panel whose view runs something of its own; null: none does.
    [[nodiscard]] Panel* workingPanel() const;
    /// Whether a view's work was stopped before it was done.
    [[nodiscard]] bool isStopped() const;
    void stopWork();
    void runAgain();

    void save(QSettings& settings) const;
    void restore(QSettings& settings);

Q_SIGNALS:
    void needsChanged();
    void layoutChanged();
    void openRequested();
    void headChosen(int head);
    void layerChosen(const QString& stack, int layer);
    /// As Panel::choiceMade.
    void choiceMade(posiscope::ui::Panel* panel, const QVariantMap& before, const QVariantMap& after,
                    const QString& what);
    void failed(const posiscope::core::Error& error, const QString& subject);
    /// workingPanel() or isStopped() may have changed.
    void workChanged();
    /// How far workingPanel() is.
    void workProgressed(const QString& label, qulonglong done, qulonglong total);

protected:
    void showEvent(QShowEvent* event) override;

private:
    void arrange();
    void takeFocus(QWidget* now);

    QSplitter* m_columns;
    QSplitter* m_left;
    QSplitter* m_right;
    std::vector<Panel*> m_panels;
    const WorkspaceLayout* m_layout;
    Panel* m_filled = nullptr;
    Panel* m_focused = nullptr;
    bool m_has_sizes = false; ///< splitters were restored, or given their first sizes
};

} // namespace posiscope::ui
