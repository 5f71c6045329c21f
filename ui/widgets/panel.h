// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFrame>
#include <QTimer>
#include <QVariantMap>

#include <memory>
#include <string>
#include <string_view>

#include "core/session/session.h"
#include "ui/analysis_settings.h"

class QLabel;
class QProgressBar;
class QSettings;
class QStackedLayout;
class QStackedWidget;
class QToolButton;

namespace posiscope::ui {

class AnalysisView;
class MenuButton;
class PanelVeil;
class SharedCursor;
struct ViewRow;

/// One place of the workspace: a head with a menu of views, and the view. It is in one of four states: empty (says
/// what to do), working (the old picture under a veil, with progress), done, cannot (one sentence why).
class Panel : public QFrame {
    Q_OBJECT

public:
    enum class State { empty, working, done, cannot };

    Panel(SharedCursor* cursor, std::string_view view_id, QWidget* parent = nullptr);

    void setView(std::string_view view_id);
    [[nodiscard]] std::string_view viewId() const;
    [[nodiscard]] AnalysisView* view() const { return m_view; }

    void setSession(std::shared_ptr<const core::Session> session);
    /// @param picture  a newer picture is being computed; @param metrics  newer metrics are
    void setBusy(bool picture, bool metrics);
    void setProgress(const QString& label, qulonglong done, qulonglong total);
    /// Why there is nothing new to show; empty: nothing stands against it. Matters only where nothing is shown.
    void setObstacle(const QString& sentence);

    /// Opens the view's export dialog where there is something to export.
    void exportShown();

    /// Whether this panel fills the workspace: changes what its button offers.
    void setFilled(bool filled);
    /// Whether filling would change anything.
    void setFillable(bool fillable);

    /// What the view itself runs in the background, as AnalysisView has it.
    [[nodiscard]] bool hasWork() const;
    [[nodiscard]] bool isStopped() const;
    void stopWork();
    void runAgain();
    [[nodiscard]] QString title() const;

    [[nodiscard]] State state() const;
    [[nodiscard]] QString contextLine() const;

    [[nodiscard]] QVariantMap choices() const;
    /// Shows a view with these choices, as undo does; tells of no choice.
    void setChoices(std::string_view view_id, const QVariantMap& choices);
    void saveChoices(QSettings& settings) const;
    void restoreChoices(QSettings& settings);

Q_SIGNALS:
    void fillRequested();
    void viewChanged();
    void needsChanged();
    void openRequested();
    void headChosen(int head);
    void layerChosen(const QString& stack, int layer);
    /// A person chose something in the view: `before` and `after` are its choices(), `what` names it.
    void choiceMade(const QVariantMap& before, const QVariantMap& after, const QString& what);
    void failed(const posiscope::core::Error& error, const QString& subject);
    /// hasWork() or isStopped() may have changed.
    void workChanged();
    void workProgressed(const QString& label, qulonglong done, qulonglong total);

protected:
    void keyPressEvent(QKeyEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void buildHead();
    void showContext();
    void showState();

    SharedCursor* m_cursor;
    const ViewRow* m_row = nullptr;
    AnalysisView* m_view = nullptr;
    std::shared_ptr<const core::Session> m_session;
    QString m_obstacle;
    QVariantMap m_choices; ///< of the view, since the last one that was made
    bool m_is_setting_choices = false;
    bool m_is_picture_busy = false;
    bool m_are_metrics_busy = false;

    MenuButton* m_title;
    QLabel* m_context;
    QToolButton* m_export_button;
    QToolButton* m_fill_button;
    QStackedWidget* m_pages;
    QWidget* m_view_page;
    QLabel* m_message;
    QWidget* m_open_button;
    PanelVeil* m_veil;
    QTimer m_veil_delay;
};

} // namespace posiscope::ui
