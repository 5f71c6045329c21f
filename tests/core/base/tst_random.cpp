// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <QTest>

#include "core/base/checked_math.h"
#include "core/base/random.h"

namespace posiscope::core {
namespace {

/// The seed of std::mt19937_64's own default; its first three numbers are
/// 14514284786278117030, 4620546740167642908 and 13109570281517897720.
constexpr std::uint64_t known_seed = 5489;

std::vector<std::int64_t> numbers_to(std::int64_t count)
{
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
}

} // namespace

class TestRandom : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void draws_are_those_of_the_fixed_generator()
    {
        Random whole(known_seed);
        QCOMPARE(whole.below(1000), std::uint64_t{30});
        QCOMPARE(whole.below(1000), std::uint64_t{908});
        QCOMPARE(whole.below(1000), std::uint64_t{720});
        Random real(known_seed);
        QCOMPARE(real.uniform(), std::floor(14514284786278117030.0 / 2048.0) / 9007199254740992.0);
    }

    void below_keeps_its_bound()
    {
        Random random(3);
        std::vector<int> seen(7, 0);
        for (int n = 0; n < 7000; ++n) ++seen[random.below(7)];
        for (const int count : seen) QVERIFY(count > 850 && count < 1150);
        QCOMPARE(random.below(1), std::uint64_t{0});
        // The largest bound: half of the generator's numbers are not thrown away for ever.
        QVERIFY(random.below(~std::uint64_t{0}) < ~std::uint64_t{0});
    }

    void uniform_lies_in_the_unit_interval()
    {
        Random random(4);
        double sum = 0.0;
        for (int n = 0; n < 10000; ++n) {
            const double drawn = random.uniform();
            QVERIFY(drawn >= 0.0 && drawn < 1.0);
            sum += drawn;
        }
        QVERIFY(std::abs(sum / 10000.0 - 0.5) < 0.01);
    }

    void normal_has_the_moments_of_a_normal_deviate()
    {
        Random random(5);
        double sum = 0.0, square = 0.0, fourth = 0.0;
        constexpr int count = 40000;
        for (int n = 0; n < count; ++n) {
            const double drawn = random.normal();
            sum += drawn;
            square += drawn * drawn;
            fourth += drawn * drawn * drawn * drawn;
        }
        QVERIFY(std::abs(sum / count) < 0.02);
        QVERIFY(std::abs(square / count - 1.0) < 0.03);
        QVERIFY(std::abs(fourth / count - 3.0) < 0.2);
    }

    void samples_are_partial_shuffles()
    {
        // By hand from the three known numbers: 0 + 0 mod 5, 1 + 0 mod 4, 2 + 2 mod 3.
        QCOMPARE(sample_without_replacement(numbers_to(5), 3, known_seed),
                 (std::vector<std::int64_t>{0, 1, 4}));
    }

    void samples_have_no_member_twice()
    {
        auto drawn = sample_without_replacement(numbers_to(500), 300, 1);
        QCOMPARE(drawn.size(), std::size_t{300});
        std::sort(drawn.begin(), drawn.end());
        QVERIFY(std::adjacent_find(drawn.begin(), drawn.end()) == drawn.end());
        QVERIFY(drawn.front() >= 0 && drawn.back() < 500);
    }

    void a_larger_sample_begins_with_the_smaller_one()
    {
        const auto small = sample_without_replacement(numbers_to(100), 10, 7);
        const auto large = sample_without_replacement(numbers_to(100), 60, 7);
        QVERIFY(std::equal(small.begin(), small.end(), large.begin()));
        QVERIFY(small != sample_without_replacement(numbers_to(100), 10, 8));
    }

    void samples_larger_than_the_population_are_all_of_it()
    {
        auto drawn = sample_without_replacement(numbers_to(20), 50, 2);
        QVERIFY(drawn != numbers_to(20));
        std::sort(drawn.begin(), drawn.end());
        QCOMPARE(drawn, numbers_to(20));
        QVERIFY(sample_without_replacement({}, 3, 2).empty());
    }

    void every_member_is_drawn_as_often()
    {
        std::vector<int> seen(10, 0);
        for (std::uint64_t seed = 0; seed < 2000; ++seed)
            for (const std::int64_t member : sample_without_replacement(numbers_to(10), 3, seed))
                ++seen[static_cast<std::size_t>(member)];
        for (const int count : seen)
            QVERIFY(count > 500 && count < 700); // 600 expected, standard deviation 20
    }

    void sizes_do_not_overflow()
    {
        constexpr std::uint64_t most = ~std::uint64_t{0};
        QCOMPARE(checked_add(2, 3), std::optional<std::uint64_t>(5));
        QCOMPARE(checked_add(most, 0), std::optional<std::uint64_t>(most));
        QVERIFY(!checked_add(most, 1));
        QCOMPARE(checked_multiply(most, 1), std::optional<std::uint64_t>(most));
        QVERIFY(!checked_multiply(std::uint64_t{1} << 32u, std::uint64_t{1} << 32u));
        QCOMPARE(checked_multiply(0, most), std::optional<std::uint64_t>(0));
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestRandom)
#include "tst_random.moc"
