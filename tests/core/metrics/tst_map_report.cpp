// SPDX-License-Identifier: GPL-3.0-or-later
// The JSON of a probe's metrics; that of single maps is held against the reference in tst_reference_cases.
#include <string>

#include <QFloat16> // JSON asks what it can become
#include <QTest>

#include <nlohmann/json.hpp>

#include "core/kernels/thread_pool.h"
#include "core/metrics/map_report.h"
#include "tests/support/synthetic_probe.h"

namespace posiscope::core {
namespace {

using tests::synthetic_probe;

MetricTable errors_of(const ProbeResult& probe)
{
    MetricOptions options;
    options.heads = {mean_of_heads, 0};
    options.resamples = 30;
    const auto table = evaluate_metrics(probe, options, {});
    return table ? *table : MetricTable{};
}

} // namespace

class MapReport : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void every_head_and_quantity()
    {
        const ProbeResult probe = synthetic_probe({.heads = 3});
        const auto report = probe_report(probe, {});
        QCOMPARE(report["length"].get<int>(), 12);
        QCOMPARE(report["causal"].get<bool>(), false);
        QVERIFY(!report.contains("standard_errors"));
        for (const Quantity quantity : {Quantity::logits, Quantity::probabilities}) {
            const auto& entry = report["quantities"][std::string(quantity_id(quantity))];
            QCOMPARE(entry["heads"].size(), std::size_t{3});
            const bool probabilities = quantity == Quantity::probabilities;
            QVERIFY(
                entry["head_mean"] ==
                map_report(quantity_map(probe, quantity, mean_of_heads, PositionChoice::all), probabilities));
            for (std::size_t h = 0; h < 3; ++h)
                QVERIFY(entry["heads"][h] ==
                        map_report(quantity_map(probe, quantity, static_cast<int>(h), PositionChoice::all),
                                   probabilities));
        }
    }

    void only_what_was_computed()
    {
        ProbeResult probe = synthetic_probe({});
        probe.attention_probabilities = {};
        QVERIFY(!probe_report(probe, {})["quantities"].contains("probabilities"));
    }

    void special_positions_are_left_out()
    {
        ProbeResult probe = synthetic_probe({.length = 10});
        probe.options.variant = InputVariant::special;
        probe.special_positions = {0, 9};
        const auto head = probe_report(probe, {})["quantities"]["probabilities"]["heads"][1];
        QCOMPARE(head["all"]["attention_distance"].size(), std::size_t{10});
        QCOMPARE(head["without_first"]["attention_distance"].size(), std::size_t{8});
    }

    void standard_errors_nest_like_the_values()
    {
        for (const bool causal : {false, true}) {
            const ProbeResult probe = synthetic_probe({.causal = causal});
            const MetricTable table = errors_of(probe);
            const auto report = probe_report(probe, table);
            QCOMPARE(report["causal"].get<bool>(), causal);
            for (const auto& [quantity, head_mean] : report["standard_errors"].items())
                for (const auto& [positions, errors] : head_mean["head_mean"].items()) {
                    const auto& values = report["quantities"][quantity]["head_mean"][positions];
                    for (const auto& [id, error] : errors.items())
                        if (id != "locality_symmetry") QVERIFY2(values.contains(id), id.c_str());
                    for (const auto& [id, value] : values.items())
                        QVERIFY2(id == "flat" || errors.contains(id), id.c_str());
                }
            const auto& logits = report["standard_errors"]["logits"]["head_mean"];
            QCOMPARE(logits.size(), std::size_t{2});
            QVERIFY(logits["all"]["monotonicity_violation_local"].get<double>() > 0.0);
            // The rows are in the table's order: without constants, logits, probabilities; all, without the first.
            const auto& removed = logits["without_first"]["query_constants_removed"];
            QCOMPARE(removed["translation_invariance_violation"].get<double>(),
                     table.rows[1].values[0].standard_error);
            QCOMPARE(removed.size(), std::size_t{5});
            QVERIFY(logits["all"]["white_band"].contains("depth_sd"));
            QCOMPARE(report["standard_errors"]["probabilities"]["head_mean"]["all"]["symmetry_violation"]
                         .is_null(),
                     causal);
        }
    }

    void same_text_on_any_number_of_threads()
    {
        const ProbeResult probe = synthetic_probe({.heads = 3});
        const std::size_t threads_before = thread_count();
        set_thread_count(1);
        const std::string wanted = probe_report(probe, {}).dump();
        set_thread_count(4);
        QVERIFY(probe_report(probe, {}).dump() == wanted);
        set_thread_count(threads_before);
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::MapReport)
#include "tst_map_report.moc"
