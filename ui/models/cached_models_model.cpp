// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/cached_models_model.h"

#include <utility>

#include "core/base/text.h"
#include "ui/byte_text.h"
#include "ui/convert.h"

namespace posiscope::ui {
namespace {

/// "main" as it is; of a commit as much as is read out.
QString short_revision(const std::string& revision)
{
    constexpr std::size_t commit_length = 40, shown = 10;
    return to_qstring(
        core::printable(revision.size() == commit_length ? revision.substr(0, shown) : revision, 60));
}

} // namespace

void CachedModelsModel::setModels(std::vector<core::CachedModel> models)
{
    beginResetModel();
    m_models = std::move(models);
    endResetModel();
}

int CachedModelsModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_models.size());
}

int CachedModelsModel::columnCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : column_count;
}

QVariant CachedModelsModel::data(const QModelIndex& index, int role) const
{
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
    const core::CachedModel& model = m_models[static_cast<std::size_t>(index.row())];
    if (role == location_role) return QString::fromStdString(model.location);
    if (role == Qt::ToolTipRole)
        return tr("%1\nRevision %2")
            .arg(QString::fromStdString(model.location), to_qstring(core::printable(model.revision)));
    if (role == Qt::TextAlignmentRole)
        return QVariant::fromValue(Qt::Alignment(
            Qt::AlignVCenter | (index.column() == size_column ? Qt::AlignRight : Qt::AlignLeft)));
    if (role != Qt::DisplayRole && role != sort_role) return {};
    switch (index.column()) {
    case name_column: return to_qstring(core::printable(model.name));
    case family_column:
        return model.family.empty() ? (role == sort_role ? QString() : QStringLiteral("\u2013"))
                                    : to_qstring(core::printable(model.family, 40));
    case size_column:
        if (role == sort_role) return static_cast<qulonglong>(model.bytes);
        return model.bytes == 0 ? QStringLiteral("\u2013") : shown_bytes(model.bytes);
    case revision_column: return short_revision(model.revision);
    default: return {};
    }
}

QVariant CachedModelsModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal) return {};
    if (role == Qt::TextAlignmentRole)
        return QVariant::fromValue(
            Qt::Alignment(Qt::AlignVCenter | (section == size_column ? Qt::AlignRight : Qt::AlignLeft)));
    if (role == Qt::ToolTipRole) {
        if (section == family_column) return tr("The config's model_type");
        if (section == size_column) return tr("Of the files of weights in the snapshot");
        if (section == revision_column) return tr("Branch or tag that leads to the snapshot, or its commit");
    }
    if (role != Qt::DisplayRole) return {};
    switch (section) {
    case name_column: return tr("Name");
    case family_column: return tr("Family");
    case size_column: return tr("Size");
    case revision_column: return tr("Revision");
    default: return {};
    }
}

} // namespace posiscope::ui
