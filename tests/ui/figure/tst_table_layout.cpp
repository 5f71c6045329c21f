// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>

#include <algorithm>

#include "tests/support/figure_specs.h"
#include "tests/support/recording_canvas.h"
#include "ui/figure/figure_layout.h"
#include "ui/figure/figure_writer.h"

using namespace posiscope::ui;
using posiscope::test::RecordingCanvas;

namespace {

constexpr double points_per_mm = 72.0 / 25.4;

/// `values` columns of numbers beside two of labels.
FigureSpec table_spec(int values, int rows)
{
    TableContent table;
    table.columns.push_back({QStringLiteral("Quantity"), true, {}});
    table.columns.push_back({QStringLiteral("Positions"), true, {}});
    for (int c = 0; c < values; ++c) table.columns.push_back({QStringLiteral("M%1").arg(c), false, {}});
    for (int r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < table.columns.size(); ++c)
            table.columns[c].cells.push_back(
                c < 2 ? TableCell{QStringLiteral("row %1").arg(r), {}}
                      : TableCell{QStringLiteral("0.%1%2").arg(c).arg(r), QStringLiteral("\u00b1 0.0012")});
    table.note = QStringLiteral("\u00b1 standard error over words");
    FigureSpec spec;
    spec.content = table;
    return spec;
}

} // namespace

class TestTableLayout : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everything_is_on_the_page_and_apart_data()
    {
        posiscope::test::add_page_sizes();
        QTest::newRow("narrow") << 30.0 << 0.0 << 8.0;
    }

    void everything_is_on_the_page_and_apart()
    {
        QFETCH(double, width);
        QFETCH(double, height);
        QFETCH(double, font);
        const FigureSpec spec = table_spec(13, 6);
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
        QList<QRectF> places;
        for (const FigureText& text : canvas.texts) {
            const double extent = text.scale * measure.width(text.text, text.bold);
            const double start = text.anchor == TextAnchor::end      ? -extent
                                 : text.anchor == TextAnchor::middle ? -0.5 * extent
                                                                     : 0.0;
            const double cap = text.scale * measure.cap_height();
            const QRectF place(text.at.x() + start, text.at.y() - cap, extent, cap);
            QVERIFY2(inside.contains(place), qPrintable(text.text));
            for (const QRectF& other : places) QVERIFY2(!other.intersects(place), qPrintable(text.text));
            places.append(place);
        }
        // Every number is there once.
        int numbers = 0;
        for (const FigureText& text : canvas.texts) numbers += text.text.startsWith(QLatin1String("0."));
        QCOMPARE(numbers, 13 * 6);
    }

    void rows_and_columns_change_places_on_a_narrow_page()
    {
        RecordingCanvas canvas; // 84 mm
        draw_figure(canvas, table_spec(13, 2), FigureOptions());
        const auto place_of = [&](const QString& text) {
            const auto found = std::find_if(canvas.texts.begin(), canvas.texts.end(),
                                            [&](const FigureText& one) { return one.text == text; });
            return found == canvas.texts.end() ? QPointF(-1, -1) : found->at;
        };
        QVERIFY(place_of(QStringLiteral("M0")).y() < place_of(QStringLiteral("M12")).y()); // metrics go down
        QCOMPARE(place_of(QStringLiteral("M0")).x(), place_of(QStringLiteral("M12")).x());
        QCOMPARE(place_of(QStringLiteral("0.140")).y(),
                 place_of(QStringLiteral("M12")).y()); // row 0 of column 14
        QVERIFY(place_of(QStringLiteral("0.140")).x() < place_of(QStringLiteral("0.141")).x());
    }

    void labels_are_repeated_where_the_table_is_broken()
    {
        FigureOptions options; // 84 mm
        RecordingCanvas narrow, wide;
        draw_figure(narrow, table_spec(13, 13), options); // wide either way
        options.width_mm = 300.0;
        draw_figure(wide, table_spec(13, 13), options);
        const auto heads = [](const RecordingCanvas& canvas) {
            const auto count = [&](const char* what) {
                return std::count_if(canvas.texts.begin(), canvas.texts.end(), [&](const FigureText& text) {
                    return text.text == QLatin1String(what);
                });
            };
            return std::max(count("Quantity"), count("M0")); // turned, the metrics are the labels
        };
        QVERIFY(heads(narrow) > 1);
        QCOMPARE(heads(wide), 1);
        QCOMPARE(wide.lines.size(), std::size_t{3}); // three rules
        QVERIFY(narrow.lines.size() >= static_cast<std::size_t>(3 * heads(narrow)));
    }

    void every_format_has_it_and_none_has_an_empty_one()
    {
        for (const FigureFormatRow& row : figure_formats()) {
            QVERIFY(figure_bytes(table_spec(5, 2), FigureOptions(), row.format));
            QVERIFY(!figure_bytes(table_spec(5, 0), FigureOptions(), row.format));
        }
        const auto svg = figure_bytes(table_spec(1, 1), FigureOptions(), FigureFormat::svg);
        QVERIFY(svg->contains(">0.20</text>"));
        QVERIFY(svg->contains("font-size=\"6.56\"")); // of the error, at 8 pt
    }
};

QTEST_MAIN(TestTableLayout)
#include "tst_table_layout.moc"
