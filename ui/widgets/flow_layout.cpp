// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/flow_layout.h"

#include <QWidget>

#include <algorithm>
#include <vector>

#include "ui/theme.h"

namespace posiscope::ui {

FlowLayout::FlowLayout(QWidget* parent) : QLayout(parent)
{
    setContentsMargins(grid, 0, grid, grid / 2);
    setSpacing(grid);
}

FlowLayout::~FlowLayout()
{
    qDeleteAll(m_items);
}

void FlowLayout::addItem(QLayoutItem* item)
{
    m_items.append(item);
    invalidate();
}

QLayoutItem* FlowLayout::itemAt(int index) const
{
    return m_items.value(index, nullptr);
}

QLayoutItem* FlowLayout::takeAt(int index)
{
    if (index < 0 || index >= m_items.size()) return nullptr;
    if (index < m_first_trailing) --m_first_trailing;
    return m_items.takeAt(index);
}

int FlowLayout::heightForWidth(int width) const
{
    return arrange(QRect(0, 0, width, 0), false);
}

QSize FlowLayout::sizeHint() const
{
    const QMargins margins = contentsMargins();
    QSize size(0, 0);
    for (const QLayoutItem* item : m_items) {
        if (item->isEmpty()) continue;
        const QSize one = item->sizeHint();
        size.setWidth(size.width() + (size.width() > 0 ? spacing() : 0) + one.width());
        size.setHeight(std::max(size.height(), one.height()));
    }
    return size + QSize(margins.left() + margins.right(), margins.top() + margins.bottom());
}

/// As wide as the widest control and as high as the highest.
QSize FlowLayout::minimumSize() const
{
    const QMargins margins = contentsMargins();
    QSize size(0, 0);
    for (const QLayoutItem* item : m_items)
        if (!item->isEmpty()) size = size.expandedTo(item->sizeHint().boundedTo(item->maximumSize()));
    return size + QSize(margins.left() + margins.right(), margins.top() + margins.bottom());
}

void FlowLayout::setGeometry(const QRect& rect)
{
    QLayout::setGeometry(rect);
    arrange(rect, true);
}

int FlowLayout::arrange(const QRect& rect, bool apply) const
{
    const QRect inside = rect.marginsRemoved(contentsMargins());
    struct Placed {
        QLayoutItem* item;
        QRect place;
        bool trailing;
    };
    std::vector<Placed> row;
    int y = inside.top(), x = inside.left(), row_height = 0;
    const auto end_row = [&] {
        if (row.empty()) return;
        // Room that is left goes between the leading and the trailing controls.
        const int rest = inside.right() + 1 - (row.back().place.right() + 1);
        for (Placed& one : row) {
            one.place.moveTop(y + (row_height - one.place.height()) / 2);
            if (one.trailing && !row.front().trailing) one.place.translate(std::max(0, rest), 0);
            if (apply) one.item->setGeometry(one.place);
        }
        y += row_height;
        row.clear();
        row_height = 0;
        x = inside.left();
    };
    bool first_row = true;
    for (int index = 0; index < m_items.size(); ++index) {
        QLayoutItem* item = m_items[index];
        if (item->isEmpty()) continue;
        QSize size = item->sizeHint().boundedTo(item->maximumSize());
        size.setWidth(std::min(size.width(), std::max(inside.width(), 1)));
        if (!row.empty() && x + size.width() > inside.right() + 1) {
            end_row();
            first_row = false;
        }
        if (row.empty() && !first_row && row_height == 0 && y > inside.top()) y += spacing() / 2;
        row.push_back({item, QRect(QPoint(x, y), size), m_first_trailing >= 0 && index >= m_first_trailing});
        row_height = std::max(row_height, size.height());
        x += size.width() + spacing();
    }
    end_row();
    return y - rect.top() + contentsMargins().bottom();
}

} // namespace posiscope::ui
