// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>

#include <cmath>

#include "tests/support/plot_maps.h"
#include "ui/plot/color_scale.h"

using namespace posiscope::ui;
using posiscope::core::PositionMap;
using posiscope::test::infinity;
using posiscope::test::map_of;
using posiscope::test::no_value;

namespace {

/// Lightness of CIE L*a*b*, 0 .. 100.
double lightness(QRgb color)
{
    const auto linear = [](int channel) {
        const double c = channel / 255.0;
        return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
    };
    const double y =
        0.2126 * linear(qRed(color)) + 0.7152 * linear(qGreen(color)) + 0.0722 * linear(qBlue(color));
    return y > 0.008856 ? 116.0 * std::cbrt(y) - 16.0 : 903.3 * y;
}

} // namespace

class TestColorScale : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void range_is_that_of_the_finite_cells()
    {
        const PositionMap map = map_of(2, {-3.0, no_value, infinity, 5.0});
        const ColorScale scale = make_color_scale(map, ColorMapId::viridis, ScaleKind::linear);
        QCOMPARE(scale.lower, -3.0);
        QCOMPARE(scale.upper, 5.0);
        QVERIFY(!scale.lower_clipped);
        QVERIFY(scale.upper_clipped);
        QVERIFY(scale.has_missing);
        QCOMPARE(scale.color(-3.0), color_map_entry(ColorMapId::viridis, 0));
        QCOMPARE(scale.color(5.0), color_map_entry(ColorMapId::viridis, 255));
        QCOMPARE(scale.color(infinity), color_map_entry(ColorMapId::viridis, 255));
        QCOMPARE(scale.color(-infinity), color_map_entry(ColorMapId::viridis, 0));
        QCOMPARE(scale.color(no_value), scale.missing.rgb());
        QCOMPARE(scale.color(1.0), color_map_entry(ColorMapId::viridis, 128));
    }

    void missing_color_is_on_no_map()
    {
        for (const ColorMapRow& row : color_maps()) {
            const QRgb missing = missing_color(row.map).rgb();
            for (int n = 0; n < 256; ++n) {
                const QRgb entry = color_map_entry(row.map, n);
                const int distance = std::abs(qRed(entry) - qRed(missing)) +
                                     std::abs(qGreen(entry) - qGreen(missing)) +
                                     std::abs(qBlue(entry) - qBlue(missing));
                QVERIFY2(distance > 30,
                         qPrintable(QStringLiteral("map %1 entry %2").arg(int(row.map)).arg(n)));
            }
        }
    }

    void percentiles_clip_an_outlying_column_and_say_so()
    {
        // Public report: first column 0.9, the rest 0.001.
        PositionMap map = map_of(100, std::vector<double>(10000, 0.001));
        for (std::size_t query = 0; query < 100; ++query) map(query, 0) = 0.9;
        for (std::size_t n = 1; n < 100; ++n) map(n, n) = 0.0005; // so that not all others are equal
        const ColorScale scale = make_color_scale(map, ColorMapId::viridis, ScaleKind::percentile);
        QVERIFY(scale.upper < 0.01);
        QVERIFY(scale.upper_clipped);
        QCOMPARE(scale.color(0.9), color_map_entry(ColorMapId::viridis, 255));
    }

    void logarithmic_starts_at_the_least_positive_value()
    {
        const PositionMap map = map_of(2, {0.0, 0.001, 0.1, 10.0});
        const ColorScale scale = make_color_scale(map, ColorMapId::viridis, ScaleKind::logarithmic);
        QCOMPARE(scale.lower, 0.001);
        QVERIFY(scale.lower_clipped); // the zero
        QVERIFY(!scale.upper_clipped);
        QVERIFY(std::abs(scale.fraction(0.1) - 0.5) < 1e-12);
        QVERIFY(std::abs(scale.value_at(0.5) - 0.1) < 1e-12);
        const PositionMap negative = map_of(2, {-1.0, -2.0, -3.0, -4.0});
        QCOMPARE(make_color_scale(negative, ColorMapId::viridis, ScaleKind::logarithmic).kind,
                 ScaleKind::linear);
    }

    void symmetric_is_centred_at_zero()
    {
        const PositionMap map = map_of(2, {-1.0, 0.0, 0.5, 4.0});
        const ColorScale scale = make_color_scale(map, ColorMapId::blue_white_red, ScaleKind::symmetric);
        QCOMPARE(scale.lower, -4.0);
        QCOMPARE(scale.upper, 4.0);
        QCOMPARE(scale.fraction(0.0), 0.5);
        QVERIFY(lightness(scale.color(0.0)) > 95.0);
    }

    void one_value_nothing_finite_and_huge_values()
    {
        const ColorScale flat = make_color_scale(map_of(1, {3.0}), ColorMapId::magma, ScaleKind::percentile);
        QCOMPARE(flat.fraction(3.0), 0.5);
        const ColorScale none =
            make_color_scale(map_of(1, {no_value}), ColorMapId::magma, ScaleKind::logarithmic);
        QVERIFY(none.has_missing);
        QCOMPARE(none.color(no_value), none.missing.rgb());
        const ColorScale huge =
            make_color_scale(map_of(2, {-1e308, 0.0, 0.0, 1e308}), ColorMapId::magma, ScaleKind::linear);
        QCOMPARE(huge.fraction(0.0), 0.5);
    }

    void several_maps_share_one_scale()
    {
        const std::vector<PositionMap> maps{map_of(1, {1.0}), map_of(1, {9.0})};
        const ColorScale scale = make_color_scale(maps, ColorMapId::cividis, ScaleKind::linear);
        QCOMPARE(scale.lower, 1.0);
        QCOMPARE(scale.upper, 9.0);
    }

    void picture_has_query_0_on_top_and_key_0_at_the_left()
    {
        const PositionMap map = posiscope::test::corner_board(3);
        const ColorScale scale = make_color_scale(map, ColorMapId::viridis, ScaleKind::linear);
        const QImage image = heatmap_image(map, scale);
        QCOMPARE(image.size(), QSize(3, 3));
        QCOMPARE(image.pixel(0, 0), scale.color(0.2));
        QCOMPARE(image.pixel(2, 0), scale.color(0.4));
        QCOMPARE(image.pixel(0, 2), scale.color(0.6));
        QCOMPARE(image.pixel(2, 2), scale.color(0.8));
    }

    void lightness_of_sequential_maps_only_rises()
    {
        for (const ColorMapRow& row : color_maps()) {
            if (row.diverging) continue;
            for (int n = 4; n < 256; ++n)
                QVERIFY(lightness(color_map_entry(row.map, n)) > lightness(color_map_entry(row.map, n - 4)));
        }
    }

    void arms_of_diverging_maps_are_equally_light()
    {
        for (const ColorMapRow& row : color_maps()) {
            if (!row.diverging) continue;
            for (int n = 0; n < 128; ++n) {
                const double low = lightness(color_map_entry(row.map, n));
                const double high = lightness(color_map_entry(row.map, 255 - n));
                QVERIFY(std::abs(low - high) < 7.0);
            }
        }
    }

    void ids_find_their_rows()
    {
        for (const ColorMapRow& row : color_maps()) {
            QCOMPARE(find_color_map(row.id), row.map);
            QCOMPARE(color_map_id(row.map), row.id);
        }
        for (const ScaleKindRow& row : scale_kinds()) {
            QCOMPARE(find_scale_kind(row.id), row.kind);
            QCOMPARE(scale_kind_id(row.kind), row.id);
        }
        QVERIFY(!find_color_map("jet"));
    }
};

QTEST_APPLESS_MAIN(TestColorScale)
#include "tst_color_scale.moc"
