// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/metrics/map_report.h"

#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/kernels/thread_pool.h"
#include "core/metrics/attention_distance.h"
#include "core/metrics/direction_balance.h"
#include "core/metrics/first_position_extra.h"
#include "core/metrics/flatness.h"
#include "core/metrics/locality.h"
#include "core/metrics/metric_list.h"
#include "core/metrics/monotonicity.h"
#include "core/metrics/query_constants.h"
#include "core/metrics/symmetry.h"
#include "core/metrics/translation_invariance.h"
#include "core/metrics/white_band.h"

namespace posiscope::core {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value)
{
    return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json whole_number(double value)
{
    return std::isfinite(value) ? Json(static_cast<int>(value)) : Json(nullptr);
}

Json numbers(const std::vector<double>& values)
{
    Json list = Json::array();
    for (const double value : values) list.push_back(number(value));
    return list;
}

Json white_band_report(const WhiteBand& band)
{
    return Json{{"width", whole_number(band.width)},
                {"depth", number(band.depth)},
                {"depth_sd", number(band.depth_sd)},
                {"first", whole_number(band.first)},
                {"last", whole_number(band.last)}};
}

Json constants_removed_report(const PositionMap& removed)
{
    return Json{{"translation_invariance_violation", number(translation_invariance_violation(removed))},
                {"monotonicity_violation_local", number(monotonicity_violation(removed, local_offsets))},
                {"monotonicity_violation_all", number(monotonicity_violation(removed, all_offsets))},
                {"symmetry_violation", number(symmetry_violation(removed))},
                {"direction_balance", number(direction_balance(removed, Quantity::constants_removed))}};
}

/// Metrics that the reports of probabilities give in a form of their own.
bool is_for_probabilities(std::string_view id)
{
    return id.starts_with("locality") || id.starts_with("attention_distance");
}

/// The metrics of one choice of positions.
Json positions_report(const PositionMap& map, bool probabilities)
{
    const Quantity quantity = probabilities ? Quantity::probabilities : Quantity::logits;
    const bool flat = is_flat(map, quantity);
    Json report;
    report["flat"] = flat;
    for (const Metric& metric : metric_list()) {
        const std::string id(metric.id);
        if (is_for_probabilities(id) || (id == "first_position_extra" && flat)) continue;
        if (!id.starts_with("white_band."))
            report[id] = number(metric.evaluate(map, quantity));
        else if (!report.contains("white_band"))
            report["white_band"] = white_band_report(flat ? undefined_white_band() : white_band(map));
    }
    if (!probabilities) {
        report["query_constants_removed"] = constants_removed_report(remove_query_constants(map));
        return report;
    }
    const AttentionDistance distance = attention_distance(map);
    report["locality"] = number(locality(map));
    report["attention_distance"] = numbers(distance.distance);
    report["attention_distance_ratio"] = numbers(distance.ratio);
    bool complete = true;
    for (const double value : map.values) complete = complete && std::isfinite(value);
    if (complete) report["locality_symmetry"] = number(locality_symmetry(map));
    return report;
}

Json report_of(const PositionMap& all, const PositionMap& without_first, bool probabilities)
{
    Json report;
    report["probabilities"] = probabilities;
    report["causal"] = is_causal(all);
    report["all"] = positions_report(all, probabilities);
    report["without_first"] = positions_report(without_first, probabilities);
    return report;
}

void add_grid_report(const PositionMap& map, Grid grid, Json& report)
{
    report["rows"] = grid.rows;
    report["cols"] = grid.cols;
    report["translation_invariance_violation_2d"] = number(translation_invariance_violation_2d(map, grid));
    report["monotonicity_violation_2d"] = number(monotonicity_violation_2d(map, grid));
}

/// The standard errors of one row of the table, nested as positions_report nests the values.
Json errors_report(const MetricRow& row, bool only_what_constants_removed_has)
{
    Json report;
    const auto metrics = metric_list();
    for (std::size_t m = 0; m < metrics.size() && m < row.values.size(); ++m) {
        const std::string_view id = metrics[m].id;
        const bool reported = id == "translation_invariance_violation" ||
                              id == "monotonicity_violation_local" || id == "monotonicity_violation_all" ||
                              id == "symmetry_violation" || id == "direction_balance";
        if (only_what_constants_removed_has && !reported) continue;
        if (is_for_probabilities(id) && row.quantity != Quantity::probabilities) continue;
        const Json error = number(row.values[m].standard_error);
        if (const std::size_t dot = id.find('.'); dot != std::string_view::npos)
            report[std::string(id.substr(0, dot))][std::string(id.substr(dot + 1))] = error;
        else
            report[std::string(id)] = error;
    }
    return report;
}

} // namespace

nlohmann::ordered_json map_report(const PositionMap& map, bool probabilities, std::optional<Grid> grid)
{
    PositionMap without_first = map;
    if (map.length > 2) {
        without_first.length = map.length - 1;
        without_first.first_position = map.first_position + 1;
        without_first.values.resize(without_first.length * without_first.length);
        for (std::size_t i = 1; i < map.length; ++i)
            for (std::size_t j = 1; j < map.length; ++j) without_first(i - 1, j - 1) = map(i, j);
    }
    Json report = report_of(map, without_first, probabilities);
    if (grid) add_grid_report(map, *grid, report);
    return report;
}

nlohmann::ordered_json probe_report(const ProbeResult& probe, const MetricTable& errors)
{
    Json report;
    report["length"] = probe.length;
    report["causal"] = probe.causal;
    for (const Quantity quantity : {Quantity::logits, Quantity::probabilities}) {
        if (quantity == Quantity::probabilities && probe.attention_probabilities.empty()) continue;
        const auto heads = static_cast<std::size_t>(probe.heads);
        std::vector<Json> reports(heads + 1); // the mean of heads first
        parallel_blocks(reports.size(), [&](std::size_t block) {
            const int head = block == 0 ? mean_of_heads : static_cast<int>(block) - 1;
            const PositionMap all = quantity_map(probe, quantity, head, PositionChoice::all);
            const PositionMap rest = quantity_map(probe, quantity, head, PositionChoice::without_first);
            reports[block] = report_of(all, rest, quantity == Quantity::probabilities);
            // The patches alone: behind the class token, where the input has one.
            if (probe.grid_rows > 0)
                add_grid_report(
                    probe.special_positions.empty() ? all : rest,
                    {static_cast<std::size_t>(probe.grid_rows), static_cast<std::size_t>(probe.grid_columns)},
                    reports[block]);
        });
        Json& entry = report["quantities"][std::string(quantity_id(quantity))];
        entry["head_mean"] = std::move(reports[0]);
        entry["heads"] = Json::array();
        for (std::size_t h = 0; h < heads; ++h) entry["heads"].push_back(std::move(reports[h + 1]));
    }
    // Rows of the logits before those of the same without query constants, which nest inside them.
    for (const Quantity quantity : {Quantity::logits, Quantity::constants_removed, Quantity::probabilities})
        for (const MetricRow& row : errors.rows) {
            if (row.quantity != quantity || row.head != mean_of_heads) continue;
            const bool removed = quantity == Quantity::constants_removed;
            Json& head_mean = report["standard_errors"]
                                    [removed ? "logits" : std::string(quantity_id(quantity))]["head_mean"];
            Json& entry = head_mean[row.positions == PositionChoice::all ? "all" : "without_first"];
            if (removed)
                entry["query_constants_removed"] = errors_report(row, true);
            else
                entry = errors_report(row, false);
        }
    return report;
}

} // namespace posiscope::core
