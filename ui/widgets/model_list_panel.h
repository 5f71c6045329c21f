// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QListView;
class QMenu;

namespace posiscope::ui {

class AnalysisController;
class MenuButton;
class OpenModelsModel;

/// MODELS at the left of the window: the open models, of which one is looked at.
class ModelListPanel : public QWidget {
    Q_OBJECT

public:
    /// @param open_menu  what [+] offers; not owned
    ModelListPanel(AnalysisController* controller, QMenu* open_menu, QWidget* parent = nullptr);

    [[nodiscard]] QListView* list() const { return m_list; }

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void takeModels();
    void closeChosen();

    AnalysisController* m_controller;
    OpenModelsModel* m_model;
    QListView* m_list;
    MenuButton* m_add_button;
    bool m_is_taking = false;
};

} // namespace posiscope::ui
