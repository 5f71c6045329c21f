// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace posiscope::core {

/// A quadtree over points of the plane, for the repulsion of far points as a whole.
/// Source: Barnes and Hut 1986; van der Maaten 2014. Here a group of neighbouring points shares one list of sources,
/// as in Barnes 1990, which vectors then go through: a cell is opened unless it is small against its distance from
/// the whole group, so the list is never coarser than the usual one of a single point.
class PointTree {
public:
    /// What acts on a group of points: cells and single points by their centre of mass and mass.
    struct Sources {
        std::vector<float> xs, ys, masses;
        void clear()
        {
            xs.clear();
            ys.clear();
            masses.clear();
        }
    };

    /// Builds the tree; the spans need not outlive the call. All coordinates are finite.
    void build(std::span<const double> xs, std::span<const double> ys);

    [[nodiscard]] std::size_t group_count() const { return m_groups.size(); }
    /// Indices of the points of a group.
    [[nodiscard]] std::span<const std::uint32_t> group(std::size_t number) const;
    /// Fills `sources` with all that acts on a group, its own points included.
    /// @param openness  largest size of a cell against its distance that is taken as a whole (theta)
    void collect(std::size_t number, double openness, Sources& sources) const;

private:
    struct Node {
        std::uint32_t begin = 0, end = 0;               ///< its points in m_order
        std::uint32_t first_child = 0, child_count = 0; ///< child_count 0: a leaf
        float x = 0.0f, y = 0.0f;                       ///< centre of mass
        float size = 0.0f;                              ///< side of its square
    };
    struct Group {
        std::uint32_t begin = 0, end = 0;
        float left = 0.0f, right = 0.0f, bottom = 0.0f, top = 0.0f;
    };

    void grow(std::span<const double> xs, std::span<const double> ys, double side);

    std::vector<std::uint64_t> m_keys; ///< (code along the curve, index), sorted
    std::vector<std::uint32_t> m_order;
    std::vector<float> m_xs, m_ys; ///< in the order of m_order
    std::vector<Node> m_nodes;
    std::vector<Group> m_groups;
};

} // namespace posiscope::core
