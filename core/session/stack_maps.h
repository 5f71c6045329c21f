// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/metrics/attention_distance.h"
#include "core/model/open_model.h"
#include "core/probe/probe_result.h"
#include "core/session/display_maps.h"

namespace posiscope::core {

/// One stack's map at one layer, and what tells a decoder from an encoder.
struct StackMap {
    std::string stack; ///< "encoder", "decoder", ...
    int layer = 0;     ///< the one asked for, or the stack's last where it has fewer
    std::int64_t heads = 0, length = 0;
    std::size_t words = 0;
    bool causal = false;
    ProbeWay way = ProbeWay::closed_form;
    PositionMap map;            ///< of the quantity asked for
    std::vector<double> values; ///< [metric of metric_list()] of `map`; NaN where undefined
    /// Of the probabilities, whatever quantity is looked at.
    AttentionDistance distance;
};

/// The stacks of a model side by side on the same words.
struct StackMaps {
    DisplayOptions display;
    std::vector<StackMap> stacks;
    std::vector<std::string> notes; ///< stacks that are left out, and why
};

/// The probe's options for another stack of the same model: a variant that it has, a length that it has room for,
/// values only.
ProbeOptions options_for_stack(const Stack& stack, ProbeOptions options);

/// Probes one layer of every stack.
/// @error whatever the probe of the only stack says; cancelled
Result<StackMaps> compute_stack_maps(const OpenModel& model, const ProbeOptions& options,
                                     const DisplayOptions& display, const RunContext& ctx);

} // namespace posiscope::core
