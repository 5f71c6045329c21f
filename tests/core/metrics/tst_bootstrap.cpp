// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>
#include <cstring>
#include <limits>
#include <stop_token>
#include <vector>

#include <QTest>

#include "core/kernels/thread_pool.h"
#include "core/metrics/metric_list.h"
#include "core/metrics/metric_table.h"
#include "core/metrics/query_constants.h"
#include "core/metrics/resamples.h"
#include "tests/support/synthetic_probe.h"

namespace posiscope::core {
namespace {

using tests::synthetic_probe;
using tests::SyntheticProbe;

std::size_t metric_index(std::string_view id)
{
    for (std::size_t m = 0; m < metric_list().size(); ++m)
        if (metric_list()[m].id == id) return m;
    return metric_list().size();
}

MetricTable evaluated(const ProbeResult& probe, const MetricOptions& options)
{
    const auto table = evaluate_metrics(probe, options, {});
    return table ? *table : MetricTable{};
}

bool same_bits(double a, double b)
{
    return std::memcmp(&a, &b, sizeof a) == 0;
}

/// The mean map of one resample, put together without any of the bootstrap's short cuts.
PositionMap resampled_map(const ProbeResult& probe, const Resamples& resamples, std::size_t resample,
                          const MetricRow& row)
{
    const bool remove = row.quantity == Quantity::constants_removed;
    const Quantity linear = remove ? Quantity::logits : row.quantity;
    PositionMap sum;
    for (std::size_t g = 0; g < resamples.groups; ++g) {
        const PositionMap map = group_quantity_map(probe, g, linear, row.head, row.positions);
        if (g == 0) {
            sum = map;
            for (double& value : sum.values) value = std::isnan(value) ? value : 0.0;
        }
        for (std::size_t n = 0; n < map.values.size(); ++n)
            sum.values[n] += resamples.weights_of(resample)[g] / resamples.totals[resample] * map.values[n];
    }
    return remove ? remove_query_constants(std::move(sum)) : sum;
}

} // namespace

class Bootstrap : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void draws_are_paired_and_weighted()
    {
        const std::vector<std::size_t> counts{3, 1};
        const Resamples resamples = draw_resamples(counts, 200, 5);
        bool differ = false;
        for (std::size_t r = 0; r < resamples.count; ++r) {
            const auto weights = resamples.weights_of(r);
            QCOMPARE(weights[0] / 3.0 + weights[1], 2.0); // two draws
            QCOMPARE(weights[0] + weights[1], resamples.totals[r]);
            differ = differ || weights[0] != resamples.weights[0];
        }
        QVERIFY(differ);
        QCOMPARE(draw_resamples(counts, 200, 5).weights, resamples.weights);
        QVERIFY(draw_resamples(counts, 200, 6).weights != resamples.weights);
    }

    void standard_error_by_hand()
    {
        constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
        QCOMPARE(standard_error_of(std::vector<double>{1.0, undefined, 3.0, 2.0}), 1.0);
        QCOMPARE(standard_error_of(std::vector<double>{0.1, 0.1, 0.1}), 0.0);
        QVERIFY(std::isnan(standard_error_of(std::vector<double>{0.1, undefined})));
    }

    /// The quick way of the bootstrap against the functions of the metric list on maps put together one by one.
    void agrees_with_the_metric_list_data()
    {
        QTest::addColumn<bool>("causal");
        QTest::addColumn<int>("length");
        QTest::addColumn<int>("head");
        for (const bool causal : {false, true})
            for (const int length : {1, 2, 3, 4, 5, 30}) // shorter and longer than 20 offsets
                for (const int head : {mean_of_heads, 1})
                    QTest::addRow("%s %d, head %d", causal ? "causal" : "full", length, head)
                        << causal << length << head;
    }

    void agrees_with_the_metric_list()
    {
        QFETCH(bool, causal);
        QFETCH(int, length);
        QFETCH(int, head);
        const ProbeResult probe = synthetic_probe({.length = length, .causal = causal});
        MetricOptions options;
        options.heads = {head};
        options.resamples = 8;
        options.seed = 3;
        const MetricTable table = evaluated(probe, options);
        QCOMPARE(table.rows.size(), std::size_t{6});
        const Resamples resamples = draw_resamples(probe.groups.word_counts, options.resamples, options.seed);
        for (const MetricRow& row : table.rows) {
            std::vector<PositionMap> maps;
            for (std::size_t r = 0; r < resamples.count; ++r)
                maps.push_back(resampled_map(probe, resamples, r, row));
            for (std::size_t m = 0; m < metric_list().size(); ++m) {
                std::vector<double> values;
                for (const PositionMap& map : maps)
                    values.push_back(metric_list()[m].evaluate(map, row.quantity));
                const double wanted = standard_error_of(values);
                const double found = row.values[m].standard_error;
                const QString what = QString("%1 of %2: %3, wanted %4")
                                         .arg(metric_list()[m].id.data(), quantity_id(row.quantity).data())
                                         .arg(found, 0, 'g', 17)
                                         .arg(wanted, 0, 'g', 17);
                if (std::isnan(row.values[m].value) || std::isnan(wanted))
                    QVERIFY2(std::isnan(found), qPrintable(what));
                else
                    QVERIFY2(std::abs(found - wanted) <= 1e-10 * std::max(1.0, wanted), qPrintable(what));
            }
        }
    }

    /// A probability of 0 is a logarithm of minus infinity, which the quick way leaves to the slow one.
    void zero_probabilities()
    {
        ProbeResult probe = synthetic_probe({.heads = 1, .length = 8});
        for (std::size_t g = 0; g < probe.groups.word_counts.size(); ++g)
            probe.groups.attention_probabilities.data()[g * 64 + 3 * 8 + 5] = 0.0f;
        MetricOptions options;
        options.quantities = {Quantity::probabilities};
        options.resamples = 20;
        const MetricTable table = evaluated(probe, options);
        const Resamples resamples = draw_resamples(probe.groups.word_counts, options.resamples, options.seed);
        const std::size_t m = metric_index("first_position_extra");
        std::vector<double> values;
        for (std::size_t r = 0; r < resamples.count; ++r)
            values.push_back(metric_list()[m].evaluate(resampled_map(probe, resamples, r, table.rows[0]),
                                                       Quantity::probabilities));
        QVERIFY(standard_error_of(values) > 0.0);
        QVERIFY(std::abs(table.rows[0].values[m].standard_error - standard_error_of(values)) < 1e-12);
    }

    /// Entries that are not finite are left out, as everywhere.
    void logits_that_are_not_finite()
    {
        ProbeResult probe = synthetic_probe({.heads = 1, .length = 8});
        for (std::size_t g = 0; g < probe.groups.word_counts.size(); ++g)
            probe.groups.attention_logits.data()[g * 64 + 3 * 8 + 5] = std::numeric_limits<float>::infinity();
        MetricOptions options;
        options.quantities = {Quantity::constants_removed};
        options.positions = {PositionChoice::all};
        options.resamples = 20;
        const MetricTable table = evaluated(probe, options);
        const Resamples resamples = draw_resamples(probe.groups.word_counts, options.resamples, options.seed);
        const std::size_t m = metric_index("translation_invariance_violation");
        std::vector<double> values;
        for (std::size_t r = 0; r < resamples.count; ++r)
            values.push_back(metric_list()[m].evaluate(resampled_map(probe, resamples, r, table.rows[0]),
                                                       Quantity::constants_removed));
        QVERIFY(standard_error_of(values) > 0.0);
        QVERIFY(std::abs(table.rows[0].values[m].standard_error - standard_error_of(values)) < 1e-12);
    }

    void equal_groups_have_no_error()
    {
        const ProbeResult probe = synthetic_probe({.equal_groups = true});
        MetricOptions options;
        options.resamples = 50;
        std::size_t defined = 0;
        for (const MetricRow& row : evaluated(probe, options).rows)
            for (const MetricValue& value : row.values) {
                if (std::isnan(value.value)) continue;
                QVERIFY(value.standard_error < 1e-14);
                ++defined;
            }
        QVERIFY(defined > 60);
    }

    /// Two groups of one word each, and a metric that is linear in the map: the mean over queries of the attention
    /// distance, rows of probabilities summing to 1. A resample is one group twice (1/4 each) or both.
    void two_groups_by_hand()
    {
        ProbeResult probe = synthetic_probe({.heads = 1, .length = 2, .groups = 2});
        probe.groups.word_counts = {1, 1};
        // Distances of the queries: 0.25 and 0.5 in the first group, 0.75 and 0.5 in the second: means 0.375, 0.625.
        const std::vector<float> values{0.75f, 0.25f, 0.5f, 0.5f, 0.25f, 0.75f, 0.5f, 0.5f};
        std::copy(values.begin(), values.end(), probe.groups.attention_probabilities.values().begin());
        MetricOptions options;
        options.quantities = {Quantity::probabilities};
        options.positions = {PositionChoice::all};
        options.resamples = 1000;
        const MetricTable table = evaluated(probe, options);
        const Resamples resamples = draw_resamples(probe.groups.word_counts, options.resamples, options.seed);
        std::vector<double> by_hand;
        for (std::size_t r = 0; r < resamples.count; ++r)
            by_hand.push_back(0.375 + 0.25 * resamples.weights_of(r)[1] / 2.0);
        const double found = table.rows[0].values[metric_index("attention_distance")].standard_error;
        QVERIFY(std::abs(found - standard_error_of(by_hand)) < 1e-15);
        // Of infinitely many resamples: 0.25 * sqrt(2 * 1/4) / 2.
        QVERIFY(std::abs(found - 0.25 * std::sqrt(0.5) / 2.0) < 0.005);
    }

    void one_group_has_no_error()
    {
        const ProbeResult probe = synthetic_probe({.groups = 1});
        const MetricTable table = evaluated(probe, {});
        QCOMPARE(table.rows.size(), std::size_t{6});
        for (const MetricRow& row : table.rows)
            for (const MetricValue& value : row.values) QVERIFY(std::isnan(value.standard_error));
    }

    void rows_and_their_order()
    {
        ProbeResult probe = synthetic_probe({});
        probe.options.layer = 3;
        MetricOptions options;
        options.heads = {mean_of_heads, 1};
        options.resamples = 0;
        MetricTable table = evaluated(probe, options);
        QCOMPARE(table.rows.size(), std::size_t{12});
        QCOMPARE(table.rows[0].quantity, Quantity::constants_removed);
        QCOMPARE(table.rows[0].positions, PositionChoice::all);
        QCOMPARE(table.rows[1].positions, PositionChoice::without_first);
        QCOMPARE(table.rows[6].head, 1);
        QCOMPARE(table.rows[6].model, std::string("synthetic"));
        QCOMPARE(table.rows[6].stack, std::string("encoder"));
        QCOMPARE(table.rows[6].layer, 3);
        QVERIFY(!table.rows[0].flat);
        probe.attention_probabilities = {};
        QCOMPARE(evaluated(probe, options).rows.size(), std::size_t{8});
    }

    void flat_map_is_undefined()
    {
        ProbeResult probe = synthetic_probe({});
        for (float& value : probe.attention_logits.values()) value = 2.5f;
        for (float& value : probe.groups.attention_logits.values()) value = 2.5f;
        MetricOptions options;
        options.quantities = {Quantity::logits, Quantity::constants_removed};
        options.resamples = 10;
        for (const MetricRow& row : evaluated(probe, options).rows) {
            QVERIFY(row.flat);
            for (const MetricValue& value : row.values) {
                QVERIFY(std::isnan(value.value));
                QVERIFY(std::isnan(value.standard_error));
            }
        }
    }

    void same_bits_on_any_number_of_threads()
    {
        const ProbeResult probe = synthetic_probe({.length = 12, .groups = 32});
        MetricOptions options;
        options.heads = {mean_of_heads, 1};
        options.resamples = 150; // more than are given out at once
        const std::size_t threads_before = thread_count();
        set_thread_count(1);
        const MetricTable wanted = evaluated(probe, options);
        for (const std::size_t threads : {2u, 4u}) {
            set_thread_count(threads);
            const MetricTable found = evaluated(probe, options);
            QCOMPARE(found.rows.size(), wanted.rows.size());
            for (std::size_t n = 0; n < wanted.rows.size(); ++n)
                for (std::size_t m = 0; m < metric_list().size(); ++m) {
                    QVERIFY(same_bits(found.rows[n].values[m].value, wanted.rows[n].values[m].value));
                    QVERIFY(same_bits(found.rows[n].values[m].standard_error,
                                      wanted.rows[n].values[m].standard_error));
                }
        }
        set_thread_count(threads_before);
    }

    void stops_at_first_progress()
    {
        const ProbeResult probe = synthetic_probe({.length = 24});
        std::stop_source source;
        std::size_t reports = 0;
        RunContext ctx{source.get_token(), [&](const Progress& now) {
                           QCOMPARE(now.stage, std::string_view("bootstrap"));
                           QVERIFY(now.done > 0 && now.done <= now.total);
                           ++reports;
                           source.request_stop();
                       }};
        MetricOptions options;
        options.resamples = 2000;
        const auto table = evaluate_metrics(probe, options, ctx);
        QVERIFY(!table);
        QCOMPARE(table.error().code, ErrorCode::cancelled);
        QCOMPARE(reports, std::size_t{1});
    }

    void progress_ends_at_its_total()
    {
        Progress last;
        const RunContext ctx{{}, [&](const Progress& now) { last = now; }};
        MetricOptions options;
        options.resamples = 100;
        QVERIFY(evaluate_metrics(synthetic_probe({}), options, ctx).has_value());
        QCOMPARE(last.done, std::size_t{200}); // logits and probabilities
        QCOMPARE(last.total, last.done);
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::Bootstrap)
#include "tst_bootstrap.moc"
