// SPDX-License-Identifier: GPL-3.0-or-later
#include <QFloat16> // JSON asks what it can become
#include <QFile>
#include <QRegularExpression>
#include <QSvgRenderer>
#include <QPainter>
#include <QTemporaryDir>
#include <QTest>
#include <QTransform>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "tests/support/figure_specs.h"
#include "tests/support/pdf_images.h"
#include "tests/support/plot_maps.h"
#include "tests/support/recording_canvas.h"
#include "ui/figure/figure_layout.h"
#include "ui/figure/figure_writer.h"

using namespace posiscope::ui;
using posiscope::core::ErrorCode;
using posiscope::core::PositionMap;
using posiscope::test::corner_board;
using posiscope::test::heatmap_spec;
using posiscope::test::pdf_images;
using posiscope::test::PdfImage;
using posiscope::test::RecordingCanvas;

namespace {

constexpr double points_per_mm = 72.0 / 25.4;

FigureSpec spec_of(const PositionMap& map, ScaleKind kind = ScaleKind::linear)
{
    FigureSpec spec = heatmap_spec(map, kind, QStringLiteral("attention logit"));
    spec.title = QStringLiteral("Model <b> & layer 0");
    spec.provenance_json = R"({"program":"Posiscope","checkpoint":{"name":"M\u00fcller & <Co>"},"seed":7})";
    return spec;
}

FigureSpec profile_spec()
{
    FigureSpec spec;
    ProfileContent content;
    content.curve.first_offset = -4;
    content.curve.mean = {0.0, 1.0, 2.0, 0.5, 0.4, 0.5, 2.0, 1.0, 0.0};
    content.curve.spread.assign(9, 0.3);
    content.curve.standard_error.assign(9, 0.1);
    content.curve.white_band = WhiteBandOffsets{-1, 1};
    content.quantity_label = QStringLiteral("attention logit");
    spec.content = content;
    return spec;
}

const ColorScale& scale_of(const FigureSpec& spec)
{
    return std::get<HeatmapContent>(spec.content).scale;
}

QRectF square_of(const FigureSpec& spec, const FigureOptions& options)
{
    RecordingCanvas canvas;
    draw_figure(canvas, spec, options);
    return canvas.pictures.front().rect;
}

/// Checks the colour in the middle of each cell of a picture of the whole page.
void check_cells(const QImage& page, const FigureSpec& spec, const FigureOptions& options)
{
    const PositionMap& map = std::get<HeatmapContent>(spec.content).map;
    const QRectF square = square_of(spec, options);
    const double scale = page.width() / (options.width_mm * points_per_mm);
    const double cell = square.width() / static_cast<double>(map.length);
    for (std::size_t query = 0; query < map.length; ++query) {
        for (std::size_t key = 0; key < map.length; ++key) {
            const QPointF middle(square.left() + (static_cast<double>(key) + 0.5) * cell,
                                 square.top() + (static_cast<double>(query) + 0.5) * cell);
            const QPoint pixel(static_cast<int>(middle.x() * scale), static_cast<int>(middle.y() * scale));
            QCOMPARE(page.pixel(pixel), scale_of(spec).color(map(query, key)));
        }
    }
}

QByteArray bytes_of(const FigureSpec& spec, const FigureOptions& options, FigureFormat format)
{
    const auto bytes = figure_bytes(spec, options, format);
    return bytes ? *bytes : QByteArray();
}

QImage rendered_svg(const QByteArray& svg, int width)
{
    QSvgRenderer renderer(svg);
    QImage page(
        width,
        static_cast<int>(std::lround(width * renderer.viewBoxF().height() / renderer.viewBoxF().width())),
        QImage::Format_RGB32);
    page.fill(Qt::red);
    QPainter painter(&page);
    renderer.render(&painter);
    return page;
}

} // namespace

class TestFigureWriter : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void png_has_the_cells_the_size_and_the_provenance()
    {
        for (const std::size_t length : {std::size_t{3}, std::size_t{5}}) {
            const FigureSpec spec = spec_of(corner_board(length));
            FigureOptions options;
            options.width_mm = 60.0;
            options.dpi = 200;
            const QByteArray png = bytes_of(spec, options, FigureFormat::png);
            const QImage page = QImage::fromData(png, "PNG");
            QCOMPARE(page.width(), static_cast<int>(std::lround(60.0 / 25.4 * 200.0)));
            QCOMPARE(page.dotsPerMeterX(), 7874);
            check_cells(page, spec, options);
            // An uncompressed tEXt chunk that other readers see too.
            const qsizetype chunk = png.indexOf("tEXtposiscope:provenance");
            QVERIFY(chunk > 0);
            const auto json =
                nlohmann::json::parse(page.text(QStringLiteral("posiscope:provenance")).toStdString());
            QCOMPARE(json["seed"].get<int>(), 7);
            QCOMPARE(json["checkpoint"]["name"].get<std::string>(), std::string("M\u00fcller & <Co>"));
            QCOMPARE(json["figure"]["width_mm"].get<double>(), 60.0);
            QCOMPARE(json["figure"]["color_map"].get<std::string>(), std::string("viridis"));
        }
    }

    void svg_has_sharp_cells_in_the_right_places()
    {
        for (const std::size_t length : {std::size_t{3}, std::size_t{5}}) {
            const FigureSpec spec = spec_of(corner_board(length));
            FigureOptions options;
            options.width_mm = 60.0;
            const QByteArray svg = bytes_of(spec, options, FigureFormat::svg);
            QVERIFY(!svg.contains("<image"));
            QVERIFY(svg.contains("shape-rendering=\"crispEdges\""));
            const QImage page = rendered_svg(svg, 1600);
            check_cells(page, spec, options);
            // At most one blended pixel at an edge (Qt's renderer knows no crisp edges): nothing is smoothed.
            const QRectF square = square_of(spec, options);
            const double scale = 1600 / (options.width_mm * points_per_mm);
            const int y = static_cast<int>(square.center().y() * scale);
            const ColorScale& colors = scale_of(spec);
            std::size_t blended = 0;
            for (int x = static_cast<int>(square.left() * scale) + 5;
                 x < static_cast<int>(square.right() * scale) - 5; ++x)
                if (page.pixel(x, y) != colors.color(0.0) && page.pixel(x, y) != colors.color(1.0)) ++blended;
            QVERIFY(blended <= length - 1);
        }
    }

    void svg_is_text_and_carries_the_provenance()
    {
        const QByteArray svg = bytes_of(spec_of(corner_board(5)), FigureOptions(), FigureFormat::svg);
        QVERIFY(svg.contains(">key position</text>"));
        QVERIFY(svg.contains(">attention logit</text>"));
        QVERIFY(svg.contains("width=\"84mm\""));
        QVERIFY(svg.contains("<title>Model &lt;b&gt; &amp; layer 0</title>"));
        const qsizetype at = svg.indexOf('>', svg.indexOf("<metadata")) + 1;
        QString text = QString::fromUtf8(svg.mid(at, svg.indexOf("</metadata>") - at));
        text.replace(QStringLiteral("&quot;"), QStringLiteral("\""))
            .replace(QStringLiteral("&lt;"), QStringLiteral("<"))
            .replace(QStringLiteral("&gt;"), QStringLiteral(">"))
            .replace(QStringLiteral("&amp;"), QStringLiteral("&"));
        QCOMPARE(nlohmann::json::parse(text.toStdString())["seed"].get<int>(), 7);
    }

    void one_color_makes_no_seams_and_one_rectangle_a_row()
    {
        PositionMap map = posiscope::test::map_of(20, std::vector<double>(400, 1.0));
        const FigureSpec spec = spec_of(map);
        FigureOptions options;
        options.width_mm = 60.0;
        const QByteArray svg = bytes_of(spec, options, FigureFormat::svg);
        const QString path =
            QRegularExpression(QStringLiteral("<g class=\"cells\"[^>]*>\n<path[^>]*d=\"([^\"]*)\"/>\n</g>"))
                .match(QString::fromUtf8(svg))
                .captured(1);
        QCOMPARE(path.count(QLatin1Char('M')), 20);
        const QImage page = rendered_svg(svg, 1600);
        const QRectF square = square_of(spec, options);
        const double scale = 1600 / (options.width_mm * points_per_mm);
        const QRgb color = scale_of(spec).color(1.0);
        for (int y = static_cast<int>(square.top() * scale) + 5;
             y < static_cast<int>(square.bottom() * scale) - 5; ++y)
            QCOMPARE(page.pixel(static_cast<int>(square.center().x() * scale), y), color);
    }

    void pdf_holds_one_lossless_picture_with_a_pixel_a_cell()
    {
        for (const std::size_t length : {std::size_t{4}, std::size_t{5}}) {
            PositionMap map = corner_board(length);
            map(1, 2) = posiscope::test::no_value;
            const FigureSpec spec = spec_of(map);
            const FigureOptions options;
            const QByteArray pdf = bytes_of(spec, options, FigureFormat::pdf);
            QVERIFY(!pdf.contains("DCTDecode"));
            const std::vector<PdfImage> images = pdf_images(pdf);
            QCOMPARE(images.size(), std::size_t{2}); // cells and colour bar
            const PdfImage& cells = images.front();
            QCOMPARE(cells.width, static_cast<int>(length));
            QCOMPARE(cells.height, static_cast<int>(length));
            for (std::size_t n = 0; n < map.values.size(); ++n) {
                const QRgb wanted = scale_of(spec).color(map.values[n]);
                const auto channel = [&](std::size_t k) {
                    return static_cast<int>(
                        static_cast<unsigned char>(cells.pixels[static_cast<qsizetype>(3 * n + k)]));
                };
                QCOMPARE(qRgb(channel(0), channel(1), channel(2)), wanted);
            }
            // Upright, in its place on the page: the first row has the larger y of PDF's upward axis.
            const QRectF square = square_of(spec, options);
            const QPointF top_left = cells.placement.map(QPointF(0, 1));
            const QPointF bottom_right = cells.placement.map(QPointF(1, 0));
            const double top = std::ceil(figure_size_mm(spec, options).height() * points_per_mm);
            QVERIFY(std::abs(top_left.x() - square.left()) < 0.01);
            QVERIFY(std::abs(top_left.y() - (top - square.top())) < 0.01);
            QVERIFY(std::abs(bottom_right.x() - square.right()) < 0.01);
            QVERIFY(std::abs(bottom_right.y() - (top - square.bottom())) < 0.01);
        }
    }

    void pdf_page_is_exact_and_its_table_of_objects_right()
    {
        FigureOptions options;
        options.width_mm = 84.0;
        options.height_mm = 61.3;
        const QByteArray pdf = bytes_of(spec_of(corner_board(5)), options, FigureFormat::pdf);
        const auto box = QRegularExpression(QStringLiteral("/MediaBox \\[(\\S+) (\\S+) (\\S+) (\\S+)\\]"))
                             .match(QString::fromLatin1(pdf));
        QVERIFY(box.hasMatch());
        QVERIFY(std::abs(box.captured(3).toDouble() - box.captured(1).toDouble() - 84.0 * points_per_mm) <
                1e-3);
        QVERIFY(std::abs(box.captured(4).toDouble() - box.captured(2).toDouble() - 61.3 * points_per_mm) <
                1e-3);
        const qsizetype table = pdf.mid(pdf.lastIndexOf("startxref\n") + 10).split('\n').first().toLongLong();
        QCOMPARE(pdf.mid(table, 5), QByteArray("xref\n"));
        const QList<QByteArray> rows = pdf.mid(table).split('\n');
        int checked = 0;
        for (int number = 1; number + 2 < rows.size() && rows[number + 2].endsWith("n "); ++number) {
            const QByteArray wanted = QByteArray::number(number) + " 0 obj";
            QCOMPARE(pdf.mid(rows[number + 2].first(10).toLongLong(), wanted.size()), wanted);
            ++checked;
        }
        QVERIFY(checked > 8);
    }

    void pdf_carries_title_program_and_provenance()
    {
        const QByteArray pdf = bytes_of(spec_of(corner_board(5)), FigureOptions(), FigureFormat::pdf);
        QVERIFY(pdf.contains("<xmp:CreatorTool>Posiscope "));
        QVERIFY(pdf.contains("&quot;seed&quot;:7"));
        QVERIFY(pdf.contains("Model &lt;b&gt; &amp; layer 0"));
    }

    void files_stay_small_and_quick_data()
    {
        QTest::addColumn<int>("length");
        for (const int length : {128, 129, 512, 1024}) QTest::addRow("%d", length) << length;
    }

    void files_stay_small_and_quick()
    {
        QFETCH(int, length);
        const FigureSpec spec = spec_of(posiscope::test::noise(static_cast<std::size_t>(length)));
        const qsizetype cells = static_cast<qsizetype>(length) * length;
        // Noise cannot be compressed: at most its own bytes, and a little for the rest.
        const QByteArray pdf = bytes_of(spec, FigureOptions(), FigureFormat::pdf);
        QVERIFY2(pdf.size() < 3 * cells + 60000, qPrintable(QString::number(pdf.size())));
        QCOMPARE(pdf_images(pdf).front().width, length);
        const QByteArray svg = bytes_of(spec, FigureOptions(), FigureFormat::svg);
        QVERIFY2(svg.size() < (length <= 128 ? 350000 : 3 * cells + 60000),
                 qPrintable(QString::number(svg.size())));
        QCOMPARE(svg.contains("<image"), length > 128);
        if (length > 128) {
            const qsizetype at = svg.indexOf("base64,") + 7;
            const QImage enlarged =
                QImage::fromData(QByteArray::fromBase64(svg.mid(at, svg.indexOf('"', at) - at)));
            QCOMPARE(enlarged.width() % length, 0);
            QVERIFY(enlarged.width() >= 2 * length);
            const int factor = enlarged.width() / length;
            const PositionMap& map = std::get<HeatmapContent>(spec.content).map;
            QCOMPARE(enlarged.pixel(3 * factor, 5 * factor), scale_of(spec).color(map(5, 3)));
            QCOMPARE(enlarged.pixel(4 * factor - 1, 6 * factor - 1), scale_of(spec).color(map(5, 3)));
        }
    }

    void infinite_and_missing_cells_keep_their_colors_and_are_explained()
    {
        PositionMap map = corner_board(4);
        map(0, 1) = posiscope::test::no_value;
        map(3, 1) = posiscope::test::infinity;
        const FigureSpec spec = spec_of(map);
        FigureOptions options;
        options.width_mm = 60.0;
        check_cells(figure_picture(spec, options, 20.0), spec, options);
        check_cells(rendered_svg(bytes_of(spec, options, FigureFormat::svg), 1600), spec, options);
        RecordingCanvas canvas;
        draw_figure(canvas, spec, options);
        QVERIFY(canvas.has_text(QStringLiteral("no value")));
        QCOMPARE(canvas.polygons.size(), std::size_t{1}); // the upper end alone is clipped
        const auto swatch = std::find_if(canvas.fills.begin(), canvas.fills.end(), [&](const auto& fill) {
            return fill.second == missing_color(ColorMapId::viridis);
        });
        QVERIFY(swatch != canvas.fills.end());
    }

    void preview_and_file_are_the_same_picture()
    {
        const FigureSpec spec = spec_of(corner_board(5));
        FigureOptions options;
        options.dpi = 254;
        const QImage file = QImage::fromData(bytes_of(spec, options, FigureFormat::png));
        QCOMPARE(file.convertToFormat(QImage::Format_RGB32), figure_picture(spec, options, 10.0));
    }

    void everything_stays_on_the_page_data()
    {
        posiscope::test::add_page_sizes();
        QTest::newRow("small") << 40.0 << 0.0 << 6.0;
        QTest::newRow("large type") << 84.0 << 0.0 << 12.0;
    }

    void everything_stays_on_the_page()
    {
        QFETCH(double, width);
        QFETCH(double, height);
        QFETCH(double, font);
        PositionMap with_gap = posiscope::test::noise(128);
        with_gap(0, 1) = posiscope::test::no_value;
        for (const FigureSpec& spec : {spec_of(with_gap, ScaleKind::percentile), profile_spec()}) {
            FigureOptions options;
            options.width_mm = width;
            options.height_mm = height;
            options.font_pt = font;
            options.title = true;
            options.letter = QStringLiteral("a");
            RecordingCanvas canvas;
            draw_figure(canvas, spec, options);
            const QSizeF page = figure_size_mm(spec, options) * points_per_mm;
            const QRectF inside = QRectF(QPointF(), page).adjusted(-0.01, -0.01, 0.01, 0.01);
            const TextMeasure measure(figure_font(options));
            for (const FigureText& text : canvas.texts) {
                const double extent = measure.width(text.text, text.bold);
                const double start = text.anchor == TextAnchor::start    ? 0.0
                                     : text.anchor == TextAnchor::middle ? -0.5 * extent
                                                                         : -extent;
                const QRectF box(start, -measure.cap_height(), extent, measure.cap_height());
                const QRectF placed =
                    QTransform().translate(text.at.x(), text.at.y()).rotate(text.angle).mapRect(box);
                QVERIFY2(inside.contains(placed), qPrintable(text.text));
            }
            for (const auto& picture : canvas.pictures) QVERIFY(inside.contains(picture.rect));
            for (const QPolygonF& line : canvas.lines)
                for (const QPointF& point : line) QVERIFY(inside.contains(point));
            if (!canvas.pictures.empty()) {
                const QRectF square = canvas.pictures.front().rect;
                QVERIFY(std::abs(square.width() - square.height()) < 1e-9);
            }
        }
    }

    void a_range_of_positions_is_drawn_alone()
    {
        PositionMap map = corner_board(6);
        map.first_position = 1; // positions 1 .. 6
        FigureSpec spec = spec_of(map);
        std::get<HeatmapContent>(spec.content).first = 3;
        std::get<HeatmapContent>(spec.content).last = 6;
        RecordingCanvas canvas;
        draw_figure(canvas, spec, FigureOptions());
        const QImage& image = canvas.pictures.front().image;
        QCOMPARE(image.size(), QSize(4, 4));
        QCOMPARE(image.pixel(0, 0), scale_of(spec).color(map(2, 2)));
        QCOMPARE(image.pixel(3, 3), scale_of(spec).color(0.8));
        QVERIFY(canvas.has_text(QStringLiteral("3")));
        QVERIFY(!canvas.has_text(QStringLiteral("1")) || !canvas.has_text(QStringLiteral("2")));
    }

    void another_color_map_replaces_that_of_the_screen()
    {
        const FigureSpec spec = spec_of(corner_board(3));
        FigureOptions options;
        options.color_map = ColorMapId::greys;
        RecordingCanvas canvas;
        draw_figure(canvas, spec, options);
        ColorScale greys = scale_of(spec);
        greys.map = ColorMapId::greys;
        QCOMPARE(canvas.pictures.front().image.pixel(2, 0), greys.color(0.4));
    }

    void profile_names_its_bands()
    {
        RecordingCanvas canvas;
        draw_figure(canvas, profile_spec(), FigureOptions());
        QVERIFY(canvas.has_text(QStringLiteral("white band \u22121 to 1")));
        QVERIFY(canvas.has_text(QStringLiteral("offset (key \u2212 query)")));
        QCOMPARE(canvas.polygons.size(), std::size_t{2});
        for (const FigureFormatRow& row : figure_formats())
            QVERIFY(!bytes_of(profile_spec(), FigureOptions(), row.format).isEmpty());
    }

    void writing_replaces_a_file_whole_and_refuses_what_it_cannot()
    {
        const QTemporaryDir folder;
        const QString path = folder.filePath(QStringLiteral("figure.SVG"));
        QVERIFY(write_figure(profile_spec(), FigureOptions(), path));
        QFile file(path);
        QVERIFY(file.open(QIODevice::ReadOnly));
        QCOMPARE(file.readAll(), bytes_of(profile_spec(), FigureOptions(), FigureFormat::svg));

        const auto no_folder =
            write_figure(profile_spec(), FigureOptions(), folder.filePath(QStringLiteral("no/x.pdf")));
        QVERIFY(!no_folder);
        QVERIFY(no_folder.error().message.find("x.pdf") != std::string::npos);
        const auto gif =
            write_figure(profile_spec(), FigureOptions(), folder.filePath(QStringLiteral("x.gif")));
        QVERIFY(!gif);
        QCOMPARE(gif.error().code, ErrorCode::invalid_argument);
        FigureOptions narrow;
        narrow.width_mm = 1.0;
        QCOMPARE(figure_bytes(profile_spec(), narrow, FigureFormat::pdf).error().code,
                 ErrorCode::invalid_argument);
        FigureOptions vast;
        vast.width_mm = vast.height_mm = 2000.0;
        vast.dpi = 2400;
        QCOMPARE(figure_bytes(profile_spec(), vast, FigureFormat::png).error().code,
                 ErrorCode::invalid_argument);
        QCOMPARE(figure_bytes(spec_of({}), FigureOptions(), FigureFormat::pdf).error().code,
                 ErrorCode::invalid_argument);
    }

    void lengths_are_read_with_their_units()
    {
        QCOMPARE(parse_millimetres(QStringLiteral("84mm")), 84.0);
        QCOMPARE(parse_millimetres(QStringLiteral(" 8.4 cm ")), 84.0);
        QCOMPARE(parse_millimetres(QStringLiteral("1in")), 25.4);
        QCOMPARE(parse_millimetres(QStringLiteral("72pt")), 25.4);
        QCOMPARE(parse_millimetres(QStringLiteral("84")), 84.0);
        QCOMPARE(parse_points(QStringLiteral("8pt")), 8.0);
        QCOMPARE(parse_points(QStringLiteral("8")), 8.0);
        for (const char* bad : {"", "mm", "-3mm", "8 px", "1e3", "8,4cm", "84mm wide"})
            QVERIFY(!parse_millimetres(QString::fromLatin1(bad)));
    }
};

QTEST_MAIN(TestFigureWriter)
#include "tst_figure_writer.moc"
