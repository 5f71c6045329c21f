// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/metrics/offset_profile.h"
#include "core/metrics/quantity.h"
#include "core/metrics/white_band.h"
#include "core/probe/probe_result.h"

namespace posiscope::core {

/// How the maps of a session are looked at: does not change the probe, only what is taken from it.
struct DisplayOptions {
    int head = mean_of_heads;
    Quantity quantity = Quantity::constants_removed;
    PositionChoice positions = PositionChoice::all;

    bool operator==(const DisplayOptions&) const = default;
};

/// Which maps to take from a probe.
struct MapRequest {
    DisplayOptions display;
    bool every_head = false; ///< also one map for each head

    bool operator==(const MapRequest&) const = default;
};

/// One part of the mean logits as a map (see ProbeTerm).
struct TermMap {
    std::string id;
    PositionMap map;
};

/// Everything the plots of a session draw, taken from its probe once, off the window's thread. Immutable.
struct DisplayMaps {
    MapRequest request;
    PositionMap mean;               ///< over the words
    PositionMap spread;             ///< standard deviation between groups of words; empty with fewer than two
    std::size_t groups = 0;         ///< groups of words; spread / sqrt(groups) is the mean's standard error
    OffsetProfileOverWords profile; ///< of `mean`
    WhiteBand white_band;           ///< of `mean`
    std::vector<PositionMap> heads; ///< each head's map, where asked for
    std::vector<TermMap> terms;     ///< of the head in the request; empty where the probe has none
};

/// Takes the maps from a probe.
/// @error invalid_argument (no such head; a quantity the probe lacks), cancelled
Result<DisplayMaps> compute_display_maps(const ProbeResult& probe, const MapRequest& request,
                                         const RunContext& ctx);

} // namespace posiscope::core
