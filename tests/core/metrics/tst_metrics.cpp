// SPDX-License-Identifier: GPL-3.0-or-later
// The metrics by hand on small maps, and by the properties that define them.
#include <cmath>
#include <set>
#include <string>

#include <QTest>

#include "core/metrics/attention_distance.h"
#include "core/metrics/direction_balance.h"
#include "core/metrics/first_position_extra.h"
#include "core/metrics/flatness.h"
#include "core/metrics/locality.h"
#include "core/metrics/metric_list.h"
#include "core/metrics/monotonicity.h"
#include "core/metrics/symmetry.h"
#include "core/metrics/translation_invariance.h"
#include "core/metrics/white_band.h"
#include "tests/support/position_maps.h"

namespace posiscope::core {
namespace {

using namespace tests;

/// Offsets -3 .. 3: 0 2 1 [3] 2 0 1.
PositionMap hand_map()
{
    return map_of(4, {3, 2, 0, 1, //
                      1, 3, 2, 0, //
                      2, 1, 3, 2, //
                      0, 2, 1, 3});
}

} // namespace

class Metrics : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void translation_invariance_by_hand()
    {
        QVERIFY(close(translation_invariance_violation(hand_map()), 0.0));
        // Diagonals 1 | 0 4 | 3: means 1, 2, 3; within 0 + 8 + 0, about the mean of 2: 1 + 4 + 4 + 1 = 10.
        QVERIFY(close(translation_invariance_violation(map_of(2, {0, 3, 1, 4})), 0.8));
        // Without the future: 1 | 0 4: within 8, about 5/3: 25/9 + 4/9 + 49/9 = 78/9.
        QVERIFY(close(translation_invariance_violation(map_of(2, {0, undefined, 1, 4})), 8.0 / (78.0 / 9.0)));
    }

    void translation_invariance_by_property()
    {
        QVERIFY(
            close(translation_invariance_violation(toeplitz(30, [](int k) { return std::sin(k) - 0.1 * k; })),
                  0.0));
        // Noise: 1 - 2 / (L + 1) on average.
        QVERIFY(std::abs(translation_invariance_violation(noise(60, 4)) - (1.0 - 2.0 / 61.0)) < 0.01);
        PositionMap scaled = noise(10, 5);
        const double before = translation_invariance_violation(scaled);
        for (double& value : scaled.values) value = 7.0 - 3.0 * value;
        QVERIFY(close(translation_invariance_violation(scaled), before));
    }

    void translation_invariance_on_a_grid()
    {
        // Depends on the two-dimensional offset alone, which no one-dimensional offset explains.
        PositionMap map{12, std::vector<double>(144), 0};
        for (std::size_t i = 0; i < 12; ++i)
            for (std::size_t j = 0; j < 12; ++j) {
                const double dy = static_cast<double>(j / 4) - static_cast<double>(i / 4);
                const double dx = static_cast<double>(j % 4) - static_cast<double>(i % 4);
                map(i, j) = -std::hypot(dx, 2.0 * dy) - 0.1 * dx;
            }
        QVERIFY(close(translation_invariance_violation_2d(map, {3, 4}), 0.0));
        QVERIFY(translation_invariance_violation(map) > 0.1);
        QVERIFY(translation_invariance_violation_2d(map, {4, 3}) > 0.1);
        QVERIFY(std::isnan(translation_invariance_violation_2d(map, {3, 3})));
        QVERIFY(close(monotonicity_violation_2d(map, {3, 4}), 0.0));
        for (double& value : map.values) value = -value;
        QVERIFY(close(monotonicity_violation_2d(map, {3, 4}), 1.0));
        map(3, 3) = undefined;
        QVERIFY(std::isnan(translation_invariance_violation_2d(map, {3, 4})));
        QVERIFY(std::isnan(monotonicity_violation_2d(map, {3, 4})));
    }

    void monotonicity_on_a_grid_by_hand()
    {
        // 1 x 3 patches are a line of three: the same as in one dimension.
        const PositionMap map = map_of(3, {5, 3, 4, 1, 2, 0, 7, 8, 6});
        QVERIFY(close(monotonicity_violation_2d(map, {1, 3}), monotonicity_violation(map, all_offsets)));
        QVERIFY(close(monotonicity_violation_2d(map, {3, 1}), monotonicity_violation(map, all_offsets)));
        QVERIFY(close(monotonicity_violation_2d(map, {1, 3}, 1), monotonicity_violation(map, 1)));
        // Steps: -2 +1 | -1 -2 | +2 -1: up 3 of 9; one step away only: -2 | -1 -2 | +2: up 2 of 7.
        QVERIFY(close(monotonicity_violation(map, all_offsets), 3.0 / 9.0));
        QVERIFY(close(monotonicity_violation(map, 1), 2.0 / 7.0));
    }

    void monotonicity_by_hand()
    {
        // Preceding: 3 times -2, twice +1, once -2; following: 3 times -1, twice -2, once +1: up 3 of 18.
        QVERIFY(close(monotonicity_violation(hand_map(), all_offsets), 3.0 / 18.0));
        QVERIFY(close(monotonicity_violation(hand_map(), 1), 0.0));
        QVERIFY(close(monotonicity_violation_steps(hand_map(), all_offsets), 3.0 / 12.0));
        QVERIFY(close(monotonicity_violation(toeplitz(9, [](int k) { return std::abs(k); })), 1.0));
        // A tiny step is no step, but a change all the same.
        const PositionMap tiny = map_of(2, {1.0, 1.0 + 1e-6, 0.0, 1.0});
        QVERIFY(close(monotonicity_violation_steps(tiny), 0.0));
        QVERIFY(monotonicity_violation(tiny) > 0.0);
        // A step from or to an entry that does not exist is no step.
        const PositionMap gap = map_of(3, {5, undefined, 4, 1, 2, 0, 7, undefined, 6});
        QVERIFY(close(monotonicity_violation(gap, all_offsets), 0.0));
    }

    void symmetry_by_hand()
    {
        // Pairs: three (1, 2), two (2, 0), one (0, 1): antisymmetric (3 + 8 + 1) / 2 = 6; about 14/12: 24 - 49/3.
        QVERIFY(close(symmetry_violation(hand_map()), 6.0 / (24.0 - 49.0 / 3.0)));
        QVERIFY(close(symmetry_violation(toeplitz(7, [](int k) { return -std::abs(k); })), 0.0));
        QVERIFY(close(symmetry_violation(toeplitz(7, [](int k) { return k; })), 1.0));
        QVERIFY(std::isnan(symmetry_violation(causal(noise(7, 1)))));
        // One undefined entry takes its mirror image along.
        PositionMap map = toeplitz(5, [](int k) { return -std::abs(k); });
        map(0, 3) = undefined;
        map(3, 0) = 100.0;
        QVERIFY(close(symmetry_violation(map), 0.0));
    }

    void direction_by_hand()
    {
        QVERIFY(close(direction_balance(hand_map(), Quantity::probabilities), 0.0));
        QVERIFY(close(direction_balance(hand_map(), Quantity::probabilities, 1), (3.0 - 6.0) / 9.0));
        // Entries one apart: 1 and 2, three each: means differ by -1, standard deviation 1/2.
        QVERIFY(close(direction_balance(hand_map(), Quantity::logits, 1), -1.0));
        const auto one_sided = toeplitz(6, [](int k) { return k < 0 ? 1.0 : 0.0; });
        QVERIFY(close(direction_balance(one_sided, Quantity::logits), 1.0));
        QVERIFY(close(direction_balance(one_sided, Quantity::probabilities), 1.0));
        QVERIFY(std::isnan(direction_balance(causal(one_sided), Quantity::logits)));
        // Both sides equal and constant: no preference although the map itself is not flat.
        QVERIFY(close(
            direction_balance(toeplitz(6, [](int k) { return k == 0 ? 1.0 : 0.0; }), Quantity::logits), 0.0));
    }

    void transposing_keeps_symmetry_and_turns_direction()
    {
        const PositionMap map = noise(15, 6);
        QVERIFY(close(symmetry_violation(transposed(map)), symmetry_violation(map)));
        for (const Quantity quantity : {Quantity::logits, Quantity::probabilities})
            QVERIFY(close(direction_balance(transposed(map), quantity, 5),
                          -direction_balance(map, quantity, 5), 1e-10));
        QVERIFY(
            close(translation_invariance_violation(transposed(map)), translation_invariance_violation(map)));
    }

    void white_band_by_hand()
    {
        // Profile 0 1 2 4 [0] 4 2 1 0: mean 14/9, mean square 42/9.
        const auto profile = [](int k) {
            constexpr double values[] = {0, 4, 2, 1, 0};
            return values[std::abs(k)];
        };
        const WhiteBand band = white_band(toeplitz(5, profile));
        QCOMPARE(band.width, 1.0);
        QCOMPARE(band.depth, 4.0);
        QVERIFY(close(band.depth_sd, 4.0 / std::sqrt(42.0 / 9.0 - 196.0 / 81.0)));
        QCOMPARE(band.first, 0.0);
        QCOMPARE(band.last, 0.0);

        const auto wide = [](int k) {
            return k >= -1 && k <= 2 ? 0.5 * std::abs(k) : 5.0 - 0.1 * std::abs(k);
        };
        const WhiteBand uneven = white_band(toeplitz(9, wide));
        QCOMPARE(uneven.width, 4.0);
        QCOMPARE(uneven.first, -1.0);
        QCOMPARE(uneven.last, 2.0);
        QVERIFY(close(uneven.depth, 4.7)); // the lower peak is that of the following side, at offset 3
    }

    void no_white_band()
    {
        const auto none = [](const WhiteBand& band) {
            return band.width == 0.0 && band.depth == 0.0 && band.depth_sd == 0.0 && band.first == 0.0 &&
                   band.last == 0.0;
        };
        QVERIFY(none(white_band(toeplitz(9, [](int k) { return -std::abs(k); }))));
        // A mere preference for one direction.
        QVERIFY(none(white_band(toeplitz(9, [](int k) { return k < 0 ? 1.0 : -0.1 * k; }))));
        // Wider than 11 offsets.
        QVERIFY(none(white_band(toeplitz(30, [](int k) { return std::abs(k) < 7 ? 0.0 : 1.0; }))));
        QCOMPARE(white_band(toeplitz(30, [](int k) { return std::abs(k) < 6 ? 0.0 : 1.0; })).width, 11.0);
        // Shallower than a tenth of the range.
        QVERIFY(
            none(white_band(toeplitz(9, [](int k) { return k == 0 ? -0.05 : -0.2 * std::abs(k) + 0.2; }))));
        // Drowned in noise.
        PositionMap noisy = noise(12, 8);
        for (std::size_t i = 0; i < 12; ++i) noisy(i, i) -= 0.3;
        QVERIFY(none(white_band(noisy)));
        // Nothing beside the diagonal, and no diagonal: undefined.
        QVERIFY(std::isnan(white_band(map_of(2, {1, undefined, undefined, 2})).width));
        QVERIFY(std::isnan(white_band(map_of(2, {undefined, 1, 2, undefined})).width));
    }

    void causal_white_band()
    {
        const WhiteBand band = white_band(causal(toeplitz(9, [](int k) { return k == 0 ? -3.0 : 0.1 * k; })));
        QCOMPARE(band.width, 1.0);
        QVERIFY(close(band.depth, 2.9));
    }

    void first_position_by_property()
    {
        const auto decay = [](int k) { return -0.3 * std::abs(k) + (k < 0 ? 0.2 : 0.0); };
        QVERIFY(close(first_position_extra(toeplitz(12, decay), Quantity::logits), 1.0));
        for (const bool in_decoder : {false, true}) {
            PositionMap map = toeplitz(12, decay);
            for (std::size_t i = 1; i < 12; ++i) map(i, 0) += std::log(5.0);
            for (std::size_t i = 0; i < 12; ++i) // a constant per query changes nothing
                for (std::size_t j = 0; j < 12; ++j) map(i, j) += std::cos(static_cast<double>(i));
            if (in_decoder) map = causal(map);
            QVERIFY(close(first_position_extra(map, Quantity::logits), 5.0));
            for (double& value : map.values) value = std::exp(value);
            QVERIFY(close(first_position_extra(map, Quantity::probabilities), 5.0));
            QVERIFY(close(first_position_log_extra(map, Quantity::probabilities), std::log(5.0)));
        }
        QVERIFY(std::isnan(first_position_extra(noise(3, 1), Quantity::logits)));
    }

    void locality_by_hand()
    {
        const PositionMap map = map_of(3, {0.5, 0.25, 0.25, 0.1, 0.6, 0.3, 0.0, 0.0, 1.0});
        const double wanted = (0.5 + 0.125 + 0.0625 + 0.05 + 0.6 + 0.15 + 1.0) / 3.0;
        QVERIFY(close(locality(map), wanted));
        QVERIFY(close(locality(map_of(2, {1.0, undefined, 0.5, 0.5})), (1.0 + 0.25 + 0.5) / 2.0));
        // One row with one pair: no span, zero.
        QVERIFY(close(locality_symmetry(map), 1.0));
        // Rows 1 and 3 have one pair each (0); row 2: differences 0.3 at distance 1, 0.1 at distance 2: 1 and 0.
        PositionMap five = toeplitz(5, [](int) { return 0.2; });
        five(2, 1) = 0.5;
        five(2, 0) = 0.3;
        QVERIFY(close(locality_symmetry(five), 1.0 - 1.0 / 4.0));
        QVERIFY(std::isnan(locality_symmetry(causal(five))));
        QVERIFY(std::isnan(locality_symmetry(map_of(2, {1, 0, 0, 1}))));
    }

    void attention_distance_by_hand()
    {
        const PositionMap map =
            map_of(3, {1.0, undefined, undefined, 0.25, 0.75, undefined, 0.5, 0.25, 0.25});
        const AttentionDistance found = attention_distance(map);
        QVERIFY(close(found.distance[0], 0.0));
        QVERIFY(close(found.distance[1], 0.25));
        QVERIFY(close(found.distance[2], 1.25));
        QVERIFY(std::isnan(found.ratio[0]));
        QVERIFY(close(found.ratio[1], 0.5));
        QVERIFY(close(found.ratio[2], 1.25));
        QVERIFY(close(mean_of_defined(found.ratio), 0.875));
        QVERIFY(std::isnan(mean_of_defined({undefined})));
        // Rows are renormalised.
        QVERIFY(close(attention_distance(map_of(2, {1.0, 3.0, 2.0, 2.0})).distance[0], 0.75));
    }

    void flat_maps()
    {
        QVERIFY(is_flat(map_of(2, {3, 3, 3, 3})));
        QVERIFY(is_flat(map_of(2, {undefined, undefined, undefined, undefined})));
        QVERIFY(is_flat(map_of(2, {0, 0, 0, 0})));
        QVERIFY(is_flat(PositionMap{}));
        QVERIFY(!is_flat(map_of(2, {3, 3, 3, 3.001})));
        QVERIFY(is_flat(map_of(2, {3, 3, 3, 3.00001})));
        const PositionMap falling =
            map_of(3, {1, undefined, undefined, 0.5, 0.5, undefined, 1.0 / 3, 1.0 / 3, 1.0 / 3});
        QVERIFY(is_flat(falling, Quantity::probabilities));
        QVERIFY(!is_flat(falling, Quantity::logits));
        QVERIFY(is_causal(falling));
        QVERIFY(!is_causal(map_of(1, {1})));
        QVERIFY(close(largest_magnitude(map_of(2, {1, -4, undefined, 2})), 4.0));
    }

    void flat_maps_have_no_metrics()
    {
        for (const Metric& metric : metric_list()) {
            const PositionMap flat = toeplitz(6, [](int) { return 0.25; });
            QVERIFY2(std::isnan(metric.evaluate(flat, Quantity::logits)), metric.id.data());
            QVERIFY2(std::isnan(metric.evaluate(flat, Quantity::constants_removed)), metric.id.data());
        }
    }

    void no_map_is_too_small()
    {
        for (const Metric& metric : metric_list())
            for (const Quantity quantity :
                 {Quantity::logits, Quantity::constants_removed, Quantity::probabilities})
                for (std::size_t length = 0; length < 5; ++length) {
                    const double value = metric.evaluate(noise(length, 3), quantity);
                    const double nothing =
                        metric.evaluate(toeplitz(length, [](int) { return undefined; }), quantity);
                    QVERIFY2(length > 0 || std::isnan(value), metric.id.data());
                    QVERIFY2(std::isnan(nothing) || nothing == 0.0, metric.id.data());
                }
    }

    void list_is_in_order()
    {
        std::set<std::string> ids;
        std::set<std::string> labels;
        for (const Metric& metric : metric_list()) {
            QVERIFY(ids.emplace(metric.id).second);
            QVERIFY(labels.emplace(metric.short_label).second);
            QVERIFY(!metric.label.empty() && !metric.explanation.empty() && !metric.source.empty());
            QVERIFY(metric.least < metric.most);
            for (std::uint64_t seed = 0; seed < 5; ++seed) {
                PositionMap map = noise(9, seed);
                for (double& value : map.values) value = std::abs(value);
                for (std::size_t i = 0; i < 9; ++i) {
                    double sum = 0.0;
                    for (std::size_t j = 0; j < 9; ++j) sum += map(i, j);
                    for (std::size_t j = 0; j < 9; ++j) map(i, j) /= sum;
                }
                const double value = metric.evaluate(map, Quantity::probabilities);
                QVERIFY2(value >= metric.least && value <= metric.most, metric.id.data());
                QCOMPARE(metric.whole_number && value != std::round(value), false);
            }
        }
        QCOMPARE(ids.size(), std::size_t{18});
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::Metrics)
#include "tst_metrics.moc"
