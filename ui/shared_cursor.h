// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

#include <optional>
#include <utility>

namespace posiscope::ui {

/// What is pointed at: a cell (two positions of the input, counted from 0), or one offset in a profile.
struct MarkedPlace {
    std::optional<int> query;
    std::optional<int> key;
    std::optional<int> offset; ///< key - query; set for a cell, too

    static MarkedPlace cell(int query, int key) { return {query, key, key - query}; }
    static MarkedPlace diagonal(int offset) { return {std::nullopt, std::nullopt, offset}; }

    [[nodiscard]] bool isCell() const { return query && key; }
    bool operator==(const MarkedPlace&) const = default;
};

/// The one place that is marked in every panel. It follows the mouse until a click pins it; a second click on the
/// same place, or Esc, lets go.
class SharedCursor : public QObject {
    Q_OBJECT

public:
    using QObject::QObject;

    void hover(const MarkedPlace& place)
    {
        m_hovered = place;
        if (!m_pinned) show(place);
    }
    void leave()
    {
        m_hovered.reset();
        if (!m_pinned) show(std::nullopt);
    }
    void togglePin(const MarkedPlace& place)
    {
        if (m_pinned == place) {
            unpin();
            return;
        }
        m_pinned = place;
        m_shown = place;
        Q_EMIT changed();
    }
    void unpin()
    {
        if (!m_pinned) return;
        m_pinned.reset();
        m_shown = m_hovered;
        Q_EMIT changed();
    }
    /// Lets go of everything: another map is shown, to which the place may not belong.
    void reset()
    {
        m_hovered.reset();
        m_pinned.reset();
        show(std::nullopt);
    }

    /// Shows positions first .. last in every view that has positions.
    void zoom(int first, int last)
    {
        if (m_range == std::pair(first, last)) return;
        m_range = {first, last};
        Q_EMIT zoomed(first, last);
    }

    [[nodiscard]] const std::optional<MarkedPlace>& place() const { return m_shown; }
    [[nodiscard]] bool isPinned() const { return m_pinned.has_value(); }

Q_SIGNALS:
    void changed();
    void zoomed(int first, int last);

private:
    void show(const std::optional<MarkedPlace>& place)
    {
        if (m_shown == place) return;
        m_shown = place;
        Q_EMIT changed();
    }

    std::optional<MarkedPlace> m_hovered;
    std::optional<MarkedPlace> m_pinned;
    std::optional<MarkedPlace> m_shown;
    std::optional<std::pair<int, int>> m_range;
};

} // namespace posiscope::ui
