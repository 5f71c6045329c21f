// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/session/layer_metrics.h"

#include <numeric>

#include "core/base/text.h"
#include "core/metrics/attention_distance.h"
#include "core/metrics/metric_list.h"
#include "core/metrics/quantity.h"
#include "core/probe/identical_word_probe.h"
#include "core/session/stack_maps.h"

namespace posiscope::core {
namespace {

StackLayers metrics_of(const Stack& stack, const std::vector<ProbeResult>& probes,
                       const DisplayOptions& display)
{
    StackLayers out;
    out.stack = stack.id;
    out.causal = stack.causal;
    out.values.resize(metric_list().size());
    for (const ProbeResult& probe : probes) {
        out.words = probe.word_ids.size();
        out.length = probe.length;
        out.layers.push_back(probe.options.layer);
        out.ways.push_back(probe.way);
        // A stage may have fewer heads than the one that was chosen in another.
        const int head = display.head < static_cast<int>(probe.heads) ? display.head : mean_of_heads;
        const PositionMap map = quantity_map(probe, display.quantity, head, display.positions);
        for (std::size_t m = 0; m < out.values.size(); ++m)
            out.values[m].push_back(metric_list()[m].evaluate(map, display.quantity));
        const PositionMap probabilities =
            quantity_map(probe, Quantity::probabilities, head, display.positions);
        const AttentionDistance distance = attention_distance(probabilities);
        out.first_position = probabilities.first_position;
        out.distance.push_back(distance.distance);
        out.distance_ratio.push_back(distance.ratio);
    }
    return out;
}

} // namespace

Result<LayerMetrics> compute_layer_metrics(const OpenModel& model, const ProbeOptions& options,
                                           const DisplayOptions& display, const RunContext& ctx)
{
    LayerMetrics out;
    out.display = display;
    std::optional<Error> fault;
    for (const Stack& stack : model.architecture.stacks) {
        if (ctx.cancelled()) return cancelled_error("metrics by layer");
        if (stack.layers_present == 0) {
            out.notes.push_back("the " + stack.id + " is left out: " + stack.missing_tensor);
            continue;
        }
        std::vector<int> layers(static_cast<std::size_t>(stack.layers_present));
        std::iota(layers.begin(), layers.end(), 0);
        const auto probes =
            run_identical_word_probe(model, options_for_stack(stack, options), std::move(layers), ctx);
        if (!probes) {
            if (probes.error().code == ErrorCode::cancelled) return probes.error();
            fault = probes.error();
            out.notes.push_back("the " + stack.id + " is left out: " + probes.error().message);
            continue;
        }
        out.stacks.push_back(metrics_of(stack, *probes, display));
    }
    if (!out.stacks.empty()) return out;
    if (fault) return *fault;
    return Error{ErrorCode::not_found,
                 in_quotes(model.checkpoint->display_name()) + " holds no layer that can be probed",
                 "metrics by layer"};
}

} // namespace posiscope::core
