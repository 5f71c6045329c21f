// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>
#include <vector>

#include <QFloat16> // JSON asks what it can become
#include <QFile>
#include <QIODevice>
#include <QTest>
#include <nlohmann/json.hpp>

#include "core/metrics/pearson.h"
#include "tests/support/position_maps.h"

namespace posiscope::core {

using tests::close;

class Pearson : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void reference_case()
    {
        QFile file(POSISCOPE_TEST_DATA "/reference/cases.json");
        QVERIFY(file.open(QIODevice::ReadOnly));
        const auto wanted = nlohmann::json::parse(file.readAll().toStdString())["pearson_13"];
        const auto found =
            pearson(wanted["x"].get<std::vector<double>>(), wanted["y"].get<std::vector<double>>());
        QVERIFY(found.has_value());
        QVERIFY(close(found->r, wanted["r"].get<double>(), 1e-12));
        const double p = wanted["p"].get<double>();
        QVERIFY(std::abs(found->p - p) <= 1e-9 * p);
        QVERIFY(close(found->lowest, wanted["interval_95"][0].get<double>(), 1e-12));
        QVERIFY(close(found->highest, wanted["interval_95"][1].get<double>(), 1e-12));
    }

    void by_hand()
    {
        // Deviations -1.5 -.5 .5 1.5 and -1.75 .25 -.75 2.25: 5.5 / sqrt(5 * 8.75).
        const auto found = pearson(std::vector<double>{1, 2, 3, 4}, std::vector<double>{1, 3, 2, 5});
        QVERIFY(found.has_value());
        QVERIFY(close(found->r, 5.5 / std::sqrt(5.0 * 8.75)));
        QVERIFY(close(found->p, 1.0 - found->r)); // two degrees of freedom
        QVERIFY(close(found->lowest, -0.6451324587565248, 1e-9));
        QVERIFY(close(found->highest, 0.9963561001514174, 1e-9));
    }

    void edges()
    {
        const auto opposite = pearson(std::vector<double>{1, 2, 3, 4}, std::vector<double>{8, 6, 4, 2});
        QVERIFY(opposite.has_value());
        QVERIFY(close(opposite->r, -1.0));
        QVERIFY(opposite->p < 1e-12);
        QVERIFY(close(opposite->highest, -1.0));

        const auto three = pearson(std::vector<double>{1, 2, 3}, std::vector<double>{1, 2, 2});
        QVERIFY(three.has_value());
        QCOMPARE(three->lowest, -1.0);
        QCOMPARE(three->highest, 1.0);
        QVERIFY(three->p > 0.0 && three->p < 1.0);

        const auto constant = pearson(std::vector<double>{1, 1, 1}, std::vector<double>{1, 2, 3});
        QVERIFY(constant.has_value());
        QVERIFY(std::isnan(constant->r) && std::isnan(constant->p) && std::isnan(constant->lowest));

        const auto two = pearson(std::vector<double>{1, 2}, std::vector<double>{1, 2});
        QVERIFY(two.has_value());
        QCOMPARE(two->r, 1.0);
        QVERIFY(std::isnan(two->p));

        QCOMPARE(pearson(std::vector<double>{1, 2}, std::vector<double>{1}).error().code,
                 ErrorCode::invalid_argument);
        QCOMPARE(pearson(std::vector<double>{1}, std::vector<double>{1}).error().code,
                 ErrorCode::invalid_argument);
    }

    /// Numbers of an independent implementation.
    void incomplete_beta()
    {
        QVERIFY(close(regularised_incomplete_beta(2.5, 0.5, 0.3), 0.018927124071945658, 1e-13));
        QVERIFY(close(regularised_incomplete_beta(0.5, 0.5, 0.5), 0.5, 1e-13));
        QVERIFY(close(regularised_incomplete_beta(10.0, 3.0, 0.9), 0.889130022255, 1e-12));
        QVERIFY(close(regularised_incomplete_beta(200.0, 0.5, 0.99), 0.04509410713707966, 1e-12));
        QVERIFY(close(regularised_incomplete_beta(1.0, 1.0, 0.25), 0.25, 1e-13));
        QVERIFY(close(regularised_incomplete_beta(3.0, 40.0, 0.02), 0.0515495403923762, 1e-12));
        QCOMPARE(regularised_incomplete_beta(2.0, 3.0, 0.0), 0.0);
        QCOMPARE(regularised_incomplete_beta(2.0, 3.0, 1.0), 1.0);
        QVERIFY(std::isnan(regularised_incomplete_beta(2.0, 3.0, 1.5)));
        QVERIFY(std::isnan(regularised_incomplete_beta(0.0, 3.0, 0.5)));
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::Pearson)
#include "tst_pearson.moc"
