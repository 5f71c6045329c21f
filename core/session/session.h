// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/metrics/metric_table.h"
#include "core/model/open_model.h"
#include "core/probe/probe_result.h"
#include "core/session/display_maps.h"

namespace posiscope::core {

/// Immutable snapshot of one analysis: what the views draw. Never edited after it was made; a new one replaces it.
struct Session {
    std::shared_ptr<const OpenModel> model;   ///< null: nothing is open
    std::shared_ptr<const ProbeResult> probe; ///< null: not computed yet
    std::shared_ptr<const DisplayMaps> maps; ///< taken from `probe` as `display` says; null: not computed yet
    std::shared_ptr<const MetricTable>
        metrics; ///< rows of every open model's last probe; null: not computed yet
    DisplayOptions display;
};

} // namespace posiscope::core
