// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>

#include "ui/plot/ticks.h"

using namespace posiscope::ui;

namespace {

QStringList labels(const std::vector<Tick>& ticks)
{
    QStringList out;
    for (const Tick& tick : ticks) out.append(tick.label);
    return out;
}

} // namespace

class TestTicks : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void positions_are_whole_and_inside()
    {
        QCOMPARE(labels(integer_ticks(0, 127, 7)), QStringList({"0", "20", "40", "60", "80", "100", "120"}));
        QCOMPARE(labels(integer_ticks(0, 4, 11)), QStringList({"0", "1", "2", "3", "4"}));
        QCOMPARE(labels(integer_ticks(37, 52, 4)), QStringList({"40", "45", "50"}));
        QCOMPARE(labels(integer_ticks(5, 5, 4)), QStringList({"5"}));
        QCOMPARE(labels(integer_ticks(-2, 2, 3)), QStringList({QStringLiteral("\u22122"), "0", "2"}));
    }

    void values_have_equal_decimals_and_stay_inside_data()
    {
        QTest::addColumn<double>("lower");
        QTest::addColumn<double>("upper");
        QTest::newRow("logits") << -3.97 << 4.9;
        QTest::newRow("probabilities") << 0.0031 << 0.0198;
        QTest::newRow("narrow") << 1.2345 << 1.2346;
        QTest::newRow("tiny") << 2e-9 << 7e-9;
        QTest::newRow("huge") << -3e7 << 9e8;
        QTest::newRow("beside zero") << -1e-17 << 1.0;
    }

    void values_have_equal_decimals_and_stay_inside()
    {
        QFETCH(double, lower);
        QFETCH(double, upper);
        for (int most = 2; most <= 12; ++most) {
            const std::vector<Tick> ticks = value_ticks(lower, upper, most);
            QVERIFY(!ticks.empty());
            QVERIFY(ticks.size() <= static_cast<std::size_t>(most));
            for (const Tick& tick : ticks) QVERIFY(tick.at >= lower && tick.at <= upper);
            QStringList names = labels(ticks);
            QCOMPARE(names.removeDuplicates(), 0);
        }
    }

    void zero_has_no_sign()
    {
        QCOMPARE(fixed_text(-0.0001, 2), QStringLiteral("0.00"));
        QCOMPARE(fixed_text(-0.5, 1), QStringLiteral("\u22120.5"));
    }

    void values_for_reading()
    {
        QCOMPARE(value_text(1.3249), QStringLiteral("1.325"));
        QCOMPARE(value_text(0.0), QStringLiteral("0"));
        QCOMPARE(value_text(-12.5), QStringLiteral("\u221212.50"));
        QCOMPARE(value_text(std::numeric_limits<double>::quiet_NaN()), QStringLiteral("no value"));
        QCOMPARE(value_text(2.5e-7), QStringLiteral("2.500\u00D710\u207B\u2077"));
        QCOMPARE(value_with_error_text(0.07775, 0.05), QStringLiteral("0.078 \u00B1 0.050"));
        QCOMPARE(value_with_error_text(1.3249, std::numeric_limits<double>::quiet_NaN()),
                 QStringLiteral("1.325"));
    }

    void logarithmic_bar_has_powers_of_ten()
    {
        ColorScale scale;
        scale.kind = ScaleKind::logarithmic;
        scale.lower = 3e-4;
        scale.upper = 0.5;
        QCOMPARE(labels(color_bar_ticks(scale, 6)),
                 QStringList({QStringLiteral("10\u207B\u00B3"), QStringLiteral("10\u207B\u00B2"),
                              QStringLiteral("10\u207B\u00B9")}));
        scale.lower = 0.02;
        scale.upper = 0.3;
        const std::vector<Tick> few = color_bar_ticks(scale, 6);
        QCOMPARE(labels(few), QStringList({"0.02", "0.05", "0.1", "0.2"}));
        QCOMPARE(few.front().at, 0.0);
    }

    void bar_of_one_value_has_one_mark()
    {
        ColorScale scale;
        scale.lower = scale.upper = 2.0;
        QCOMPARE(labels(color_bar_ticks(scale, 6)), QStringList({"2.000"}));
    }

    void long_names_break_at_the_comma()
    {
        const auto letters = [](const QString& text) { return static_cast<double>(text.size()); };
        QCOMPARE(wrapped_label("attention logits, query constants removed", 60, letters),
                 QStringLiteral("attention logits, query constants removed"));
        QCOMPARE(wrapped_label("attention logits, query constants removed", 30, letters),
                 QStringLiteral("attention logits,\nquery constants removed"));
    }
};

QTEST_APPLESS_MAIN(TestTicks)
#include "tst_ticks.moc"
