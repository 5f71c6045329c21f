// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/metrics/metric_table.h"
#include "core/model/open_model.h"
#include "core/probe/probe_result.h"

namespace posiscope::core {

/// How the maps of a session are looked at: does not change the probe, only what is taken from it.
struct DisplayOptions {
    int head = mean_of_heads;
    Quantity quantity = Quantity::constants_removed;
    PositionChoice positions = PositionChoice::all;

    bool operator==(const DisplayOptions&) const = default;
};

/// Immutable snapshot of one analysis: what the views draw. Never edited after it was made; a new one replaces it.
struct Session {
    std::shared_ptr<const OpenModel> model;    ///< null: nothing is open
    std::shared_ptr<const ProbeResult> probe;  ///< null: not computed yet
    std::shared_ptr<const MetricTable> metrics; ///< rows of every open model's last probe; null: not computed yet
    DisplayOptions display;
};

} // namespace posiscope::core
