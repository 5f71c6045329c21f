// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "core/metrics/grid.h"
#include "core/metrics/metric_table.h"
#include "core/metrics/quantity.h"

namespace posiscope::core {

/// Every metric of one map as JSON, undefined as null:
///     {"probabilities", "causal", "all": {...}, "without_first": {...}}
/// "without_first" lacks position 0 (the same as "all" for two positions or fewer). For logits each of them holds
/// "query_constants_removed" too, for probabilities the locality and the attention distances of every query. With a
/// grid: "rows", "cols" and the two-dimensional metrics besides.
/// @param grid  must have as many patches as the map has positions, else its metrics are null
nlohmann::ordered_json map_report(const PositionMap& map, bool probabilities, std::optional<Grid> grid = {});

/// Every metric of a probe as JSON: {"length", "causal", "quantities", "standard_errors"}.
/// "quantities" holds, for "logits" and (where the probe has them) "probabilities", "head_mean" and the array "heads",
/// each as map_report gives it; in the `special` variant "without_first" lacks every special row and column.
/// "standard_errors" nests the same ids for the head mean, as far as `errors` has rows for it (attention distances:
/// of their mean over queries); null where unknown, absent where `errors` has no row of the head mean.
nlohmann::ordered_json probe_report(const ProbeResult& probe, const MetricTable& errors);

} // namespace posiscope::core
