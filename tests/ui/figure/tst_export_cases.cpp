// SPDX-License-Identifier: GPL-3.0-or-later
// Faults that users of other tools reported, section "Heatmaps and export": one test a row.
#include <QFile>
#include <QImage>
#include <QPainter>
#include <QSvgRenderer>
#include <QTest>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "tests/support/figure_specs.h"
#include "tests/support/pdf_images.h"
#include "tests/support/plot_maps.h"
#include "tests/support/recording_canvas.h"
#include "ui/figure/figure_layout.h"
#include "ui/figure/figure_writer.h"
#include "ui/figure/view_charts.h"
#include "ui/plot/chart_plot.h"
#include "ui/plot/head_grid.h"
#include "ui/plot/heatmap_plot.h"

using namespace posiscope::ui;
using posiscope::core::PositionMap;
using posiscope::test::corner_board;
using posiscope::test::heatmap_spec;
using posiscope::test::map_of;
using posiscope::test::pdf_images;
using posiscope::test::PdfImage;
using posiscope::test::RecordingCanvas;

namespace {

constexpr double points_per_mm = 72.0 / 25.4;

FigureSpec spec_of(const PositionMap& map, ScaleKind kind = ScaleKind::linear)
{
    return heatmap_spec(map, kind, QStringLiteral("attention probability"));
}

FigureSpec picture_spec(QImage image)
{
    FigureSpec spec;
    ChartContent chart;
    chart.image = std::move(image);
    spec.content = chart;
    return spec;
}

QByteArray bytes_of(const FigureSpec& spec, FigureFormat format)
{
    const auto bytes = figure_bytes(spec, FigureOptions(), format);
    return bytes ? *bytes : QByteArray();
}

/// The page as an SVG viewer shows it.
QImage viewed_svg(const QByteArray& svg, int width)
{
    QSvgRenderer renderer(svg);
    const QSizeF box = renderer.viewBoxF().size();
    QImage page(width, static_cast<int>(std::lround(width * box.height() / box.width())),
                QImage::Format_RGB32);
    page.fill(Qt::red);
    QPainter painter(&page);
    renderer.render(&painter);
    return page;
}

QRgb pixel_of(const PdfImage& image, int x, int y)
{
    const auto channel = [&](int k) {
        return static_cast<int>(static_cast<unsigned char>(image.pixels[3 * (y * image.width + x) + k]));
    };
    return qRgb(channel(0), channel(1), channel(2));
}

/// The colour at the middle of each cell of a page, against the one that the scale gives.
void compare_cells(const QImage& page, const FigureSpec& spec)
{
    RecordingCanvas canvas;
    draw_figure(canvas, spec, FigureOptions());
    const QRectF square = canvas.pictures.front().rect;
    const auto& content = std::get<HeatmapContent>(spec.content);
    const auto n = static_cast<double>(content.map.length);
    const double scale = page.width() / (FigureOptions().width_mm * points_per_mm);
    for (std::size_t query = 0; query < content.map.length; ++query)
        for (std::size_t key = 0; key < content.map.length; ++key) {
            const double x = square.left() + (static_cast<double>(key) + 0.5) / n * square.width();
            const double y = square.top() + (static_cast<double>(query) + 0.5) / n * square.height();
            QCOMPARE(page.pixel(static_cast<int>(x * scale), static_cast<int>(y * scale)),
                     content.scale.color(content.map(query, key)));
        }
}

} // namespace

class TestExportCases : public QObject {
    Q_OBJECT

private Q_SLOTS:
    /// matplotlib 2972, 25575; pyqtgraph 1155: seen at 800 %.
    void checkerboard_of_5_is_sharp()
    {
        PositionMap board = map_of(5, std::vector<double>(25));
        for (std::size_t n = 0; n < 25; ++n) board.values[n] = static_cast<double>(n % 2);
        const FigureSpec spec = spec_of(board);
        const ColorScale& scale = std::get<HeatmapContent>(spec.content).scale;

        // PDF: a pixel a cell, and viewers are not asked to smooth it.
        const QByteArray pdf = bytes_of(spec, FigureFormat::pdf);
        QVERIFY(!pdf.contains("/Interpolate true"));
        QVERIFY(!pdf.contains("DCTDecode"));
        const std::vector<PdfImage> images = pdf_images(pdf);
        QCOMPARE(images.front().width, 5);
        QCOMPARE(images.front().height, 5);
        for (int n = 0; n < 25; ++n) QCOMPARE(pixel_of(images.front(), n % 5, n / 5), scale.color(n % 2));

        // SVG at 800 %: between two middles of cells there are the two colours and at most one pixel of both.
        const QByteArray svg = bytes_of(spec, FigureFormat::svg);
        QVERIFY(svg.contains("shape-rendering=\"crispEdges\""));
        QVERIFY(!svg.contains("<image"));
        const QImage page = viewed_svg(svg, 8 * 318); // 84 mm at 96 dots an inch
        RecordingCanvas canvas;
        draw_figure(canvas, spec, FigureOptions());
        const QRectF square = canvas.pictures.front().rect;
        const double zoom = page.width() / (84.0 * points_per_mm);
        const int y = static_cast<int>(square.center().y() * zoom);
        int blended = 0;
        for (int x = static_cast<int>((square.left() + 0.1 * square.width()) * zoom);
             x < static_cast<int>((square.right() - 0.1 * square.width()) * zoom); ++x)
            blended += page.pixel(x, y) != scale.color(0) && page.pixel(x, y) != scale.color(1);
        QVERIFY2(blended <= 4, qPrintable(QString::number(blended)));
    }

    /// veusz 112: Qt's PDF writer uses JPEG for colour pictures unless asked not to.
    void two_halves_have_exact_colours_in_pdf()
    {
        PositionMap halves = map_of(4, std::vector<double>(16));
        for (std::size_t n = 0; n < 16; ++n) halves.values[n] = n % 4 < 2 ? 0.0 : 1.0;
        const FigureSpec spec = spec_of(halves);
        const ColorScale& scale = std::get<HeatmapContent>(spec.content).scale;
        const std::vector<PdfImage> images = pdf_images(bytes_of(spec, FigureFormat::pdf));
        for (int n = 0; n < 16; ++n)
            QCOMPARE(pixel_of(images.front(), n % 4, n / 4), scale.color(n % 4 < 2 ? 0.0 : 1.0));
    }

    /// CairoMakie PR 105; seaborn PR 767.
    void one_colour_of_20_has_no_seams()
    {
        const FigureSpec spec = spec_of(map_of(20, std::vector<double>(400, 0.25)));
        const QRgb color = std::get<HeatmapContent>(spec.content).scale.color(0.25);
        // One picture in PDF: there are no edges between cells that a viewer could blend.
        QCOMPARE(pdf_images(bytes_of(spec, FigureFormat::pdf)).front().width, 20);
        RecordingCanvas canvas;
        draw_figure(canvas, spec, FigureOptions());
        const QRectF square = canvas.pictures.front().rect;
        for (const int width : {318, 1000, 1737}) { // edges of cells fall between pixels
            const QImage page = viewed_svg(bytes_of(spec, FigureFormat::svg), width);
            const double zoom = width / (84.0 * points_per_mm);
            for (int y = static_cast<int>(square.top() * zoom) + 3;
                 y < static_cast<int>(square.bottom() * zoom) - 3; ++y)
                for (int x = static_cast<int>(square.left() * zoom) + 3;
                     x < static_cast<int>(square.right() * zoom) - 3; ++x)
                    QCOMPARE(page.pixel(x, y), color);
        }
    }

    /// matplotlib 10641; Qcodes PR 1305.
    void large_maps_are_bounded_data()
    {
        QTest::addColumn<int>("length");
        QTest::addColumn<bool>("one_image");
        QTest::newRow("128") << 128 << false;
        QTest::newRow("129") << 129 << true;
        QTest::newRow("512") << 512 << true;
        QTest::newRow("1024") << 1024 << true;
    }

    void large_maps_are_bounded()
    {
        QFETCH(int, length);
        QFETCH(bool, one_image);
        const FigureSpec spec = spec_of(posiscope::test::noise(static_cast<std::size_t>(length)));
        const qsizetype cells = static_cast<qsizetype>(length) * length;
        const QByteArray pdf = bytes_of(spec, FigureFormat::pdf), svg = bytes_of(spec, FigureFormat::svg),
                         png = bytes_of(spec, FigureFormat::png);
        QCOMPARE(pdf_images(pdf).size(), std::size_t{2}); // cells and colour bar
        QVERIFY2(pdf.size() < 3 * cells + 60'000, qPrintable(QString::number(pdf.size())));
        // Rectangles up to 128 x 128, one picture above: the work of a viewer does not grow with the cells.
        QCOMPARE(svg.count("<image"), one_image ? 1 : 0);
        QVERIFY2(svg.size() < (one_image ? 4 * cells + 200'000 : 40 * cells),
                 qPrintable(QString::number(svg.size())));
        QVERIFY(svg.count("<path") <= 2 * 256 + 8); // one for each colour, and the colour bar's
        QVERIFY2(png.size() < 4'000'000, qPrintable(QString::number(png.size())));
    }

    /// plotly.py 3271; silx PR 3143.
    void nan_and_infinity_have_their_colours()
    {
        PositionMap map = map_of(4, std::vector<double>(16));
        for (std::size_t n = 0; n < 16; ++n) map.values[n] = 0.1 * static_cast<double>(n);
        map(1, 2) = posiscope::test::no_value;
        map(2, 1) = posiscope::test::infinity;
        const FigureSpec spec = spec_of(map);
        const ColorScale& scale = std::get<HeatmapContent>(spec.content).scale;
        QCOMPARE(scale.lower, 0.0); // of the finite cells
        QCOMPARE(scale.upper, 1.5);
        QVERIFY(scale.upper_clipped);
        QVERIFY(scale.has_missing);
        compare_cells(figure_picture(spec, FigureOptions(), 12.0), spec);
        compare_cells(viewed_svg(bytes_of(spec, FigureFormat::svg), 1600), spec);
        const std::vector<PdfImage> images = pdf_images(bytes_of(spec, FigureFormat::pdf));
        QCOMPARE(pixel_of(images.front(), 2, 1), missing_color(ColorMapId::viridis).rgb());
        QCOMPARE(pixel_of(images.front(), 1, 2), color_map_entry(ColorMapId::viridis, 255));
        // The colour is named beside the bar.
        RecordingCanvas canvas;
        draw_figure(canvas, spec, FigureOptions());
        QVERIFY(canvas.has_text(QStringLiteral("no value")));
        // On screen the same.
        HeatmapPlot plot;
        plot.setProfilesVisible(false);
        plot.resize(420, 360);
        plot.setMap(map, scale, QStringLiteral("x"));
        plot.show();
        QVERIFY(QTest::qWaitForWindowExposed(&plot));
        const QImage shown = plot.grab().toImage();
        QCOMPARE(shown.pixel(plot.cellRect(1, 2).center().toPoint()),
                 missing_color(ColorMapId::viridis).rgb());
        QCOMPARE(shown.pixel(plot.cellRect(2, 1).center().toPoint()),
                 color_map_entry(ColorMapId::viridis, 255));
    }

    /// seaborn 1617: first column 0.9, the rest 0.001.
    void a_bright_first_column_does_not_darken_the_rest_data()
    {
        QTest::addColumn<int>("length");
        for (const int length : {4, 16, 48, 128}) QTest::addRow("%d", length) << length;
    }

    void a_bright_first_column_does_not_darken_the_rest()
    {
        QFETCH(int, length);
        const auto n = static_cast<std::size_t>(length);
        PositionMap map = map_of(n, std::vector<double>(n * n));
        for (std::size_t query = 0; query < n; ++query)
            for (std::size_t key = 0; key < n; ++key)
                map(query, key) = key == 0 ? 0.9 : 0.001 + 0.0001 * static_cast<double>((query + key) % 5);
        const ColorDefaults defaults = default_colors(meaning_of(posiscope::core::Quantity::probabilities));
        QCOMPARE(defaults.kind, ScaleKind::percentile);
        const ColorScale scale = make_color_scale(map, defaults.map, defaults.kind);
        QVERIFY2(scale.upper < 0.002, qPrintable(QString::number(scale.upper)));
        QVERIFY(scale.upper_clipped);
        QVERIFY(scale.color(0.001) != scale.color(0.0014)); // the rest is told apart
        // The clipped end is marked by a triangle on the bar, in figures and on screen.
        FigureSpec spec = spec_of(map, ScaleKind::percentile);
        RecordingCanvas canvas;
        draw_figure(canvas, spec, FigureOptions());
        QVERIFY(!canvas.polygons.empty());
        HeatmapPlot plot;
        plot.setProfilesVisible(false);
        plot.resize(420, 360);
        plot.setMap(map, scale, QStringLiteral("x"));
        plot.show();
        QVERIFY(QTest::qWaitForWindowExposed(&plot));
        const QImage shown = plot.grab().toImage();
        const QRect bar = plot.colorBarRect();
        QCOMPARE(shown.pixel(bar.center().x(), bar.top() - 3), color_map_entry(defaults.map, 255));
        // By logarithms both are told apart from the column, too.
        const ColorScale logarithmic = make_color_scale(map, defaults.map, ScaleKind::logarithmic);
        QCOMPARE(logarithmic.kind, ScaleKind::logarithmic);
        QVERIFY(logarithmic.color(0.001) != logarithmic.color(0.0014));
    }

    /// The same for a decoder, where half of the cells do not exist, and for one bright cell.
    void one_bright_cell_does_not_darken_the_rest()
    {
        PositionMap map = map_of(5, std::vector<double>(25));
        for (std::size_t n = 0; n < 25; ++n) map.values[n] = 0.001 * static_cast<double>(n % 7);
        map(3, 0) = 1.0;
        QVERIFY(make_color_scale(map, ColorMapId::viridis, ScaleKind::percentile).upper < 0.01);
        PositionMap causal = map_of(32, std::vector<double>(1024, posiscope::test::no_value));
        for (std::size_t query = 0; query < 32; ++query)
            for (std::size_t key = 0; key <= query; ++key)
                causal(query, key) = key == 0 ? 0.9 : 0.01 + 0.001 * static_cast<double>(key % 5);
        QVERIFY(make_color_scale(causal, ColorMapId::viridis, ScaleKind::percentile).upper < 0.02);
    }

    /// seaborn 1251, 1773; matplotlib 9863.
    void corners_are_where_they_belong()
    {
        const PositionMap map = corner_board(4);
        const ColorScale scale = make_color_scale(map, ColorMapId::viridis, ScaleKind::linear);
        HeatmapPlot plot;
        plot.resize(420, 360);
        plot.setMap(map, scale, QStringLiteral("x"));
        plot.show();
        QVERIFY(QTest::qWaitForWindowExposed(&plot));
        const auto check = [&] {
            plot.grab(); // a queued replot is done
            const QImage shown = plot.grab().toImage();
            const QRect area = plot.heatmapRect();
            // A pixel inside each corner of the picture: whole edge cells, query 0 on top and key 0 at the left.
            QCOMPARE(shown.pixel(area.topLeft() + QPoint(2, 2)), scale.color(0.2));
            QCOMPARE(shown.pixel(area.topRight() + QPoint(-2, 2)), scale.color(0.4));
            QCOMPARE(shown.pixel(area.bottomLeft() + QPoint(2, -2)), scale.color(0.6));
            QCOMPARE(shown.pixel(area.bottomRight() + QPoint(-2, -2)), scale.color(0.8));
            QVERIFY(std::abs(plot.cellRect(0, 0).width() - plot.cellRect(0, 3).width()) < 1e-9);
            QCOMPARE(plot.cellRect(0, 0).left(), static_cast<double>(area.left()));
            QCOMPARE(plot.cellRect(3, 3).bottom(), static_cast<double>(area.top() + area.height()));
        };
        check();
        plot.setPositionRange(1, 2);
        plot.resetRange();
        check();
        // In exports.
        const FigureSpec spec = spec_of(map);
        compare_cells(figure_picture(spec, FigureOptions(), 12.0), spec);
        compare_cells(viewed_svg(bytes_of(spec, FigureFormat::svg), 1600), spec);
        const std::vector<PdfImage> images = pdf_images(bytes_of(spec, FigureFormat::pdf));
        QCOMPARE(pixel_of(images.front(), 3, 0), scale.color(0.4));
        QCOMPARE(pixel_of(images.front(), 0, 3), scale.color(0.6));
    }

    /// The same for a picture of 3 rows and 4 columns, such as a patch's map of an image.
    void corners_of_3_by_4_are_where_they_belong()
    {
        QImage image(4, 3, QImage::Format_RGB32);
        image.fill(Qt::gray);
        const QRgb colors[] = {qRgb(255, 0, 0), qRgb(0, 160, 0), qRgb(0, 0, 255), qRgb(250, 200, 0)};
        image.setPixel(0, 0, colors[0]);
        image.setPixel(3, 0, colors[1]);
        image.setPixel(0, 2, colors[2]);
        image.setPixel(3, 2, colors[3]);
        const FigureSpec spec = picture_spec(image);
        RecordingCanvas canvas;
        draw_figure(canvas, spec, FigureOptions());
        const QRectF area = canvas.pictures.front().rect;
        QVERIFY(std::abs(area.width() * 3.0 - area.height() * 4.0) < 1e-6); // square cells
        const QRectF first(area.topLeft(), QSizeF(area.width() / 4.0, area.height() / 3.0));
        const QPointF middles[] = {first.center(), first.translated(3 * first.width(), 0).center(),
                                   first.translated(0, 2 * first.height()).center(),
                                   first.translated(3 * first.width(), 2 * first.height()).center()};
        const QImage raster = figure_picture(spec, FigureOptions(), 12.0);
        const QImage vector = viewed_svg(bytes_of(spec, FigureFormat::svg), 1600);
        for (int k = 0; k < 4; ++k)
            for (const QImage* page : {&raster, &vector}) {
                const double zoom = page->width() / (84.0 * points_per_mm);
                QCOMPARE(page->pixel((middles[k] * zoom).toPoint()), colors[k]);
            }
        ChartPlot plot;
        plot.resize(400, 300);
        plot.setChart(std::get<ChartContent>(spec.content));
        const QImage shown = plot.grab().toImage();
        QCOMPARE(shown.pixel(plot.placeOf(0.5, -0.5).toPoint()), colors[0]);
        QCOMPARE(shown.pixel(plot.placeOf(3.5, -0.5).toPoint()), colors[1]);
        QCOMPARE(shown.pixel(plot.placeOf(0.5, -2.5).toPoint()), colors[2]);
        QCOMPARE(shown.pixel(plot.placeOf(3.5, -2.5).toPoint()), colors[3]);
    }

    /// oxyplot 477: 12 x 12 maps of 128 x 128.
    void a_grid_of_144_maps_is_built_once()
    {
        std::vector<PositionMap> heads(144, posiscope::test::noise(128));
        for (std::size_t h = 0; h < heads.size(); ++h) heads[h](0, 0) = static_cast<double>(h);
        HeadPictures pictures;
        // Off the window's thread.
        std::thread([&] {
            pictures = make_head_pictures(heads, ColorMapId::viridis, ScaleKind::linear);
        }).join();
        QCOMPARE(pictures.images.size(), std::size_t{144});
        QCOMPARE(pictures.images[5].size(), QSize(128, 128));
        HeadGrid grid;
        grid.resize(1200, 900);
        grid.setPictures(pictures, QStringLiteral("x"));
        grid.show();
        QVERIFY(QTest::qWaitForWindowExposed(&grid));
        grid.grab();
        const qint64 built = grid.pictureKey();
        for (int head = 0; head < 144; head += 7) {
            QTest::mouseMove(&grid, grid.headRect(head).center());
            grid.grab();
        }
        grid.setSelectedHead(17);
        grid.grab();
        QCOMPARE(grid.pictureKey(), built); // pointing and picking rebuilt nothing
        grid.resize(900, 700);
        grid.grab();
        QVERIFY(grid.pictureKey() != built); // a new size is a new picture
    }
};

QTEST_MAIN(TestExportCases)
#include "tst_export_cases.moc"
