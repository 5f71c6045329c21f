// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/metrics/quantity.h"

namespace posiscope::core {

/// One value of a metric with its standard error over words; NaN where undefined.
struct MetricValue {
    double value = 0.0;
    double standard_error =
        0.0; ///< bootstrap over groups of words; NaN where there are fewer than two groups
};

/// One row of the property table.
struct MetricRow {
    std::string model;
    std::string stack;
    int layer = 0;
    int head = mean_of_heads;
    Quantity quantity = Quantity::constants_removed;
    PositionChoice positions = PositionChoice::all;
    bool flat = false;               ///< no preference at all: every metric is undefined
    std::vector<MetricValue> values; ///< one for each row of metric_list(), in its order
};

struct MetricTable {
    std::vector<MetricRow> rows;
};

/// What evaluate_metrics computes.
struct MetricOptions {
    std::vector<int> heads{mean_of_heads};
    std::vector<Quantity> quantities{Quantity::constants_removed, Quantity::logits, Quantity::probabilities};
    std::vector<PositionChoice> positions{PositionChoice::all, PositionChoice::without_first};
    std::size_t resamples = 1000; ///< 0: no standard errors
    std::uint64_t seed = 0;
};

/// Property metrics of a probe with bootstrap standard errors over groups of words, one row for each combination
/// of head, quantity and choice of positions (quantities the probe lacks are left out).
/// Bit-identical whatever the thread count.
/// @error cancelled
Result<MetricTable> evaluate_metrics(const ProbeResult& probe, const MetricOptions& options,
                                     const RunContext& ctx);

} // namespace posiscope::core
