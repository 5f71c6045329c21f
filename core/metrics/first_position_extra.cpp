// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/metrics/first_position_extra.h"

#include <cmath>
#include <limits>

#include "core/metrics/query_constants.h"

namespace posiscope::core {

double first_position_extra(const PositionMap& map, Quantity quantity)
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
    return count > 0 ? std::exp(sum / static_cast<double>(count)) : undefined;
}

} // namespace posiscope::core
