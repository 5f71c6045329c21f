// SPDX-License-Identifier: GPL-3.0-or-later
// The loops over maps in every instruction set that this processor has, against plain sums, at every alignment.
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <QTest>

#include "core/base/random.h"
#include "core/kernels/kernel_set.h"

namespace posiscope::core {
namespace {

constexpr std::size_t most = 37; // several vectors and a rest

std::vector<double> random_values(std::size_t count, std::uint64_t seed)
{
    Random random(seed);
    std::vector<double> values(count);
    for (double& value : values) value = random.normal();
    return values;
}

bool close(double found, double wanted)
{
    return std::abs(found - wanted) <= 1e-14 * std::max(1.0, std::abs(wanted));
}

} // namespace

class TestMapKernels : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void every_set_data()
    {
        QTest::addColumn<std::size_t>("set");
        QTest::addColumn<std::size_t>("n");
        for (std::size_t set = 0; set < available_kernels().size(); ++set)
            for (const std::size_t n :
                 {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{16}, most})
                QTest::addRow("%s %zu", available_kernels()[set]->name.data(), n) << set << n;
    }

    void every_set()
    {
        QFETCH(std::size_t, set);
        QFETCH(std::size_t, n);
        const MapKernels& kernels = *available_kernels()[set]->maps;
        const std::vector<double> row = random_values(most + 1, 1);
        const std::vector<double> other = random_values(most + 1, 2);

        std::vector<double> mixed(most, -1.0);
        const double* rows[] = {row.data(), other.data(), row.data() + 1};
        const double weights[] = {2.0, 3.0, 5.0};
        kernels.mix_rows(rows, weights, 3, 10.0, mixed.data(), n);
        for (std::size_t k = 0; k < n; ++k)
            QVERIFY(close(mixed[k], (2.0 * row[k] + 3.0 * other[k] + 5.0 * row[k + 1]) / 10.0));
        if (n < most) QCOMPARE(mixed[n], -1.0); // nothing beyond the end

        std::vector<double> sum(most, 1.0);
        std::vector<double> largest(most, 0.5);
        kernels.add_to_diagonals(row.data(), 0.25, sum.data(), largest.data(), n);
        std::vector<double> squares(most, 1.0);
        kernels.add_squares(row.data(), 0.25, other.data(), squares.data(), n);
        std::vector<double> weighted(most, 1.0);
        kernels.add_weighted(row.data(), 0.25, other.data(), weighted.data(), n);
        for (std::size_t k = 0; k < n; ++k) {
            QVERIFY(close(sum[k], 1.0 + row[k] - 0.25));
            QVERIFY(close(largest[k], std::max(0.5, std::abs(row[k] - 0.25))));
            QVERIFY(close(squares[k], 1.0 + std::pow(row[k] - 0.25 - other[k], 2)));
            QVERIFY(close(weighted[k], 1.0 + (0.25 + other[k]) * row[k]));
        }

        for (const double direction : {1.0, -1.0}) {
            std::vector<double> rise(most, 0.0), change(most, 0.0), rising(most, 0.0), steps(most, 0.0);
            kernels.add_steps(row.data(), direction, 0.5, rise.data(), change.data(), rising.data(),
                              steps.data(), n);
            for (std::size_t k = 0; k < n; ++k) {
                const double step = direction * (row[k + 1] - row[k]);
                QCOMPARE(rise[k], std::max(step, 0.0));
                QCOMPARE(change[k], std::abs(step));
                QCOMPARE(rising[k], step > 0.5 ? 1.0 : 0.0);
                QCOMPARE(steps[k], std::abs(step) > 0.5 ? 1.0 : 0.0);
            }
        }
    }

    void logarithms_do_not_depend_on_alignment()
    {
        std::vector<double> values = random_values(most, 3);
        for (double& value : values) value = std::exp(20.0 * value);
        for (const KernelSet* set : available_kernels()) {
            std::vector<double> wanted(most);
            set->maps->logarithms(values.data(), wanted.data(), most);
            for (std::size_t k = 0; k < most; ++k) QVERIFY(close(wanted[k], std::log(values[k])));
            for (std::size_t shift = 1; shift < 8; ++shift) {
                std::vector<double> from(shift + most);
                std::vector<double> found(shift + most + 1, -1.0);
                std::copy(values.begin(), values.end(), from.begin() + static_cast<std::ptrdiff_t>(shift));
                set->maps->logarithms(from.data() + shift, found.data() + shift, most);
                QVERIFY(std::memcmp(found.data() + shift, wanted.data(), most * sizeof(double)) == 0);
                QCOMPARE(found[shift + most], -1.0);
            }
        }
    }

    void logarithms_of_no_probability()
    {
        const double values[] = {0.0, -1.0, 1.0};
        for (const KernelSet* set : available_kernels()) {
            double found[3];
            set->maps->logarithms(values, found, 3);
            QCOMPARE(found[0], -std::numeric_limits<double>::infinity());
            QVERIFY(std::isnan(found[1]));
            QCOMPARE(found[2], 0.0);
        }
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestMapKernels)
#include "tst_map_kernels.moc"
