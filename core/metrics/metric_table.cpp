// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/metrics/metric_table.h"

#include <limits>
#include <utility>

#include "core/kernels/thread_pool.h"
#include "core/metrics/bootstrap.h"
#include "core/metrics/flatness.h"
#include "core/metrics/metric_list.h"

namespace posiscope::core {
namespace {

/// Fills the values of a row from the map over all words.
void evaluate_row(const ProbeResult& probe, MetricRow& row)
{
    const PositionMap map = quantity_map(probe, row.quantity, row.head, row.positions);
    row.flat = is_flat(map, row.quantity);
    for (const Metric& metric : metric_list())
        row.values.push_back({metric.evaluate(map, row.quantity), std::numeric_limits<double>::quiet_NaN()});
}

} // namespace

Result<MetricTable> evaluate_metrics(const ProbeResult& probe, const MetricOptions& options,
                                     const RunContext& ctx)
{
    MetricTable table;
    for (const int head : options.heads)
        for (const Quantity quantity : options.quantities) {
            if (quantity == Quantity::probabilities && probe.attention_probabilities.empty()) continue;
            for (const PositionChoice positions : options.positions) {
                MetricRow row;
                row.model = probe.model_name;
                row.stack = probe.options.stack;
                row.layer = probe.options.layer;
                row.head = head;
                row.quantity = quantity;
                row.positions = positions;
                table.rows.push_back(std::move(row));
            }
        }
    parallel_blocks(table.rows.size(), [&](std::size_t block) {
        if (!ctx.cancelled()) evaluate_row(probe, table.rows[block]);
    });
    if (ctx.cancelled()) return cancelled_error("computing metrics");
    if (auto errors = bootstrap_standard_errors(probe, table.rows, options.resamples, options.seed, ctx);
        !errors)
        return errors.error();
    return table;
}

} // namespace posiscope::core
