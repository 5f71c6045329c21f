// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractTableModel>
#include <QSortFilterProxyModel>

#include <memory>
#include <optional>

#include "core/metrics/metric_list.h"
#include "core/metrics/metric_table.h"

namespace posiscope::ui {

/// A metric as tables show it: "0.187", "\u00b1 0.004"; the error is empty where there is none.
struct MetricTexts {
    QString value;
    QString error;
};
MetricTexts metric_texts(const core::MetricRow& row, std::size_t metric);

/// The property table as Qt sees it: what the row is about, then one column for each metric.
class MetricTableModel : public QAbstractTableModel {
    Q_OBJECT

public:
    enum Column {
        model_column,
        stack_column,
        layer_column,
        head_column,
        quantity_column,
        positions_column,
        first_metric
    };
    enum Role {
        sort_role = Qt::UserRole, ///< number or text to sort by; an invalid variant where undefined
        value_role,               ///< "0.187"
        error_role,               ///< "\u00b1 0.004", empty where there is none
        quantity_role,            ///< core::Quantity of the row as int
    };

    using QAbstractTableModel::QAbstractTableModel;

    void setTable(std::shared_ptr<const core::MetricTable> table);
    [[nodiscard]] const core::MetricTable& table() const { return *m_table; }

    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
    [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    [[nodiscard]] QVariant describedData(const core::MetricRow& row, int column, int role) const;
    [[nodiscard]] QVariant metricData(const core::MetricRow& row, std::size_t metric, int role) const;

    std::shared_ptr<const core::MetricTable> m_table = std::make_shared<const core::MetricTable>();
};

/// Sorts and filters the property table; what is undefined comes last in either order.
class MetricTableFilter : public QSortFilterProxyModel {
    Q_OBJECT

public:
    using QSortFilterProxyModel::QSortFilterProxyModel;

    void setQuantity(std::optional<core::Quantity> quantity);
    void setModelName(const QString& name); ///< empty: all models

    /// The rows that are shown, in their order.
    [[nodiscard]] core::MetricTable shownRows() const;

protected:
    [[nodiscard]] bool filterAcceptsRow(int row, const QModelIndex& parent) const override;
    [[nodiscard]] bool lessThan(const QModelIndex& left, const QModelIndex& right) const override;

private:
    std::optional<core::Quantity> m_quantity;
    QString m_model_name;
};

} // namespace posiscope::ui
