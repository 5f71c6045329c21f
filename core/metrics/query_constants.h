// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/metrics/quantity.h"

namespace posiscope::core {

/// c [length] with mean 0 and t [2 * length - 1] (t[k + length - 1] for offset k; NaN where no entry) that minimise
/// sum (S_ij - c_i - t_{j-i})^2 over the defined entries.
struct QueryConstants {
    std::vector<double> query;  ///< c
    std::vector<double> offset; ///< t
};

/// The least-squares fit of query constants for all maps whose entries are defined at the same places: the normal
/// equations are factorised once. Of all solutions it gives the one of least norm (a map may fall into parts that
/// share no offset), with the mean taken out of c at the end.
class QueryConstantSolver {
public:
    /// @param defined  [length, length], not 0 where an entry exists
    QueryConstantSolver(std::size_t length, std::span<const std::uint8_t> defined);
    ~QueryConstantSolver();
    QueryConstantSolver(const QueryConstantSolver&) = delete;
    QueryConstantSolver& operator=(const QueryConstantSolver&) = delete;

    /// @param row_sums     [length], sums of each row's defined entries
    /// @param offset_sums  [2 * length - 1], sums of each diagonal's
    [[nodiscard]] QueryConstants solve(std::span<const double> row_sums,
                                       std::span<const double> offset_sums) const;

    /// The least-norm solution x of the normal equations A x = right (for c, with t eliminated), up to a constant for
    /// each connected part; right and x are [length].
    [[nodiscard]] std::vector<double> solve_normal_equations(std::span<const double> right) const;

    [[nodiscard]] bool fits(std::size_t length, std::span<const std::uint8_t> defined) const;

private:
    struct Factor;
    std::size_t m_length = 0;
    std::vector<std::uint8_t> m_defined;
    std::vector<double> m_offset_counts;
    std::unique_ptr<const Factor> m_factor;
};

/// The solver for a map's pattern of defined entries; the last few patterns are remembered. Safe from several threads.
std::shared_ptr<const QueryConstantSolver> query_constant_solver(const PositionMap& map);

QueryConstants query_constants(const PositionMap& map);

/// S_ij - c_i: what remains of logits when the constant per query, which the softmax ignores, is taken out. A Toeplitz
/// map stays as it is. Special positions are taken out, and the future is marked NaN, before.
PositionMap remove_query_constants(PositionMap map);

} // namespace posiscope::core
