// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/metrics/query_constants.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>

#include <Eigen/Cholesky>
#include <Eigen/Core>

namespace posiscope::core {
namespace {

/// Rows that are connected through common offsets get the same label: within such a part c is defined up to one
/// constant.
std::vector<std::size_t> connected_parts(std::size_t length, std::span<const std::uint8_t> defined)
{
    // Union-find over rows (0 .. length - 1) and offsets (from length on).
    std::vector<std::size_t> parent(length + 2 * length);
    std::iota(parent.begin(), parent.end(), std::size_t{0});
    const auto root = [&](std::size_t node) {
        while (parent[node] != node) node = parent[node] = parent[parent[node]];
        return node;
    };
    for (std::size_t i = 0; i < length; ++i)
        for (std::size_t j = 0; j < length; ++j)
            if (defined[i * length + j] != 0) parent[root(i)] = root(length + j + length - 1 - i);
    std::vector<std::size_t> part(length);
    for (std::size_t i = 0; i < length; ++i) part[i] = root(i);
    return part;
}

/// Offsets of the defined entries of each row, as [begin, end) indices k + length - 1, or nothing where a row has a
/// gap.
std::vector<std::pair<std::size_t, std::size_t>> offset_ranges(std::size_t length,
                                                               std::span<const std::uint8_t> defined)
{
    std::vector<std::pair<std::size_t, std::size_t>> ranges(length);
    for (std::size_t i = 0; i < length; ++i) {
        const auto row = defined.subspan(i * length, length);
        const auto is_defined = [](std::uint8_t value) { return value != 0; };
        const auto first = std::find_if(row.begin(), row.end(), is_defined);
        const auto last = std::find_if_not(first, row.end(), is_defined);
        if (std::any_of(last, row.end(), is_defined)) return {};
        const std::size_t shift = length - 1 - i;
        ranges[i] = {static_cast<std::size_t>(first - row.begin()) + shift,
                     static_cast<std::size_t>(last - row.begin()) + shift};
    }
    return ranges;
}

std::vector<std::uint8_t> defined_entries(const PositionMap& map)
{
    std::vector<std::uint8_t> defined(map.values.size());
    for (std::size_t n = 0; n < defined.size(); ++n) defined[n] = std::isfinite(map.values[n]) ? 1 : 0;
    return defined;
}

} // namespace

struct QueryConstantSolver::Factor {
    Eigen::LLT<Eigen::MatrixXd> cholesky;
};

QueryConstantSolver::~QueryConstantSolver() = default;

QueryConstantSolver::QueryConstantSolver(std::size_t length, std::span<const std::uint8_t> defined)
    : m_length(length), m_defined(defined.begin(), defined.end())
{
    if (length == 0) return;
    m_offset_counts.assign(2 * length - 1, 0.0);
    std::vector<double> row_counts(length, 0.0);
    for (std::size_t i = 0; i < length; ++i)
        for (std::size_t j = 0; j < length; ++j)
            if (defined[i * length + j] != 0) {
                row_counts[i] += 1.0;
                m_offset_counts[j + length - 1 - i] += 1.0;
            }

    // With t eliminated: A c = b, A = diag(row counts) - N diag(1 / offset counts) N^T, N the 0/1 matrix of rows and
    // offsets. A is positive semidefinite; its null space holds one constant for each connected part, and adding
    // 11^T / size for each part makes it definite without changing the least-norm solution.
    const auto size = static_cast<Eigen::Index>(length);
    Eigen::MatrixXd matrix = Eigen::MatrixXd::Zero(size, size);
    const auto at = [&](std::size_t row, std::size_t col) -> double& {
        return matrix(static_cast<Eigen::Index>(row), static_cast<Eigen::Index>(col));
    };
    const auto ranges = offset_ranges(length, defined);
    if (!ranges.empty()) {
        // Two rows share a range of offsets: differences of running sums.
        std::vector<double> running(2 * length, 0.0);
        for (std::size_t k = 0; k + 1 < 2 * length; ++k)
            running[k + 1] = running[k] + (m_offset_counts[k] > 0.0 ? 1.0 / m_offset_counts[k] : 0.0);
        for (std::size_t i = 0; i < length; ++i)
            for (std::size_t other = 0; other <= i; ++other) {
                const std::size_t begin = std::max(ranges[i].first, ranges[other].first);
                const std::size_t end = std::min(ranges[i].second, ranges[other].second);
                if (begin < end) at(i, other) = running[begin] - running[end];
            }
    } else {
        std::vector<std::size_t> rows;
        for (std::size_t k = 0; k + 1 < 2 * length; ++k) {
            rows.clear();
            for (std::size_t i = 0; i < length; ++i)
                if (k + i >= length - 1 && k + i - (length - 1) < length &&
                    defined[i * length + k + i - (length - 1)] != 0)
                    rows.push_back(i);
            for (const std::size_t i : rows)
                for (const std::size_t other : rows)
                    if (other <= i) at(i, other) -= 1.0 / m_offset_counts[k];
        }
    }
    const std::vector<std::size_t> part = connected_parts(length, defined);
    std::vector<double> part_size(3 * length, 0.0);
    for (const std::size_t label : part) part_size[label] += 1.0;
    for (std::size_t i = 0; i < length; ++i) {
        at(i, i) += row_counts[i];
        for (std::size_t other = 0; other <= i; ++other)
            if (part[other] == part[i]) at(i, other) += 1.0 / part_size[part[i]];
    }
    m_factor = std::make_unique<Factor>(Factor{Eigen::LLT<Eigen::MatrixXd>(matrix)});
}

QueryConstants QueryConstantSolver::solve(std::span<const double> row_sums,
                                          std::span<const double> offset_sums) const
{
    QueryConstants fit;
    if (m_length == 0) return fit;
    std::vector<double> offset_means(m_offset_counts.size(), std::numeric_limits<double>::quiet_NaN());
    for (std::size_t k = 0; k < offset_means.size(); ++k)
        if (m_offset_counts[k] > 0.0) offset_means[k] = offset_sums[k] / m_offset_counts[k];

    std::vector<double> right(m_length);
    for (std::size_t i = 0; i < m_length; ++i) {
        const std::uint8_t* defined = m_defined.data() + i * m_length;
        const double* means = offset_means.data() + (m_length - 1 - i);
        double value = row_sums[i];
        for (std::size_t j = 0; j < m_length; ++j)
            if (defined[j] != 0) value -= means[j];
        right[i] = value;
    }
    fit.query = solve_normal_equations(right);
    double sum = 0.0;
    for (const double value : fit.query) sum += value;
    const double mean = sum / static_cast<double>(m_length);
    for (double& value : fit.query) value -= mean;

    // Each offset's mean of S_ij - c_i.
    std::vector<double> constants(offset_means.size(), 0.0);
    for (std::size_t i = 0; i < m_length; ++i) {
        const std::uint8_t* defined = m_defined.data() + i * m_length;
        double* sums = constants.data() + (m_length - 1 - i);
        for (std::size_t j = 0; j < m_length; ++j)
            if (defined[j] != 0) sums[j] += fit.query[i];
    }
    fit.offset = std::move(offset_means);
    for (std::size_t k = 0; k < constants.size(); ++k)
        if (m_offset_counts[k] > 0.0) fit.offset[k] -= constants[k] / m_offset_counts[k];
    return fit;
}

std::vector<double> QueryConstantSolver::solve_normal_equations(std::span<const double> right) const
{
    std::vector<double> solution(m_length);
    if (m_length == 0) return solution;
    const auto size = static_cast<Eigen::Index>(m_length);
    Eigen::Map<Eigen::VectorXd>(solution.data(), size) =
        m_factor->cholesky.solve(Eigen::Map<const Eigen::VectorXd>(right.data(), size));
    return solution;
}

bool QueryConstantSolver::fits(std::size_t length, std::span<const std::uint8_t> defined) const
{
    return length == m_length &&
           std::equal(defined.begin(), defined.end(), m_defined.begin(), m_defined.end());
}

std::shared_ptr<const QueryConstantSolver> query_constant_solver(const PositionMap& map)
{
    constexpr std::size_t most_remembered = 8;
    constexpr std::size_t longest_remembered = 1024; // 8 MB each
    static std::mutex mutex;
    static std::vector<std::shared_ptr<const QueryConstantSolver>> remembered; // the latest last

    const std::vector<std::uint8_t> defined = defined_entries(map);
    {
        const std::lock_guard lock(mutex);
        const auto found = std::find_if(remembered.begin(), remembered.end(), [&](const auto& solver) {
            return solver->fits(map.length, defined);
        });
        if (found != remembered.end()) {
            std::rotate(found, found + 1, remembered.end());
            return remembered.back();
        }
    }
    auto solver = std::make_shared<const QueryConstantSolver>(map.length, defined);
    if (map.length <= longest_remembered) {
        const std::lock_guard lock(mutex);
        if (remembered.size() == most_remembered) remembered.erase(remembered.begin());
        remembered.push_back(solver);
    }
    return solver;
}

QueryConstants query_constants(const PositionMap& map)
{
    if (map.length == 0) return {};
    std::vector<double> row_sums(map.length, 0.0);
    std::vector<double> offset_sums(2 * map.length - 1, 0.0);
    for (std::size_t i = 0; i < map.length; ++i)
        for (std::size_t j = 0; j < map.length; ++j) {
            const double value = map(i, j);
            if (!std::isfinite(value)) continue;
            row_sums[i] += value;
            offset_sums[j + map.length - 1 - i] += value;
        }
    return query_constant_solver(map)->solve(row_sums, offset_sums);
}

PositionMap remove_query_constants(PositionMap map)
{
    const QueryConstants fit = query_constants(map);
    for (std::size_t i = 0; i < map.length; ++i)
        for (std::size_t j = 0; j < map.length; ++j) map(i, j) -= fit.query[i];
    return map;
}

} // namespace posiscope::core
