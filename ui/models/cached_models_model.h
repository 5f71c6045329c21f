// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractTableModel>

#include <vector>

#include "core/checkpoint/hub_cache.h"

namespace posiscope::ui {

/// The models in the cache of Hugging Face's programs, one row each.
class CachedModelsModel : public QAbstractTableModel {
    Q_OBJECT

public:
    enum Column { name_column, family_column, size_column, revision_column, column_count };
    /// What opens the model; and what a column is sorted by: numbers as numbers.
    enum Role { location_role = Qt::UserRole, sort_role };

    using QAbstractTableModel::QAbstractTableModel;

    void setModels(std::vector<core::CachedModel> models);

    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation,
                                      int role = Qt::DisplayRole) const override;

private:
    std::vector<core::CachedModel> m_models;
};

} // namespace posiscope::ui
