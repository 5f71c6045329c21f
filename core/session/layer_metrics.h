// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/model/open_model.h"
#include "core/probe/probe_result.h"
#include "core/session/display_maps.h"

namespace posiscope::core {

/// One stack's metrics against the layer.
struct StackLayers {
    std::string stack; ///< "encoder", "decoder", ...
    bool causal = false;
    std::size_t words = 0;
    std::int64_t length = 0;
    std::size_t first_position = 0;          ///< position in the input of the first query
    std::vector<int> layers;                 ///< those that the file holds, ascending
    std::vector<ProbeWay> ways;              ///< how each was computed
    std::vector<std::vector<double>> values; ///< [metric of metric_list()][layer]; NaN where undefined
    /// Attention distance by query position, one curve for each layer, and its ratio to that of a uniform row:
    /// [layer][query]. From the probabilities, whatever quantity is looked at.
    std::vector<std::vector<double>> distance, distance_ratio;
};

/// Every stack of a model side by side, each layer by layer: what an encoder does against a decoder, and early layers
/// against late ones.
struct LayerMetrics {
    DisplayOptions display;
    std::vector<StackLayers> stacks;
    std::vector<std::string> notes; ///< stacks that are left out, and why
};

/// Probes all layers of every stack in one pass each and evaluates the metrics of `display`. A stack without room for
/// the length takes what it has room for; one without the variant takes the other.
/// @error whatever the probe of the only stack says; cancelled
Result<LayerMetrics> compute_layer_metrics(const OpenModel& model, const ProbeOptions& options,
                                           const DisplayOptions& display, const RunContext& ctx);

} // namespace posiscope::core
