// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>
#include <QString>

#include "core/checkpoint/hub_cache.h"
#include "ui/task_runner.h"

class QLabel;
class QLineEdit;
class QPushButton;
class QSortFilterProxyModel;
class QStackedWidget;
class QTableView;

namespace posiscope::ui {

class CachedModelsModel;

/// Opens a model from the cache of Hugging Face's own programs, or by its name on the Hub. It only chooses: the window
/// opens, and tells of failures.
class HubPickerDialog : public QDialog {
    Q_OBJECT

public:
    explicit HubPickerDialog(QWidget* parent = nullptr);

    [[nodiscard]] QLineEdit* search() const { return m_search; }
    [[nodiscard]] QTableView* table() const { return m_table; }
    [[nodiscard]] QLineEdit* address() const { return m_address; }
    [[nodiscard]] QPushButton* openButton() const { return m_open; }
    [[nodiscard]] QPushButton* openAddressButton() const { return m_open_address; }
    /// What is said in the place of the list; empty where the list is shown.
    [[nodiscard]] QString message() const;
    /// Why the address was not opened; empty where nothing was wrong.
    [[nodiscard]] QString addressFault() const;
    [[nodiscard]] bool isBusy() const { return m_runner.isRunning(); }

Q_SIGNALS:
    void chosen(const QString& location);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void readCache();
    void showModels(core::Result<std::vector<core::CachedModel>> models);
    void showMessage(const QString& sentence);
    void showMatches();
    void takeSelection();
    void openSelected();
    void openAddress();

    QLineEdit* m_search;
    QTableView* m_table;
    QStackedWidget* m_pages;
    QLabel* m_message;
    QLabel* m_folder_line;
    QLineEdit* m_address;
    QLabel* m_fault; ///< of the address, once it was to be opened
    QLabel* m_hint;
    QPushButton* m_open;
    QPushButton* m_open_address;
    CachedModelsModel* m_models;
    QSortFilterProxyModel* m_filter;
    TaskRunner m_runner; ///< last: it stops and waits before anything else goes
};

/// What a person typed as a model on the Hub or an address: "org/name" becomes "hf://org/name", what follows a "?" in an
/// address is dropped (it may be secret, and is not read).
/// @error invalid_argument
core::Result<std::string> remote_location_of(const QString& text);

} // namespace posiscope::ui
