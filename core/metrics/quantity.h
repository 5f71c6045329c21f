// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string_view>
#include <vector>

#include "core/probe/probe_result.h"

namespace posiscope::core {

/// What a map shows. Logits are defined up to a constant per query, so the headline quantity of every table is the
/// logits with the query constants removed.
enum class Quantity { logits, constants_removed, probabilities };

/// "logits", "constants_removed", "probabilities": stable, used by the command line and session files.
std::string_view quantity_id(Quantity quantity);

/// All positions; or without the first one (plain), without every special row and column (special).
enum class PositionChoice { all, without_first };

/// Head number for the mean over heads.
inline constexpr int mean_of_heads = -1;

/// A square map of doubles, row-major; NaN marks an entry that does not exist (the future in a decoder).
struct PositionMap {
    std::size_t length = 0;
    std::vector<double> values;     ///< [length, length]
    std::size_t first_position = 0; ///< position in the input of row and column 0

    double operator()(std::size_t row, std::size_t col) const { return values[row * length + col]; }
    double& operator()(std::size_t row, std::size_t col) { return values[row * length + col]; }
};

/// One quantity of one head (or mean_of_heads) of a probe as a map: sums in double, the future of a causal stack
/// marked NaN, special positions taken out as asked, query constants removed last. Empty where the probe has no
/// probabilities.
PositionMap quantity_map(const ProbeResult& probe, Quantity quantity, int head, PositionChoice positions);

/// The same for one group of words.
PositionMap group_quantity_map(const ProbeResult& probe, std::size_t group, Quantity quantity, int head,
                               PositionChoice positions);

/// Spread over words: standard deviation between the groups' means (n - 1), entry by entry. Empty where there are
/// fewer than two groups.
PositionMap spread_map(const ProbeResult& probe, Quantity quantity, int head, PositionChoice positions);

} // namespace posiscope::core
