// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/metric_table_model.h"

#include <cmath>

#include "core/metrics/metric_list.h"
#include "ui/convert.h"
#include "ui/session_text.h"

namespace posiscope::ui {
namespace {

constexpr int decimals_of_fractions = 3;
constexpr int decimals_of_errors = 4; ///< errors over 300 words are mostly below 0.001

int decimals_of(const core::Metric& metric)
{
    return metric.whole_number ? 0 : decimals_of_fractions;
}

QString range_sentence(const core::Metric& metric)
{
    switch (metric.better) {
    case core::BetterWhen::lower:
        return std::isfinite(metric.most)
                   ? MetricTableModel::tr("%1 (holds) to %2.").arg(metric.least).arg(metric.most)
                   : MetricTableModel::tr("Lower means that the property holds better.");
    case core::BetterWhen::higher:
        return MetricTableModel::tr("Higher means that the property holds better.");
    case core::BetterWhen::near_zero: return MetricTableModel::tr("0 means that both sides weigh the same.");
    case core::BetterWhen::neutral: return {};
    }
    return {};
}

QString no_value()
{
    return QStringLiteral("\u2013");
}

/// Files give 0 for the ends of a white band that is not there, as they give its width; a table of offsets would read as
/// a band of the diagonal alone.
bool is_edge_of_no_band(const core::MetricRow& row, std::size_t metric_index)
{
    const auto metrics = core::metric_list();
    if (metrics[metric_index].id != "white_band.first" && metrics[metric_index].id != "white_band.last")
        return false;
    for (std::size_t m = 0; m < metrics.size() && m < row.values.size(); ++m)
        if (metrics[m].id == "white_band.width") return row.values[m].value == 0.0;
    return false;
}

} // namespace

MetricTexts metric_texts(const core::MetricRow& row, std::size_t metric_index)
{
    const core::Metric& metric = core::metric_list()[metric_index];
    const core::MetricValue& value = row.values[metric_index];
    if (is_edge_of_no_band(row, metric_index)) return {no_value(), {}};
    MetricTexts texts{shown_number(value.value, decimals_of(metric)), {}};
    if (std::isfinite(value.value) && std::isfinite(value.standard_error))
        texts.error = QStringLiteral("\u00b1 ") +
                      shown_number(value.standard_error, metric.whole_number ? 1 : decimals_of_errors);
    return texts;
}

void MetricTableModel::setTable(std::shared_ptr<const core::MetricTable> table)
{
    if (!table) table = std::make_shared<const core::MetricTable>();
    if (table == m_table) return;
    const auto is_about_the_same = [](const core::MetricRow& a, const core::MetricRow& b) {
        return a.model == b.model && a.stack == b.stack && a.layer == b.layer && a.head == b.head &&
               a.quantity == b.quantity && a.positions == b.positions;
    };
    const bool same_rows = std::equal(table->rows.begin(), table->rows.end(), m_table->rows.begin(),
                                      m_table->rows.end(), is_about_the_same);
    // New values for the same rows keep selection and scroll position.
    if (same_rows && !table->rows.empty()) {
        m_table = std::move(table);
        Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1));
        return;
    }
    beginResetModel();
    m_table = std::move(table);
    endResetModel();
}

int MetricTableModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_table->rows.size());
}

int MetricTableModel::columnCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : first_metric + static_cast<int>(core::metric_list().size());
}

QVariant MetricTableModel::data(const QModelIndex& index, int role) const
{
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
    const core::MetricRow& row = m_table->rows[static_cast<std::size_t>(index.row())];
    if (role == quantity_role) return static_cast<int>(row.quantity);
    if (index.column() < first_metric) return describedData(row, index.column(), role);
    return metricData(row, static_cast<std::size_t>(index.column() - first_metric), role);
}

QVariant MetricTableModel::describedData(const core::MetricRow& row, int column, int role) const
{
    const bool is_number = column == layer_column;
    if (role == Qt::TextAlignmentRole)
        return QVariant::fromValue(is_number ? Qt::AlignRight | Qt::AlignVCenter
                                             : Qt::AlignLeft | Qt::AlignVCenter);
    if (role == sort_role && is_number) return row.layer;
    if (role == sort_role && column == head_column) return row.head;
    if (role == sort_role && column == quantity_column) return static_cast<int>(row.quantity);
    if (role != Qt::DisplayRole && role != value_role && role != sort_role) return {};
    switch (column) {
    case model_column: return to_qstring(row.model);
    case stack_column: return to_qstring(row.stack);
    case layer_column: return QString::number(row.layer);
    case head_column: return row.head == core::mean_of_heads ? tr("mean") : QString::number(row.head);
    case quantity_column: return quantity_short_label(row.quantity);
    case positions_column: return positions_label(row.positions);
    default: return {};
    }
}

QVariant MetricTableModel::metricData(const core::MetricRow& row, std::size_t metric_index, int role) const
{
    if (metric_index >= row.values.size()) return {};
    const core::Metric& metric = core::metric_list()[metric_index];
    const core::MetricValue& value = row.values[metric_index];
    const MetricTexts texts = metric_texts(row, metric_index);
    const bool no_band = is_edge_of_no_band(row, metric_index);
    switch (role) {
    case Qt::DisplayRole: return texts.error.isEmpty() ? texts.value : texts.value + u' ' + texts.error;
    case value_role: return texts.value;
    case error_role: return texts.error;
    case sort_role: return std::isfinite(value.value) && !no_band ? QVariant(value.value) : QVariant();
    case Qt::TextAlignmentRole: return QVariant::fromValue(Qt::AlignRight | Qt::AlignVCenter);
    case Qt::ToolTipRole:
        if (no_band) return tr("%1: there is no white band.").arg(to_qstring(metric.label));
        if (std::isfinite(value.value))
            return QStringLiteral("%1: %2 %3")
                .arg(to_qstring(metric.label), shown_value(value.value), texts.error);
        return row.flat ? tr("Undefined: this map is flat, the positions have no preference at all.")
                        : tr("%1 is not defined for this map.").arg(to_qstring(metric.label));
    default: return {};
    }
}

QVariant MetricTableModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation == Qt::Vertical) return {};
    if (section < first_metric) {
        if (role == Qt::TextAlignmentRole)
            return QVariant::fromValue(section == layer_column ? Qt::AlignRight | Qt::AlignVCenter
                                                               : Qt::AlignLeft | Qt::AlignVCenter);
        if (role != Qt::DisplayRole) return {};
        switch (section) {
        case model_column: return tr("Model");
        case stack_column: return tr("Stack");
        case layer_column: return tr("Layer");
        case head_column: return tr("Head");
        case quantity_column: return tr("Quantity");
        case positions_column: return tr("Positions");
        default: return {};
        }
    }
    const auto metric_index = static_cast<std::size_t>(section - first_metric);
    if (metric_index >= core::metric_list().size()) return {};
    const core::Metric& metric = core::metric_list()[metric_index];
    switch (role) {
    case Qt::DisplayRole: return to_qstring(metric.short_label);
    case Qt::TextAlignmentRole: return QVariant::fromValue(Qt::AlignRight | Qt::AlignVCenter);
    case Qt::ToolTipRole:
        return QStringLiteral("<p><b>%1</b></p><p>%2 %3</p><p><i>%4</i></p>")
            .arg(to_qstring(metric.label).toHtmlEscaped(), to_qstring(metric.explanation).toHtmlEscaped(),
                 range_sentence(metric).toHtmlEscaped(), to_qstring(metric.source).toHtmlEscaped());
    default: return {};
    }
}

void MetricTableFilter::setQuantity(std::optional<core::Quantity> quantity)
{
    if (quantity == m_quantity) return;
    m_quantity = quantity;
    invalidateFilter();
}

void MetricTableFilter::setModelName(const QString& name)
{
    if (name == m_model_name) return;
    m_model_name = name;
    invalidateFilter();
}

core::MetricTable MetricTableFilter::shownRows() const
{
    core::MetricTable shown;
    const auto* source = qobject_cast<const MetricTableModel*>(sourceModel());
    for (int row = 0; row < rowCount(); ++row)
        shown.rows.push_back(
            source->table().rows[static_cast<std::size_t>(mapToSource(index(row, 0)).row())]);
    return shown;
}

bool MetricTableFilter::filterAcceptsRow(int row, const QModelIndex& parent) const
{
    const QModelIndex index = sourceModel()->index(row, MetricTableModel::model_column, parent);
    if (m_quantity && index.data(MetricTableModel::quantity_role).toInt() != static_cast<int>(*m_quantity))
        return false;
    return m_model_name.isEmpty() || index.data(Qt::DisplayRole).toString() == m_model_name;
}

bool MetricTableFilter::lessThan(const QModelIndex& left, const QModelIndex& right) const
{
    const QVariant a = left.data(MetricTableModel::sort_role);
    const QVariant b = right.data(MetricTableModel::sort_role);
    if (a.isValid() != b.isValid()) return a.isValid() == (sortOrder() == Qt::AscendingOrder);
    if (!a.isValid()) return false;
    if (a.userType() == QMetaType::QString)
        return QString::localeAwareCompare(a.toString(), b.toString()) < 0;
    return a.toDouble() < b.toDouble();
}

} // namespace posiscope::ui
