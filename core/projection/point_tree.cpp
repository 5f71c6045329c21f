// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/projection/point_tree.h"

#include <algorithm>
#include <cmath>

namespace posiscope::core {
namespace {

constexpr int levels = 16; ///< of the tree: bits of a coordinate in a code
constexpr std::uint32_t most_in_leaf = 16;
constexpr std::uint32_t most_in_group = 64;

/// The low 16 bits of v at the even places.
std::uint32_t spread_bits(std::uint32_t v)
{
    v = (v | (v << 8)) & 0x00ff00ffu;
    v = (v | (v << 4)) & 0x0f0f0f0fu;
    v = (v | (v << 2)) & 0x33333333u;
    return (v | (v << 1)) & 0x55555555u;
}

} // namespace

void PointTree::build(std::span<const double> xs, std::span<const double> ys)
{
    const std::size_t n = xs.size();
    const auto [left, right] = std::minmax_element(xs.begin(), xs.end());
    const auto [bottom, top] = std::minmax_element(ys.begin(), ys.end());
    const double side = std::max({*right - *left, *top - *bottom, 1e-300});
    constexpr double cells = 65535.0;
    const auto cell = [&](double value, double least) {
        return static_cast<std::uint32_t>(std::clamp((value - least) / side * cells, 0.0, cells));
    };
    m_keys.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint64_t code = spread_bits(cell(xs[i], *left)) | (spread_bits(cell(ys[i], *bottom)) << 1);
        m_keys[i] = (code << 32) | i;
    }
    std::sort(m_keys.begin(), m_keys.end());
    m_order.resize(n);
    m_xs.resize(n);
    m_ys.resize(n);
    for (std::size_t k = 0; k < n; ++k) {
        m_order[k] = static_cast<std::uint32_t>(m_keys[k] & 0xffffffffu);
        m_xs[k] = static_cast<float>(xs[m_order[k]]);
        m_ys[k] = static_cast<float>(ys[m_order[k]]);
    }
    grow(xs, ys, side);
}

void PointTree::grow(std::span<const double> xs, std::span<const double> ys, double side)
{
    // Cells by levels, each cell's four parts one behind the other.
    m_nodes.assign(
        1, Node{0, static_cast<std::uint32_t>(m_order.size()), 0, 0, 0.0f, 0.0f, static_cast<float>(side)});
    std::vector<int> depths{0};
    for (std::size_t at = 0; at < m_nodes.size(); ++at) {
        const Node node = m_nodes[at];
        double x = 0.0, y = 0.0;
        for (std::uint32_t k = node.begin; k < node.end; ++k) {
            x += xs[m_order[k]];
            y += ys[m_order[k]];
        }
        const double count = static_cast<double>(node.end - node.begin);
        m_nodes[at].x = static_cast<float>(x / count);
        m_nodes[at].y = static_cast<float>(y / count);
        if (node.end - node.begin <= most_in_leaf || depths[at] == levels) continue;
        const int shift = 32 + 2 * (levels - 1 - depths[at]);
        m_nodes[at].first_child = static_cast<std::uint32_t>(m_nodes.size());
        std::uint32_t begin = node.begin;
        while (begin < node.end) {
            const std::uint64_t quarter = m_keys[begin] >> shift;
            std::uint32_t end = begin + 1;
            while (end < node.end && m_keys[end] >> shift == quarter) ++end;
            m_nodes.push_back(Node{begin, end, 0, 0, 0.0f, 0.0f, node.size * 0.5f});
            depths.push_back(depths[at] + 1);
            ++m_nodes[at].child_count;
            begin = end;
        }
    }
    m_groups.clear();
    std::vector<std::uint32_t> open{0};
    while (!open.empty()) {
        const Node& node = m_nodes[open.back()];
        open.pop_back();
        if (node.end - node.begin > most_in_group && node.child_count > 0) {
            for (std::uint32_t c = node.child_count; c > 0; --c) open.push_back(node.first_child + c - 1);
            continue;
        }
        Group group{node.begin,       node.end,         m_xs[node.begin],
                    m_xs[node.begin], m_ys[node.begin], m_ys[node.begin]};
        for (std::uint32_t k = node.begin; k < node.end; ++k) {
            group.left = std::min(group.left, m_xs[k]);
            group.right = std::max(group.right, m_xs[k]);
            group.bottom = std::min(group.bottom, m_ys[k]);
            group.top = std::max(group.top, m_ys[k]);
        }
        m_groups.push_back(group);
    }
}

std::span<const std::uint32_t> PointTree::group(std::size_t number) const
{
    const Group& group = m_groups[number];
    return std::span(m_order).subspan(group.begin, group.end - group.begin);
}

void PointTree::collect(std::size_t number, double openness, Sources& sources) const
{
    sources.clear();
    const Group& group = m_groups[number];
    const auto squared = static_cast<float>(openness * openness);
    std::vector<std::uint32_t> open{0};
    while (!open.empty()) {
        const Node& node = m_nodes[open.back()];
        open.pop_back();
        const float dx = std::max({group.left - node.x, node.x - group.right, 0.0f});
        const float dy = std::max({group.bottom - node.y, node.y - group.top, 0.0f});
        if (node.size * node.size < squared * (dx * dx + dy * dy)) {
            sources.xs.push_back(node.x);
            sources.ys.push_back(node.y);
            sources.masses.push_back(static_cast<float>(node.end - node.begin));
        } else if (node.child_count == 0) {
            for (std::uint32_t k = node.begin; k < node.end; ++k) {
                sources.xs.push_back(m_xs[k]);
                sources.ys.push_back(m_ys[k]);
                sources.masses.push_back(1.0f);
            }
        } else {
            for (std::uint32_t c = node.child_count; c > 0; --c) open.push_back(node.first_child + c - 1);
        }
    }
}

} // namespace posiscope::core
