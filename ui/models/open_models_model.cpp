// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/open_models_model.h"

#include "ui/analysis_controller.h"
#include "ui/convert.h"
#include "ui/session_text.h"

namespace posiscope::ui {

OpenModelsModel::OpenModelsModel(AnalysisController* controller, QObject* parent)
    : QAbstractListModel(parent), m_controller(controller),
      m_rows(static_cast<int>(controller->models().size()))
{
    connect(controller, &AnalysisController::modelsChanged, this, [this] {
        beginResetModel();
        m_rows = static_cast<int>(m_controller->models().size());
        endResetModel();
    });
}

int OpenModelsModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : m_rows;
}

QVariant OpenModelsModel::data(const QModelIndex& index, int role) const
{
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
    const auto row = static_cast<std::size_t>(index.row());
    if (row >= m_controller->models().size()) return {};
    const OpenEntry& open = m_controller->models()[row];
    const QString name = to_qstring(open.model->checkpoint->display_name());
    switch (role) {
    case Qt::DisplayRole: return name;
    case Qt::ToolTipRole:
        return QStringLiteral("%1\n%2\n%3")
            .arg(open.location, scheme_line(*open.model), sizes_line(*open.model));
    case Qt::AccessibleTextRole:
        return QStringLiteral("%1, %2, %3").arg(name, scheme_line(*open.model), sizes_line(*open.model));
    case scheme_role: return scheme_line(*open.model);
    case sizes_role: return sizes_line(*open.model);
    case is_current_role: return m_controller->current() == &open;
    case id_role: return open.id;
    default: return {};
    }
}

int OpenModelsModel::currentRow() const
{
    for (int row = 0; row < m_rows; ++row)
        if (index(row).data(is_current_role).toBool()) return row;
    return -1;
}

} // namespace posiscope::ui
