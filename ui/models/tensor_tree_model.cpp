// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/tensor_tree_model.h"

#include <QGuiApplication>
#include <QPalette>
#include <QStringList>

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/text.h"
#include "ui/byte_text.h"
#include "ui/convert.h"
#include "ui/theme.h"

namespace posiscope::ui {

struct TensorTreeModel::Node {
    std::string name; ///< the part between two dots
    Node* parent = nullptr;
    int row = 0; ///< among its parent's children
    const core::TensorInfo* tensor = nullptr;
    std::uint64_t bytes = 0; ///< of all tensors in it
    int tensors = 0;
    std::vector<std::unique_ptr<Node>> children;
    std::map<std::string, Node*, std::less<>> by_name;

    Node* child(std::string_view part)
    {
        if (const auto at = by_name.find(part); at != by_name.end()) return at->second;
        auto fresh = std::make_unique<Node>();
        fresh->name = std::string(part);
        fresh->parent = this;
        Node* out = fresh.get();
        children.push_back(std::move(fresh));
        by_name.emplace(out->name, out);
        return out;
    }

    void sort()
    {
        std::sort(children.begin(), children.end(),
                  [](const auto& a, const auto& b) { return natural_less(a->name, b->name); });
        for (std::size_t n = 0; n < children.size(); ++n) {
            children[n]->row = static_cast<int>(n);
            children[n]->sort();
        }
    }
};

namespace {

constexpr std::size_t deepest = 64; ///< a name of a thousand dots is one row at the end

bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

} // namespace

bool natural_less(std::string_view a, std::string_view b)
{
    std::size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
        if (is_digit(a[i]) && is_digit(b[j])) {
            // By value, however long: without leading zeros the longer run is the larger number.
            std::size_t a_end = i, b_end = j;
            while (a_end < a.size() && is_digit(a[a_end])) ++a_end;
            while (b_end < b.size() && is_digit(b[b_end])) ++b_end;
            std::string_view left = a.substr(i, a_end - i), right = b.substr(j, b_end - j);
            left.remove_prefix(std::min(left.find_first_not_of('0'), left.size()));
            right.remove_prefix(std::min(right.find_first_not_of('0'), right.size()));
            if (left.size() != right.size()) return left.size() < right.size();
            if (left != right) return left < right;
            i = a_end;
            j = b_end;
            continue;
        }
        if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
        ++i;
        ++j;
    }
    if (a.size() - i != b.size() - j) return a.size() - i < b.size() - j;
    return a < b; // "01" and "1" are two names
}

QString shown_shape(const core::Shape& shape)
{
    if (shape.empty()) return QCoreApplication::translate("posiscope", "scalar");
    QStringList sizes;
    for (const std::int64_t size : shape) sizes.append(shown_count(static_cast<qulonglong>(size)));
    return sizes.join(QStringLiteral(" \u00D7 "));
}

std::uint64_t stored_size(const core::TensorInfo& info)
{
    const auto count = core::element_count(info.shape);
    return count ? core::stored_bytes(info.dtype, *count).value_or(0) : 0;
}

TensorTreeModel::TensorTreeModel(QObject* parent)
    : QAbstractItemModel(parent), m_root(std::make_unique<Node>())
{
}

TensorTreeModel::~TensorTreeModel() = default;

void TensorTreeModel::setCheckpoint(std::shared_ptr<const core::Checkpoint> checkpoint)
{
    beginResetModel();
    m_checkpoint = std::move(checkpoint);
    m_root = std::make_unique<Node>();
    if (m_checkpoint) {
        for (const core::TensorInfo& tensor : m_checkpoint->tensors()) {
            Node* at = m_root.get();
            std::string_view rest = tensor.name;
            for (std::size_t depth = 0; depth < deepest; ++depth) {
                const std::size_t dot = rest.find('.');
                if (dot == std::string_view::npos) break;
                at = at->child(rest.substr(0, dot));
                rest.remove_prefix(dot + 1);
            }
            at = at->child(rest);
            at->tensor = &tensor;
            const std::uint64_t bytes = stored_size(tensor);
            for (; at != nullptr; at = at->parent) {
                at->bytes += bytes;
                ++at->tensors;
            }
        }
        m_root->sort();
    }
    endResetModel();
}

QModelIndex TensorTreeModel::indexOf(std::string_view tensor) const
{
    const Node* at = m_root.get();
    std::string_view rest = tensor;
    for (std::size_t depth = 0; depth < deepest; ++depth) {
        const std::size_t dot = rest.find('.');
        if (dot == std::string_view::npos) break;
        const auto found = at->by_name.find(rest.substr(0, dot));
        if (found == at->by_name.end()) return {};
        at = found->second;
        rest.remove_prefix(dot + 1);
    }
    const auto found = at->by_name.find(rest);
    if (found == at->by_name.end() || found->second->tensor == nullptr) return {};
    return indexOfNode(found->second, name_column);
}

const TensorTreeModel::Node* TensorTreeModel::nodeAt(const QModelIndex& index) const
{
    return index.isValid() ? static_cast<const Node*>(index.constInternalPointer()) : m_root.get();
}

QModelIndex TensorTreeModel::indexOfNode(const Node* node, int column) const
{
    return node == m_root.get() || node == nullptr ? QModelIndex() : createIndex(node->row, column, node);
}

const core::TensorInfo* TensorTreeModel::tensorAt(const QModelIndex& index) const
{
    return index.isValid() ? nodeAt(index)->tensor : nullptr;
}

QModelIndex TensorTreeModel::index(int row, int column, const QModelIndex& parent) const
{
    if (!hasIndex(row, column, parent)) return {};
    return createIndex(row, column, nodeAt(parent)->children[static_cast<std::size_t>(row)].get());
}

QModelIndex TensorTreeModel::parent(const QModelIndex& index) const
{
    return index.isValid() ? indexOfNode(nodeAt(index)->parent, name_column) : QModelIndex();
}

int TensorTreeModel::rowCount(const QModelIndex& parent) const
{
    if (parent.column() > 0) return 0;
    return static_cast<int>(nodeAt(parent)->children.size());
}

int TensorTreeModel::columnCount(const QModelIndex&) const
{
    return column_count;
}

QVariant TensorTreeModel::data(const QModelIndex& index, int role) const
{
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
    const Node& node = *nodeAt(index);
    const core::TensorInfo* tensor = node.tensor;
    const bool is_group = tensor == nullptr;
    switch (role) {
    case tensor_role: return is_group ? QString() : to_qstring(tensor->name);
    case Qt::TextAlignmentRole:
        return QVariant::fromValue(
            Qt::Alignment(Qt::AlignVCenter |
                          (index.column() == size_column || index.column() == shape_column ? Qt::AlignRight
                                                                                           : Qt::AlignLeft)));
    case Qt::ForegroundRole:
        if (!is_group && !tensor->fault.empty())
            return QGuiApplication::palette().brush(QPalette::Disabled, QPalette::Text);
        if (is_group && index.column() != name_column) return quiet_text_color(QGuiApplication::palette());
        return {};
    case Qt::ToolTipRole: {
        if (is_group) return {};
        QString text = to_qstring(core::printable(tensor->name, 400));
        if (!tensor->stored_name.empty() && tensor->stored_name != tensor->name)
            text += QLatin1Char('\n') +
                    tr("in the file: %1").arg(to_qstring(core::printable(tensor->stored_name, 400)));
        if (!tensor->fault.empty())
            text += QLatin1Char('\n') +
                    tr("cannot be read: it %1").arg(to_qstring(core::printable(tensor->fault, 300)));
        return text;
    }
    case Qt::DisplayRole: break;
    default: return {};
    }
    switch (index.column()) {
    case name_column: return to_qstring(core::printable(node.name, 400));
    case shape_column:
        if (!is_group) return shown_shape(tensor->shape);
        return node.tensors == 1 ? tr("1 tensor") : tr("%1 tensors").arg(node.tensors);
    case type_column: return is_group ? QString() : to_qstring(core::dtype_name(tensor->dtype));
    case size_column: return shown_bytes(is_group ? node.bytes : stored_size(*tensor));
    default: return {};
    }
}

QVariant TensorTreeModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal) return {};
    if (role == Qt::TextAlignmentRole)
        return QVariant::fromValue(Qt::Alignment(
            Qt::AlignVCenter |
            (section == size_column || section == shape_column ? Qt::AlignRight : Qt::AlignLeft)));
    if (role == Qt::ToolTipRole && section == size_column) return tr("Bytes in the file");
    if (role != Qt::DisplayRole) return {};
    switch (section) {
    case name_column: return tr("Name");
    case shape_column: return tr("Shape");
    case type_column: return tr("Type");
    case size_column: return tr("Size");
    default: return {};
    }
}

TensorTreeFilter::TensorTreeFilter(QObject* parent) : QSortFilterProxyModel(parent)
{
    setRecursiveFilteringEnabled(true);
}

void TensorTreeFilter::setText(const QString& text)
{
    if (text == m_text) return;
    m_text = text;
    invalidateFilter();
}

bool TensorTreeFilter::filterAcceptsRow(int row, const QModelIndex& parent) const
{
    if (m_text.isEmpty()) return true;
    const QString name = sourceModel()->index(row, 0, parent).data(TensorTreeModel::tensor_role).toString();
    return name.contains(m_text, Qt::CaseInsensitive); // a group has none: it comes with its tensors
}

} // namespace posiscope::ui
