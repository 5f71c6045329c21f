// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/session/stack_maps.h"

#include <algorithm>
#include <optional>

#include "core/base/text.h"
#include "core/metrics/metric_list.h"
#include "core/metrics/quantity.h"
#include "core/probe/identical_word_probe.h"

namespace posiscope::core {

ProbeOptions options_for_stack(const Stack& stack, ProbeOptions options)
{
    options.stack = stack.id;
    if (!stack.has_special_input()) options.variant = InputVariant::plain;
    if (!stack.has_plain_input()) options.variant = InputVariant::special;
    options.length = default_length(stack, options.variant, options.length);
    options.terms = false;
    options.group_spread = false; // values only
    options.probabilities = true;
    return options;
}

Result<StackMaps> compute_stack_maps(const OpenModel& model, const ProbeOptions& options,
                                     const DisplayOptions& display, const RunContext& ctx)
{
    StackMaps out;
    out.display = display;
    std::optional<Error> fault;
    for (const Stack& stack : model.architecture.stacks) {
        if (ctx.cancelled()) return cancelled_error("maps of the stacks");
        if (stack.layers_present == 0) {
            out.notes.push_back("the " + stack.id + " is left out: " + stack.missing_tensor);
            continue;
        }
        ProbeOptions its_options = options_for_stack(stack, options);
        its_options.layer = std::min(its_options.layer, static_cast<int>(stack.layers_present) - 1);
        const auto probe = run_identical_word_probe(model, its_options, ctx);
        if (!probe) {
            if (probe.error().code == ErrorCode::cancelled) return probe.error();
            fault = probe.error();
            out.notes.push_back("the " + stack.id + " is left out: " + probe.error().message);
            continue;
        }
        StackMap one;
        one.stack = stack.id;
        one.layer = its_options.layer;
        one.heads = probe->heads;
        one.length = probe->length;
        one.words = probe->word_ids.size();
        one.causal = probe->causal;
        one.way = probe->way;
        const int head = display.head < static_cast<int>(probe->heads) ? display.head : mean_of_heads;
        one.map = quantity_map(*probe, display.quantity, head, display.positions);
        for (const Metric& metric : metric_list())
            one.values.push_back(metric.evaluate(one.map, display.quantity));
        one.distance =
            attention_distance(quantity_map(*probe, Quantity::probabilities, head, display.positions));
        out.stacks.push_back(std::move(one));
    }
    if (!out.stacks.empty()) return out;
    if (fault) return *fault;
    return Error{ErrorCode::not_found,
                 in_quotes(model.checkpoint->display_name()) + " holds no layer that can be probed",
                 "maps of the stacks"};
}

} // namespace posiscope::core
