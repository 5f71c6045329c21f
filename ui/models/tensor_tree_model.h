// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractItemModel>
#include <QSortFilterProxyModel>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/checkpoint/checkpoint.h"

namespace posiscope::ui {

/// The tensors of a checkpoint as a tree: names are split at their dots, and sorted so that layer 2 comes before layer
/// 10. A name may be a tensor and the beginning of others at once.
class TensorTreeModel : public QAbstractItemModel {
    Q_OBJECT

public:
    enum Column { name_column, shape_column, type_column, size_column, column_count };
    /// The whole name of a tensor; empty for a row that only groups others.
    enum Role { tensor_role = Qt::UserRole };

    explicit TensorTreeModel(QObject* parent = nullptr);
    ~TensorTreeModel() override;

    /// Shows the tensors of another checkpoint, which the model keeps open. Null: none.
    void setCheckpoint(std::shared_ptr<const core::Checkpoint> checkpoint);

    /// The row of a tensor by its whole name; invalid where there is none.
    [[nodiscard]] QModelIndex indexOf(std::string_view tensor) const;
    [[nodiscard]] const core::TensorInfo* tensorAt(const QModelIndex& index) const;

    [[nodiscard]] QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
    [[nodiscard]] QModelIndex parent(const QModelIndex& index) const override;
    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation,
                                      int role = Qt::DisplayRole) const override;

private:
    struct Node;
    [[nodiscard]] const Node* nodeAt(const QModelIndex& index) const;
    [[nodiscard]] QModelIndex indexOfNode(const Node* node, int column) const;

    std::shared_ptr<const core::Checkpoint> m_checkpoint;
    std::unique_ptr<Node> m_root;
};

/// The tensors whose whole names hold a text, whatever its case, and the rows above them.
class TensorTreeFilter : public QSortFilterProxyModel {
    Q_OBJECT

public:
    explicit TensorTreeFilter(QObject* parent = nullptr);
    void setText(const QString& text);

protected:
    [[nodiscard]] bool filterAcceptsRow(int row, const QModelIndex& parent) const override;

private:
    QString m_text;
};

/// Whether `a` comes before `b` where runs of digits count as numbers: "layer.2" before "layer.10".
bool natural_less(std::string_view a, std::string_view b);

/// "30 522 × 384"; "scalar".
QString shown_shape(const core::Shape& shape);

/// Bytes that a tensor takes in its file.
std::uint64_t stored_size(const core::TensorInfo& info);

} // namespace posiscope::ui
