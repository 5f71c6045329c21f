// SPDX-License-Identifier: GPL-3.0-or-later
#include <QApplication>
#include <QSignalSpy>
#include <QTest>
#include <QWheelEvent>

#include "tests/support/plot_maps.h"
#include "ui/plot/heatmap_plot.h"

using namespace posiscope::ui;
using posiscope::core::PositionMap;
using posiscope::test::corner_board;
using posiscope::test::infinity;
using posiscope::test::no_value;

namespace {

/// The widget that gets the mouse: the plot covers the whole of ours.
QWidget* surface(HeatmapPlot& plot)
{
    return plot.childAt(plot.rect().center());
}

void show(HeatmapPlot& plot, const PositionMap& map, ScaleKind kind = ScaleKind::linear)
{
    plot.resize(520, 420);
    plot.setMap(map, make_color_scale(map, ColorMapId::viridis, kind), QStringLiteral("attention logit"));
    plot.show();
    QVERIFY(QTest::qWaitForWindowExposed(&plot));
    QCoreApplication::processEvents();
}

QRgb pixel_at(HeatmapPlot& plot, int query, int key)
{
    const QImage picture = plot.grab().toImage();
    const QPoint place = plot.cellRect(query, key).center().toPoint();
    return picture.pixel(place * picture.devicePixelRatio());
}

void wheel(HeatmapPlot& plot, const QPointF& place, int steps)
{
    QWheelEvent event(place, plot.mapToGlobal(place.toPoint()), QPoint(), QPoint(0, 120 * steps),
                      Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
    QApplication::sendEvent(surface(plot), &event);
}

} // namespace

class TestHeatmapPlot : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void cells_have_the_colors_of_the_scale_and_the_right_places_data()
    {
        QTest::addColumn<int>("length");
        QTest::newRow("3") << 3;
        QTest::newRow("5") << 5;
    }

    void cells_have_the_colors_of_the_scale_and_the_right_places()
    {
        QFETCH(int, length);
        const PositionMap map = corner_board(static_cast<std::size_t>(length));
        HeatmapPlot plot;
        show(plot, map);
        for (int query = 0; query < length; ++query) {
            for (int key = 0; key < length; ++key) {
                const double value = map(static_cast<std::size_t>(query), static_cast<std::size_t>(key));
                QCOMPARE(plot.valueAt(query, key), value);
                QCOMPARE(pixel_at(plot, query, key), plot.colorScale().color(value));
            }
        }
        // Query 0 on top, key 0 at the left, and the same after zoom and reset.
        QVERIFY(plot.cellRect(0, 0).top() < plot.cellRect(length - 1, 0).top());
        QVERIFY(plot.cellRect(0, 0).left() < plot.cellRect(0, length - 1).left());
        plot.setPositionRange(0, 1);
        plot.resetRange();
        QCoreApplication::processEvents();
        QCOMPARE(pixel_at(plot, 0, length - 1), plot.colorScale().color(0.4));
        QCOMPARE(pixel_at(plot, length - 1, 0), plot.colorScale().color(0.6));
    }

    void cells_are_square_and_whole_at_the_edges()
    {
        HeatmapPlot plot;
        show(plot, corner_board(5));
        for (const QSize& size : {QSize(700, 300), QSize(300, 500), QSize(520, 420)}) {
            plot.resize(size);
            QCoreApplication::processEvents();
            const QRect place = plot.heatmapRect();
            QCOMPARE(place.width(), place.height());
            QCOMPARE(plot.cellRect(0, 0).size(), plot.cellRect(4, 4).size());
            QCOMPARE(plot.cellRect(0, 0).topLeft(), QPointF(place.topLeft()));
            QCOMPARE(plot.cellRect(4, 4).bottomRight(),
                     QPointF(place.x() + place.width(), place.y() + place.height()));
            QVERIFY(plot.rect().contains(place));
            QVERIFY(plot.rect().contains(plot.colorBarRect()));
        }
    }

    void missing_and_infinite_cells_have_their_colors()
    {
        PositionMap map = corner_board(4);
        map(1, 2) = no_value;
        map(2, 1) = infinity;
        HeatmapPlot plot;
        show(plot, map);
        QCOMPARE(pixel_at(plot, 1, 2), missing_color(ColorMapId::viridis).rgb());
        QCOMPARE(pixel_at(plot, 2, 1), color_map_entry(ColorMapId::viridis, 255));
        QCOMPARE(pixel_at(plot, 0, 0), plot.colorScale().color(0.2));
        // The legend shows the colour of missing cells below the bar, and the clipped end stands above it.
        const QImage picture = plot.grab().toImage();
        const QRect bar = plot.colorBarRect();
        const QPoint swatch(bar.center().x(), plot.heatmapRect().bottom() - 5);
        QCOMPARE(picture.pixel(swatch), missing_color(ColorMapId::viridis).rgb());
        QCOMPARE(picture.pixel(bar.center().x(), bar.top() - 3), color_map_entry(ColorMapId::viridis, 255));
    }

    void color_bar_runs_from_upper_down_to_lower()
    {
        HeatmapPlot plot;
        show(plot, corner_board(3));
        const QImage picture = plot.grab().toImage();
        const QRect bar = plot.colorBarRect();
        const auto near = [](QRgb a, QRgb b) {
            return std::abs(qRed(a) - qRed(b)) + std::abs(qGreen(a) - qGreen(b)) +
                       std::abs(qBlue(a) - qBlue(b)) <
                   12;
        };
        QVERIFY(
            near(picture.pixel(bar.center().x(), bar.top() + 2), color_map_entry(ColorMapId::viridis, 254)));
        QVERIFY(
            near(picture.pixel(bar.center().x(), bar.bottom() - 2), color_map_entry(ColorMapId::viridis, 1)));
    }

    void first_position_shifts_the_numbers()
    {
        PositionMap map = corner_board(4);
        map.first_position = 1;
        HeatmapPlot plot;
        show(plot, map);
        QCOMPARE(plot.firstShown(), 1);
        QCOMPARE(plot.lastShown(), 4);
        QVERIFY(!plot.valueAt(0, 1));
        QCOMPARE(plot.valueAt(1, 1), 0.2);
        QSignalSpy hovered(&plot, &HeatmapPlot::cellHovered);
        QTest::mouseMove(surface(plot), plot.cellRect(1, 4).center().toPoint());
        QCOMPARE(hovered.size(), 1);
        QCOMPARE(hovered.first(), QVariantList({1, 4}));
    }

    void pointing_tells_the_cell_and_leaving_tells_once()
    {
        HeatmapPlot plot;
        show(plot, corner_board(5));
        QSignalSpy hovered(&plot, &HeatmapPlot::cellHovered);
        QSignalSpy left(&plot, &HeatmapPlot::cellLeft);
        QTest::mouseMove(surface(plot), plot.cellRect(3, 1).center().toPoint());
        QCOMPARE(hovered.last(), QVariantList({3, 1}));
        QTest::mouseMove(surface(plot), QPoint(2, 2));
        QTest::mouseMove(surface(plot), QPoint(3, 3));
        QCOMPARE(left.size(), 1);
    }

    void a_click_tells_the_cell()
    {
        HeatmapPlot plot;
        show(plot, corner_board(5));
        QSignalSpy clicked(&plot, &HeatmapPlot::cellClicked);
        QTest::mouseClick(surface(plot), Qt::LeftButton, {}, plot.cellRect(2, 4).center().toPoint());
        QCOMPARE(clicked.size(), 1);
        QCOMPARE(clicked.first(), QVariantList({2, 4}));
    }

    void wheel_zooms_about_the_cell_and_double_click_resets()
    {
        HeatmapPlot plot;
        show(plot, posiscope::test::noise(64));
        QSignalSpy changed(&plot, &HeatmapPlot::positionRangeChanged);
        wheel(plot, plot.cellRect(40, 44).center(), 3);
        QCOMPARE(changed.size(), 1);
        QVERIFY(plot.lastShown() - plot.firstShown() < 63);
        QVERIFY(plot.firstShown() <= 40 && plot.lastShown() >= 44);
        QVERIFY(!plot.cellRect(40, 44).isNull());
        for (int n = 0; n < 30; ++n) wheel(plot, plot.cellRect(40, 44).center(), 1);
        QVERIFY(plot.lastShown() - plot.firstShown() + 1 >= 4);
        QVERIFY(!plot.cellRect(40, 44).isNull());
        QTest::mouseDClick(surface(plot), Qt::LeftButton, {}, plot.heatmapRect().center());
        QCOMPARE(plot.firstShown(), 0);
        QCOMPARE(plot.lastShown(), 63);
    }

    void dragging_takes_a_range()
    {
        HeatmapPlot plot;
        show(plot, posiscope::test::noise(32));
        QSignalSpy changed(&plot, &HeatmapPlot::positionRangeChanged);
        QSignalSpy clicked(&plot, &HeatmapPlot::cellClicked);
        const QPoint from = plot.cellRect(10, 8).center().toPoint();
        const QPoint to = plot.cellRect(20, 19).center().toPoint();
        QTest::mousePress(surface(plot), Qt::LeftButton, {}, from);
        QTest::mouseMove(surface(plot), (from + to) / 2);
        QTest::mouseMove(surface(plot), to);
        QTest::mouseRelease(surface(plot), Qt::LeftButton, {}, to);
        QCOMPARE(changed.size(), 1);
        QCOMPARE(changed.first(), QVariantList({8, 20}));
        QCOMPARE(clicked.size(), 0);
        QCOMPARE(plot.firstShown(), 8);
        QCOMPARE(plot.lastShown(), 20);
    }

    void marking_draws_a_row_and_a_column_line()
    {
        PositionMap map = corner_board(9);
        for (double& value : map.values) value = 0.5;
        HeatmapPlot plot;
        show(plot, map);
        const QImage before = plot.grab().toImage();
        plot.setMarkedCell(QPoint(6, 2)); // key 6, query 2
        QCoreApplication::processEvents();
        const QImage after = plot.grab().toImage();
        const auto differs = [&](int query, int key) {
            const QPoint place = plot.cellRect(query, key).center().toPoint();
            return before.pixel(place) != after.pixel(place) ||
                   before.pixel(place - QPoint(1, 1)) != after.pixel(place - QPoint(1, 1));
        };
        QVERIFY(differs(2, 0));
        QVERIFY(differs(2, 8));
        QVERIFY(differs(0, 6));
        QVERIFY(differs(8, 6));
        QVERIFY(!differs(4, 4));
        QVERIFY(!differs(2, 6)); // the cell itself stays free
        QCOMPARE(plot.markedCell(), QPoint(6, 2));
    }

    void profiles_show_the_marked_cell_whenever_it_was_marked()
    {
        const PositionMap map = posiscope::test::noise(24);
        HeatmapPlot before;
        before.setMap(map, make_color_scale(map, ColorMapId::viridis, ScaleKind::linear),
                      QStringLiteral("attention logit"));
        before.setMarkedCell(QPoint(6, 2)); // no size yet, no profiles
        show(before, map);
        HeatmapPlot after;
        show(after, map);
        const QRect place = after.heatmapRect();
        const QImage means = after.grab().toImage();
        after.setMarkedCell(QPoint(6, 2));
        QCoreApplication::processEvents();
        QCOMPARE(after.heatmapRect(), place); // nothing moves
        const QImage marked = after.grab().toImage();
        QVERIFY(marked != means);
        QCOMPARE(before.grab().toImage(), marked);
        // From one cell to the next only layers are drawn again, with the same outcome.
        after.setMarkedCell(QPoint(9, 9));
        after.setMarkedCell(QPoint(6, 2));
        QCOMPARE(after.grab().toImage(), marked);
        after.setMarkedCell(std::nullopt);
        QCoreApplication::processEvents();
        QCOMPARE(after.grab().toImage(), means);
    }

    void arrow_keys_move_the_marked_cell()
    {
        HeatmapPlot plot;
        show(plot, corner_board(5));
        QSignalSpy hovered(&plot, &HeatmapPlot::cellHovered);
        QSignalSpy clicked(&plot, &HeatmapPlot::cellClicked);
        plot.setMarkedCell(QPoint(1, 3));
        QTest::keyClick(&plot, Qt::Key_Down);
        QCOMPARE(hovered.last(), QVariantList({4, 1}));
        QTest::keyClick(&plot, Qt::Key_Space);
        QCOMPARE(clicked.last(), QVariantList({3, 1}));
    }

    void the_first_key_survives_when_there_are_more_cells_than_pixels()
    {
        PositionMap map = posiscope::test::map_of(1024, std::vector<double>(1024 * 1024, 0.0));
        for (std::size_t query = 0; query < 1024; ++query) map(query, 0) = 1.0;
        HeatmapPlot plot;
        show(plot, map);
        QVERIFY(plot.heatmapRect().width() < 1024);
        const QImage picture = plot.grab().toImage();
        const QRect place = plot.heatmapRect();
        const QRgb first = picture.pixel(place.left() + 1, place.center().y());
        const QRgb other = picture.pixel(place.center());
        QVERIFY(first != other || picture.pixel(place.left(), place.center().y()) != other);
    }

    void colors_follow_the_palette()
    {
        HeatmapPlot plot;
        show(plot, corner_board(3));
        QPalette dark = plot.palette();
        dark.setColor(QPalette::Base, QColor(30, 30, 34));
        dark.setColor(QPalette::Text, QColor(225, 225, 225));
        plot.setPalette(dark);
        QCoreApplication::processEvents();
        QCOMPARE(plot.grab().toImage().pixel(1, 1), QColor(30, 30, 34).rgb());
        QCOMPARE(pixel_at(plot, 0, 0), plot.colorScale().color(0.2));
    }

    void an_empty_plot_draws_and_answers_nothing()
    {
        HeatmapPlot plot;
        plot.resize(300, 200);
        plot.show();
        QVERIFY(QTest::qWaitForWindowExposed(&plot));
        QSignalSpy hovered(&plot, &HeatmapPlot::cellHovered);
        QTest::mouseMove(surface(plot), QPoint(150, 100));
        QTest::keyClick(&plot, Qt::Key_Left);
        QCOMPARE(hovered.size(), 0);
        QVERIFY(!plot.valueAt(0, 0));
        show(plot, corner_board(3));
        plot.clear();
        QCoreApplication::processEvents();
        QVERIFY(plot.cellRect(0, 0).isNull());
    }
};

QTEST_MAIN(TestHeatmapPlot)
#include "tst_heatmap_plot.moc"
