// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractListModel>

namespace posiscope::ui {

class AnalysisController;

/// The open models as a list: name, family and scheme, sizes.
class OpenModelsModel : public QAbstractListModel {
    Q_OBJECT

public:
    enum Role { scheme_role = Qt::UserRole, sizes_role, is_current_role, id_role };

    explicit OpenModelsModel(AnalysisController* controller, QObject* parent = nullptr);

    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
    /// Row of the current model; -1 where none is open.
    [[nodiscard]] int currentRow() const;

private:
    AnalysisController* m_controller;
    int m_rows = 0; ///< as the views know it; the controller's list has changed already when it tells of it
};

} // namespace posiscope::ui
