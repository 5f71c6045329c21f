// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>
#include <string_view>

#include "core/metrics/quantity.h"

namespace posiscope::core {

/// Which values of a metric mean that the property holds.
enum class BetterWhen { lower, higher, near_zero, neutral };

/// One scalar property metric. To add one: a `<name>.{h,cpp}` with its function, and a row in metric_list.cpp.
struct Metric {
    std::string_view id;          ///< stable, as in metrics.json; nested keys with a dot ("white_band.width")
    std::string_view label;       ///< "Translation invariance violation"
    std::string_view short_label; ///< column head
    BetterWhen better = BetterWhen::lower;
    double least = 0.0; ///< range; infinities where unbounded
    double most = 1.0;
    bool whole_number = false;
    std::string_view explanation; ///< what it says, in a sentence or two
    std::string_view source;      ///< paper and section
    /// Value on a map, NaN where undefined. `quantity` says what the map holds.
    double (*evaluate)(const PositionMap& map, Quantity quantity) = nullptr;
};

/// THE list of metrics, in the order of the table's columns.
std::span<const Metric> metric_list();

} // namespace posiscope::core
