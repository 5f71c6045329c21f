// SPDX-License-Identifier: GPL-3.0-or-later
// Maps, spreads and profiles taken from a probe, and the fit of query constants.
#include <cmath>
#include <vector>

#include <QTest>

#include "core/metrics/direction_balance.h"
#include "core/metrics/first_position_extra.h"
#include "core/metrics/monotonicity.h"
#include "core/metrics/offset_profile.h"
#include "core/metrics/quantity.h"
#include "core/metrics/query_constants.h"
#include "core/metrics/symmetry.h"
#include "core/metrics/translation_invariance.h"
#include "tests/support/position_maps.h"
#include "tests/support/synthetic_probe.h"

namespace posiscope::core {
namespace {

using namespace tests;

/// Two heads, three positions; head 0 holds 0 .. 8, head 1 ten times that.
ProbeResult small_probe()
{
    ProbeResult probe;
    probe.heads = 2;
    probe.length = 3;
    probe.attention_logits = HostTensor({2, 3, 3});
    for (std::size_t n = 0; n < 9; ++n) {
        probe.attention_logits.values()[n] = static_cast<float>(n);
        probe.attention_logits.values()[9 + n] = static_cast<float>(10 * n);
    }
    return probe;
}

bool same(const std::vector<double>& found, const std::vector<double>& wanted)
{
    if (found.size() != wanted.size()) return false;
    for (std::size_t n = 0; n < found.size(); ++n)
        if (!(std::isnan(found[n]) && std::isnan(wanted[n])) && !close(found[n], wanted[n])) return false;
    return true;
}

} // namespace

class Quantities : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void heads_and_their_mean()
    {
        const ProbeResult probe = small_probe();
        const auto map = [&](int head) {
            return quantity_map(probe, Quantity::logits, head, PositionChoice::all);
        };
        QVERIFY(same(map(0).values, {0, 1, 2, 3, 4, 5, 6, 7, 8}));
        QVERIFY(same(map(1).values, {0, 10, 20, 30, 40, 50, 60, 70, 80}));
        QVERIFY(same(map(mean_of_heads).values, {0, 5.5, 11, 16.5, 22, 27.5, 33, 38.5, 44}));
        QCOMPARE(map(0).first_position, std::size_t{0});
        QVERIFY(quantity_map(probe, Quantity::probabilities, 0, PositionChoice::all).values.empty());
    }

    void future_does_not_exist()
    {
        ProbeResult probe = small_probe();
        probe.causal = true;
        const PositionMap map = quantity_map(probe, Quantity::logits, 0, PositionChoice::all);
        QVERIFY(same(map.values, {0, undefined, undefined, 3, 4, undefined, 6, 7, 8}));
    }

    void first_position_is_left_out()
    {
        ProbeResult probe = small_probe();
        const PositionMap map = quantity_map(probe, Quantity::logits, 0, PositionChoice::without_first);
        QVERIFY(same(map.values, {4, 5, 7, 8}));
        QCOMPARE(map.first_position, std::size_t{1});
        probe.options.variant = InputVariant::special;
        probe.special_positions = {0, 2};
        const PositionMap words = quantity_map(probe, Quantity::logits, 0, PositionChoice::without_first);
        QVERIFY(same(words.values, {4}));
        QCOMPARE(words.first_position, std::size_t{1});
        probe.special_positions = {1, 2}; // all special positions at the end
        QVERIFY(same(quantity_map(probe, Quantity::logits, 0, PositionChoice::without_first).values, {0}));
        probe.special_positions = {0, 1, 2};
        QCOMPARE(quantity_map(probe, Quantity::logits, 0, PositionChoice::without_first).length,
                 std::size_t{0});
    }

    void two_positions_stay()
    {
        const ProbeResult probe = synthetic_probe({.length = 2});
        QCOMPARE(quantity_map(probe, Quantity::logits, 0, PositionChoice::without_first).length,
                 std::size_t{2});
    }

    void spread_by_hand()
    {
        ProbeResult probe = synthetic_probe({.heads = 1, .length = 2, .groups = 3});
        const std::vector<float> values{1, 0, 0, 0, 2, 0, 0, 0, 6, 0, 0, 3};
        std::copy(values.begin(), values.end(), probe.groups.attention_logits.values().begin());
        // 1, 2, 6: mean 3, squares 4 + 1 + 9; 0, 0, 3: mean 1, squares 1 + 1 + 4.
        const PositionMap spread = spread_map(probe, Quantity::logits, 0, PositionChoice::all);
        QVERIFY(same(spread.values, {std::sqrt(7.0), 0, 0, std::sqrt(3.0)}));
        probe.causal = true;
        QVERIFY(std::isnan(spread_map(probe, Quantity::logits, 0, PositionChoice::all)(0, 1)));
        probe.groups.word_counts.resize(1);
        QVERIFY(spread_map(probe, Quantity::logits, 0, PositionChoice::all).values.empty());
    }

    void profile_by_hand()
    {
        const OffsetProfile profile = offset_profile(map_of(3, {1, 2, 3, 4, 5, undefined, 7, 8, 9}));
        QCOMPARE(profile.offsets, (std::vector<int>{-2, -1, 0, 1, 2}));
        QVERIFY(same(profile.mean, {7, 6, 5, 2, 3}));
        QVERIFY(same(profile.standard_deviation, {0, 2, std::sqrt(32.0 / 3.0), 0, 0}));
        QCOMPARE(profile.count, (std::vector<std::size_t>{1, 2, 3, 1, 1}));
        QCOMPARE(profile.offsets[profile.centre()], 0);
        const OffsetProfile decoder = offset_profile(causal(noise(3, 1)));
        QVERIFY(std::isnan(decoder.mean[3]) && std::isnan(decoder.standard_deviation[4]));
        QCOMPARE(decoder.count[4], std::size_t{0});
        QVERIFY(offset_profile(PositionMap{}).offsets.empty());
    }

    void profile_over_words_by_hand()
    {
        ProbeResult probe = synthetic_probe({.heads = 1, .length = 1, .groups = 2});
        probe.groups.word_counts = {3, 1};
        probe.groups.attention_logits.values()[0] = 1.0f;
        probe.groups.attention_logits.values()[1] = 5.0f;
        probe.attention_logits.values()[0] = 2.0f;
        const auto found =
            offset_profile_over_words(probe, Quantity::logits, mean_of_heads, PositionChoice::all);
        QVERIFY(same(found.profile.mean, {2}));
        // Mean 2; weighted deviations 3/4 * -1 and 1/4 * 3; factor 2 / (2 - 1).
        QVERIFY(same(found.standard_error, {std::sqrt(2.0 * (0.5625 + 0.5625))}));
    }

    void profile_over_words_without_groups()
    {
        ProbeResult probe = synthetic_probe({.groups = 1});
        const auto found = offset_profile_over_words(probe, Quantity::logits, 0, PositionChoice::all);
        QCOMPARE(found.standard_error.size(), found.profile.offsets.size());
        for (const double error : found.standard_error) QVERIFY(std::isnan(error));
        probe.attention_probabilities = {};
        QVERIFY(offset_profile_over_words(probe, Quantity::probabilities, 0, PositionChoice::all)
                    .profile.offsets.empty());
    }

    void constants_are_found()
    {
        for (const bool in_decoder : {false, true}) {
            PositionMap map = toeplitz(20, [](int k) { return -0.1 * std::abs(k) + 0.05 * k; });
            std::vector<double> constants(20);
            double sum = 0.0;
            for (std::size_t i = 0; i < 20; ++i) sum += constants[i] = std::sin(static_cast<double>(i * i));
            for (double& constant : constants) constant -= sum / 20.0;
            PositionMap with = map;
            for (std::size_t i = 0; i < 20; ++i)
                for (std::size_t j = 0; j < 20; ++j) with(i, j) += constants[i];
            if (in_decoder) {
                map = causal(map);
                with = causal(with);
            }
            QVERIFY(same(query_constants(with).query, constants));
            QVERIFY(same(remove_query_constants(with).values, map.values));
        }
    }

    void constants_change_nothing_when_removed()
    {
        const PositionMap map = noise(18, 3);
        PositionMap shifted = map;
        for (std::size_t i = 0; i < 18; ++i)
            for (std::size_t j = 0; j < 18; ++j) shifted(i, j) += 3.0 * std::cos(static_cast<double>(i));
        const PositionMap a = remove_query_constants(map);
        const PositionMap b = remove_query_constants(shifted);
        QVERIFY(close(translation_invariance_violation(a), translation_invariance_violation(b), 1e-10));
        QVERIFY(close(symmetry_violation(a), symmetry_violation(b), 1e-10));
        QVERIFY(close(monotonicity_violation(a), monotonicity_violation(b), 1e-10));
        QVERIFY(close(direction_balance(a, Quantity::logits), direction_balance(b, Quantity::logits), 1e-10));
        QVERIFY(!close(symmetry_violation(map), symmetry_violation(shifted), 1e-3));
    }

    /// Patterns that no attention of ours has, against the pseudo-inverse of an independent implementation: gaps in
    /// a row, rows without entries, parts that share no offset.
    void unusual_patterns()
    {
        constexpr double none = undefined;
        const QueryConstants parts = query_constants(
            map_of(4, {1, 4, none, none, 2, none, none, none, none, none, none, 7, none, none, 3, none}));
        QVERIFY(same(parts.query, {-1.5, -0.5, 1.5, 0.5}));
        QVERIFY(same(parts.offset, {none, none, 2.5, 2.5, 5.5, none, none}));
        const QueryConstants empty_row =
            query_constants(map_of(3, {1, 2, none, none, none, none, 5, none, 3}));
        QVERIFY(same(empty_row.query, {-1, 0, 1}));
        QVERIFY(same(empty_row.offset, {4, none, 2, 3, none}));
        const QueryConstants gaps = query_constants(map_of(3, {1, none, 4, 2, 7, none, none, 3, 5}));
        QVERIFY(same(gaps.query, {-3.3333333333333326, 1.9166666666666665, 1.4166666666666659}));
        QVERIFY(same(gaps.offset, {none, 0.8333333333333338, 4.333333333333333, none, 7.333333333333332}));
        QVERIFY(same(query_constants(map_of(1, {5})).query, {0}));
        QVERIFY(query_constants(PositionMap{}).query.empty());
    }

    void constants_removed_of_a_probe()
    {
        const ProbeResult probe = synthetic_probe({.length = 10, .causal = true});
        for (const PositionChoice positions : {PositionChoice::all, PositionChoice::without_first}) {
            const PositionMap logits = quantity_map(probe, Quantity::logits, 1, positions);
            QVERIFY(same(quantity_map(probe, Quantity::constants_removed, 1, positions).values,
                         remove_query_constants(logits).values));
        }
    }

    /// The weights for sums against the fit itself.
    void first_position_weights_agree()
    {
        for (const std::size_t length : {std::size_t{4}, std::size_t{5}, std::size_t{17}})
            for (const MapPattern pattern : {MapPattern::full, MapPattern::causal}) {
                const PositionMap map =
                    pattern == MapPattern::causal ? causal(noise(length, 9)) : noise(length, 9);
                const FirstPositionWeights weights = first_position_weights(length, pattern);
                double found = 0.0;
                for (std::size_t i = 1; i + 1 < length; ++i)
                    found += map(i, 0) / static_cast<double>(length - 2);
                for (std::size_t i = 1; i < length; ++i)
                    for (std::size_t j = 1; j < (pattern == MapPattern::causal ? i + 1 : length); ++j)
                        found += (weights.row[i - 1] + weights.offset[j + length - 2 - i]) * map(i, j);
                QVERIFY(close(found, first_position_log_extra(map, Quantity::logits), 1e-10));
            }
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::Quantities)
#include "tst_quantity.moc"
