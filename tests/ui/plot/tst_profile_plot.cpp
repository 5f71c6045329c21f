// SPDX-License-Identifier: GPL-3.0-or-later
#include <QApplication>
#include <QSignalSpy>
#include <QTest>
#include <QWheelEvent>

#include "tests/support/plot_maps.h"
#include "ui/plot/plot_colors.h"
#include "ui/plot/profile_plot.h"

using namespace posiscope::ui;
using posiscope::test::no_value;

namespace {

/// Offsets -4 .. 4 with a band of low values at -1 .. 1.
ProfileCurve toy_curve()
{
    ProfileCurve curve;
    curve.first_offset = -4;
    curve.mean = {0.0, 1.0, 2.0, 0.5, 0.4, 0.5, 2.0, 1.0, 0.0};
    curve.spread.assign(9, 0.3);
    curve.standard_error.assign(9, 0.1);
    curve.white_band = WhiteBandOffsets{-1, 1};
    return curve;
}

QWidget* surface(ProfilePlot& plot)
{
    return plot.childAt(plot.rect().center());
}

void show(ProfilePlot& plot, const ProfileCurve& curve)
{
    plot.resize(520, 320);
    plot.setProfile(curve, QStringLiteral("attention logit"));
    plot.show();
    QVERIFY(QTest::qWaitForWindowExposed(&plot));
    QCoreApplication::processEvents();
}

} // namespace

class TestProfilePlot : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void line_bands_and_white_band_are_where_the_values_are()
    {
        ProfilePlot plot;
        show(plot, toy_curve());
        const PlotColors colors = plot_colors(plot.palette());
        const QImage picture = plot.grab().toImage();
        const auto color_at = [&](double offset, double value) {
            const QPointF left = plot.pointAt(-4);
            const QPointF right = plot.pointAt(4);
            const QPointF high = plot.pointAt(2);
            const double x = left.x() + (offset + 4.0) / 8.0 * (right.x() - left.x());
            const double y = left.y() + value / 2.0 * (high.y() - left.y());
            return picture.pixelColor(QPointF(x, y).toPoint());
        };
        // The line has thickness, so that the point itself has its colour.
        QCOMPARE(color_at(2.0, 2.0).rgb(), colors.curve.rgb());
        QCOMPARE(color_at(-3.0, 1.06).rgb(), colors.standard_error.rgb());
        QCOMPARE(color_at(-3.0, 0.8).rgb(), colors.spread.rgb());
        QCOMPARE(color_at(0.5, 1.5).rgb(), colors.white_band.rgb());
        QCOMPARE(color_at(3.2, 2.0).rgb(), colors.background.rgb());
    }

    void pointing_clicking_and_leaving()
    {
        ProfilePlot plot;
        show(plot, toy_curve());
        QSignalSpy hovered(&plot, &ProfilePlot::offsetHovered);
        QSignalSpy clicked(&plot, &ProfilePlot::offsetClicked);
        QSignalSpy left(&plot, &ProfilePlot::offsetLeft);
        const QPoint place(static_cast<int>(plot.pointAt(-3).x()), plot.plotRect().center().y());
        QTest::mouseMove(surface(plot), place);
        QCOMPARE(hovered.last(), QVariantList({-3}));
        QTest::mouseClick(surface(plot), Qt::LeftButton, {}, place);
        QCOMPARE(clicked.last(), QVariantList({-3}));
        QTest::mouseMove(surface(plot), QPoint(1, 1));
        QCOMPARE(left.size(), 1);
    }

    void marking_draws_a_line()
    {
        ProfilePlot plot;
        show(plot, toy_curve());
        const QPoint place(static_cast<int>(plot.pointAt(3).x()), plot.plotRect().bottom() - 4);
        const QColor before = plot.grab().toImage().pixelColor(place);
        plot.setMarkedOffset(3);
        QCoreApplication::processEvents();
        const QImage after = plot.grab().toImage();
        QCOMPARE(after.pixelColor(place).rgb(), plot_colors(plot.palette()).mark.rgb());
        QVERIFY(before != after.pixelColor(place));
    }

    void zoom_stays_inside_and_resets()
    {
        ProfilePlot plot;
        show(plot, toy_curve());
        QSignalSpy changed(&plot, &ProfilePlot::offsetRangeChanged);
        const QPointF place(plot.pointAt(2).x(), plot.plotRect().center().y());
        QWheelEvent event(place, plot.mapToGlobal(place.toPoint()), QPoint(), QPoint(0, 240), Qt::NoButton,
                          Qt::NoModifier, Qt::NoScrollPhase, false);
        QApplication::sendEvent(surface(plot), &event);
        QCOMPARE(changed.size(), 1);
        QVERIFY(plot.firstShown() > -4);
        QVERIFY(plot.firstShown() <= 2 && plot.lastShown() >= 2);
        QTest::mouseDClick(surface(plot), Qt::LeftButton, {}, plot.plotRect().center());
        QCOMPARE(plot.firstShown(), -4);
        QCOMPARE(plot.lastShown(), 4);
        plot.setOffsetRange(-100, 1);
        QCOMPARE(plot.firstShown(), -4);
        QCOMPARE(plot.lastShown(), 1);
    }

    void undefined_offsets_leave_a_gap()
    {
        ProfileCurve curve = toy_curve();
        for (std::size_t n = 5; n < 9; ++n) curve.mean[n] = curve.spread[n] = no_value; // a decoder's future
        curve.standard_error.clear();
        curve.white_band.reset();
        ProfilePlot plot;
        show(plot, curve);
        const QImage picture = plot.grab().toImage();
        const QRect area = plot.plotRect();
        const PlotColors colors = plot_colors(plot.palette());
        for (int x = area.center().x() + area.width() / 6; x < area.right() - 2; ++x)
            for (int y = area.top() + 2; y < area.bottom() - 2; ++y)
                QVERIFY(picture.pixel(x, y) != colors.curve.rgb() &&
                        picture.pixel(x, y) != colors.spread.rgb());
    }

    void value_range_covers_the_bands()
    {
        const auto range = curve_value_range(toy_curve(), -4, 4);
        QVERIFY(range);
        QCOMPARE(range->first, -0.3);
        QCOMPARE(range->second, 2.3);
        ProfileCurve nothing;
        nothing.mean = {no_value};
        QVERIFY(!curve_value_range(nothing, 0, 0));
    }

    void an_empty_plot_answers_nothing()
    {
        ProfilePlot plot;
        plot.resize(300, 200);
        plot.show();
        QVERIFY(QTest::qWaitForWindowExposed(&plot));
        QSignalSpy hovered(&plot, &ProfilePlot::offsetHovered);
        QTest::mouseMove(surface(plot), QPoint(150, 100));
        QTest::keyClick(&plot, Qt::Key_Right);
        QCOMPARE(hovered.size(), 0);
    }
};

QTEST_MAIN(TestProfilePlot)
#include "tst_profile_plot.moc"
