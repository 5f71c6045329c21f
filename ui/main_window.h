// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QMainWindow>

#include <functional>

#include "ui/analysis_settings.h"
#include "ui/theme.h"

class QActionGroup;
class QFrame;
class QMenu;

namespace posiscope::ui {

class AnalysisController;
class ErrorBanner;
class MenuButton;
class ModelListPanel;
class ProbePanel;
class ProgressStrip;
class SharedCursor;
class Workspace;

/// The shell: menus, models and settings at the left, the workspace of panels, the status line. It knows no single
/// view; those come from view_table.
class MainWindow : public QMainWindow {
    Q_OBJECT

public:
    explicit MainWindow(QWidget* parent = nullptr);
    ~MainWindow() override;

    /// Opens a folder, a weight file, "sample:NAME", "hf://org/name" or an address in the background.
    void openLocation(const QString& location);
    /// Opens the embedded sample, as at a first start.
    void openFirstSample();

    [[nodiscard]] AnalysisController* controller() const { return m_controller; }
    [[nodiscard]] Workspace* workspace() const { return m_workspace; }
    [[nodiscard]] ProbePanel* probePanel() const { return m_probe_panel; }
    [[nodiscard]] ModelListPanel* modelList() const { return m_model_list; }
    [[nodiscard]] ErrorBanner* banner() const { return m_banner; }
    [[nodiscard]] ProgressStrip* strip() const { return m_strip; }
    [[nodiscard]] SharedCursor* cursor() const { return m_cursor; }
    [[nodiscard]] QFrame* welcome() const { return m_welcome; }

protected:
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;
    void closeEvent(QCloseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void buildMenus();
    QMenu* buildOpenMenu();
    void buildCentre();
    void buildWelcome();
    void connectAll();
    QAction* addCommand(QMenu* menu, const QString& text, const QKeySequence& key,
                        const std::function<void()>& run);

    void chooseFolder();
    void chooseFile();
    void chooseFromHub();
    [[nodiscard]] QString workLabel(const QString& stage, qulonglong done, qulonglong total) const;
    void fillRecentMenu();
    void rememberRecent(const QString& location);
    void forgetRecent(const QString& location);

    void takeSession();
    void takeWork();
    void showPlace();
    void takeModel();
    void stepLayer(int step);
    void takeHead(int head);
    void takeLayer(const QString& stack, int layer);
    void stepHead(int step);
    void nextQuantity();
    void chooseTheme(ThemeChoice theme);
    void explainFocusedPanel();
    void showKeys();

    void restoreSettings();
    void saveSettings() const;

    AnalysisController* m_controller;
    SharedCursor* m_cursor;
    QMenu* m_open_menu = nullptr;
    QMenu* m_recent_menu = nullptr;
    QMenu* m_head_menu = nullptr;
    QList<QAction*> m_model_actions; ///< of use only while a model is open
    QString m_shown_opening;         ///< what the strip says is being opened
    QString m_shown_panel;           ///< whose work the strip shows; empty: no view's
    QActionGroup* m_layout_group = nullptr;
    QActionGroup* m_theme_group = nullptr;
    QAction* m_back_action = nullptr;
    MenuButton* m_layout_button = nullptr;
    QFrame* m_welcome = nullptr;
    ErrorBanner* m_banner = nullptr;
    ModelListPanel* m_model_list = nullptr;
    ProbePanel* m_probe_panel = nullptr;
    Workspace* m_workspace = nullptr;
    ProgressStrip* m_strip = nullptr;
};

} // namespace posiscope::ui
