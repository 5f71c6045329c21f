// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/metrics/metric_table.h"

namespace posiscope::core {

/// Fills the standard errors of rows whose values are known: groups of words are drawn with replacement, as many as
/// there are; the mean map of each resample weighs them by their words; the standard error is the standard deviation
/// over resamples, those where the metric is undefined left out. NaN where the value itself is undefined. The draws
/// depend on the seed and the number of groups alone, so that rows are paired.
/// Source: Efron, "Bootstrap Methods: Another Look at the Jackknife", Annals of Statistics 1979.
/// Does nothing where the probe has fewer than two groups. Reports progress as "bootstrap".
/// @error cancelled
Result<void> bootstrap_standard_errors(const ProbeResult& probe, std::span<MetricRow> rows,
                                       std::size_t resamples, std::uint64_t seed, const RunContext& ctx);

} // namespace posiscope::core
