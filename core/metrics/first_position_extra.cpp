// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/metrics/first_position_extra.h"

#include <cmath>
#include <limits>

#include "core/metrics/query_constants.h"

namespace posiscope::core {

double first_position_extra(const PositionMap& map, Quantity quantity)
{
    return std::exp(first_position_log_extra(map, quantity));
}

double first_position_log_extra(const PositionMap& map, Quantity quantity)
{
    constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
    const std::size_t length = map.length;
    if (length < 4) return undefined;
    const auto logit = [&](std::size_t i, std::size_t j) {
        return quantity == Quantity::probabilities ? std::log(map(i, j)) : map(i, j);
    };
    PositionMap rest;
    rest.length = length - 1;
    rest.first_position = map.first_position + 1;
    rest.values.resize(rest.length * rest.length);
    for (std::size_t i = 1; i < length; ++i)
        for (std::size_t j = 1; j < length; ++j) rest(i - 1, j - 1) = logit(i, j);

    const QueryConstants fit = query_constants(rest);
    double sum = 0.0;
    std::size_t count = 0;
    for (std::size_t i = 1; i + 1 < length; ++i) {
        // Offset -i stands at index (length - 2) - i of the fit over length - 1 positions.
        const double extra = logit(i, 0) - fit.query[i - 1] - fit.offset[length - 2 - i];
        if (std::isnan(extra)) continue;
        sum += extra;
        ++count;
    }
    return count > 0 ? sum / static_cast<double>(count) : undefined;
}

FirstPositionWeights first_position_weights(std::size_t length, MapPattern pattern)
{
    const std::size_t rest = length - 1;
    PositionMap entries;
    entries.length = rest;
    entries.values.assign(rest * rest, 0.0);
    if (pattern == MapPattern::causal)
        for (std::size_t i = 0; i < rest; ++i)
            for (std::size_t j = i + 1; j < rest; ++j)
                entries(i, j) = std::numeric_limits<double>::quiet_NaN();

    // The mean of -c_i - t_k over rows 0 .. rest - 2 and offsets -(rest - 1) .. -1, with
    // t_k = (sum of diagonal k - sum of its c) / n_k, is right . c - sum over those k of (sum of diagonal k) / n_k.
    std::vector<double> per_entry(2 * rest - 1, 0.0); // 1 / n_k
    for (std::size_t k = 0; k < per_entry.size(); ++k) {
        const std::size_t distance = k + 1 > rest ? k + 1 - rest : rest - 1 - k;
        if (pattern == MapPattern::full || k < rest)
            per_entry[k] = 1.0 / static_cast<double>(rest - distance);
    }
    std::vector<double> right(rest);
    for (std::size_t i = 0; i < rest; ++i) {
        right[i] = i + 1 < rest ? -1.0 : 0.0;
        for (std::size_t j = 0; j < i; ++j) right[i] += per_entry[j + rest - 1 - i];
    }
    // c solves A c = b, so right . c = z . b with A z = right, A being symmetric; b_i = sum of row i - sum over its
    // offsets of (sum of diagonal k) / n_k.
    FirstPositionWeights weights;
    weights.row = query_constant_solver(entries)->solve_normal_equations(right);
    weights.offset.assign(per_entry.size(), 0.0);
    for (std::size_t k = 0; k < per_entry.size(); ++k) {
        double through_rows = 0.0;
        for (std::size_t i = 0; i < rest; ++i)
            if (k + i + 1 >= rest && k + i + 1 - rest < rest) through_rows += weights.row[i];
        weights.offset[k] = -per_entry[k] * (through_rows + (k + 1 < rest ? 1.0 : 0.0));
    }
    const double terms = static_cast<double>(rest - 1);
    for (double& weight : weights.row) weight /= terms;
    for (double& weight : weights.offset) weight /= terms;
    return weights;
}

} // namespace posiscope::core
