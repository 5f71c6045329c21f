// SPDX-License-Identifier: GPL-3.0-or-later
// The views that need no probe: what they draw from the embedded samples, what they say where they cannot, their exports.
#include <algorithm>
#include <cmath>

#include <QApplication>
#include <QFile>
#include <QSettings>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QImage>
#include <QPointF>
#include <QTest>
#include <QWidget>

#include "ui/figure/figure_writer.h"
#include "ui/plot/chart_plot.h"
#include "ui/plot/heatmap_plot.h"
#include "ui/shared_cursor.h"
#include "ui/views/image_grid_view.h"
#include "ui/views/position_map_view.h"
#include "ui/views/position_similarity_view.h"
#include "ui/views/relative_bias_view.h"
#include "ui/views/view_table.h"

namespace posiscope::ui {
namespace {

std::shared_ptr<const core::Session> session_of(const std::string& name)
{
    auto model =
        core::open_model(name.starts_with("sample:") ? name : POSISCOPE_TEST_DATA "/families/" + name, {});
    auto session = std::make_shared<core::Session>();
    if (model) session->model = *std::move(model);
    return session;
}

template <class View>
std::unique_ptr<View> shown(const std::string& name, SharedCursor& cursor)
{
    auto view = std::make_unique<View>();
    view->setSharedCursor(&cursor);
    view->resize(700, 420);
    static_cast<QWidget*>(view.get())->show();
    view->setSession(session_of(name));
    for (int k = 0; k < 600 && view->isBusy(); ++k) QTest::qWait(20);
    QTest::qWait(20);
    return view;
}

QString written(const PositionView& view, const char* extension)
{
    QTemporaryDir folder;
    const QString path = folder.filePath(QStringLiteral("figure.") + QLatin1String(extension));
    const auto done = write_figure(view.figure(), {}, path);
    if (!done) return QString::fromStdString(done.error().message);
    return QFile(path).size() > 500 ? QString() : QStringLiteral("an empty file");
}

} // namespace

class TestPositionViews : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void map_of_mpnet()
    {
        SharedCursor cursor;
        const auto view = shown<PositionMapView>("sample:mpnet-base-positions", cursor);
        QVERIFY2(view->canExport(), qPrintable(view->message()));
        const ChartContent& chart = view->tsnePlot()->chart();
        QCOMPARE(chart.series.size(), std::size_t{2});
        QCOMPARE(chart.series[0].x.size(), std::size_t{512}); // positions
        QCOMPARE(chart.series[1].x.size(), std::size_t{2});   // rows that no position uses
        QVERIFY(chart.series[1].hollow);
        QCOMPARE(chart.series[0].values.front(), 0.0);
        QCOMPARE(chart.series[0].values.back(), 1.0);
        QVERIFY(chart.bar && chart.bar->upper == 511.0);
        QVERIFY(!chart.labels.empty());
        QVERIFY(view->contextLine().contains(QLatin1String("perplexity 30")));
        cursor.hover(MarkedPlace::cell(17, 12));
        QCOMPARE(view->tsnePlot()->rings().size(), std::size_t{2});
        QCOMPARE(view->tsnePlot()->rings()[0], QPointF(chart.series[0].x[17], chart.series[0].y[17]));
        QCOMPARE(view->pcaPlot()->rings().size(), std::size_t{2});
        cursor.leave();
        QVERIFY(view->tsnePlot()->rings().empty());
        for (const char* format : {"pdf", "svg", "png"}) QCOMPARE(written(*view, format), QString());
    }

    void map_says_what_a_scheme_is()
    {
        SharedCursor cursor;
        const auto view = shown<PositionMapView>("bloom", cursor);
        QVERIFY(!view->canExport());
        QVERIFY2(view->message().contains(QLatin1String("ALiBi")), qPrintable(view->message()));
        const auto rotary = shown<PositionMapView>("llama", cursor);
        QVERIFY2(rotary->canExport(), qPrintable(rotary->message()));
        QVERIFY(rotary->contextLine().contains(QLatin1String("rotary")));
    }

    void map_says_which_perplexity_was_used()
    {
        SharedCursor cursor;
        const auto view = shown<PositionMapView>("sample:gpt-nano-sort", cursor);
        QVERIFY2(view->canExport(), qPrintable(view->message()));
        QVERIFY2(view->contextLine().contains(QLatin1String("perplexity 3.333")),
                 qPrintable(view->contextLine()));
        QVERIFY(view->contextLine().contains(QLatin1String("too large for 11 vectors")));
    }

    void pointing_at_the_map_marks_the_position()
    {
        SharedCursor cursor;
        const auto view = shown<PositionMapView>("sample:minilm-l6-first-layer", cursor);
        QVERIFY(view->canExport());
        view->tsnePlot()->grab();
        const ChartSeries& points = view->tsnePlot()->chart().series[0];
        QTest::mouseMove(view->tsnePlot(), view->tsnePlot()->placeOf(points.x[200], points.y[200]).toPoint());
        QTRY_VERIFY(cursor.place().has_value());
        const auto near = static_cast<std::size_t>(*cursor.place()->query);
        const QPointF step = view->tsnePlot()->placeOf(points.x[near], points.y[near]) -
                             view->tsnePlot()->placeOf(points.x[200], points.y[200]);
        QVERIFY(std::hypot(step.x(), step.y()) < 3.0);
    }

    void similarity_of_minilm()
    {
        SharedCursor cursor;
        const auto view = shown<PositionSimilarityView>("sample:minilm-l6-first-layer", cursor);
        QVERIFY2(view->canExport(), qPrintable(view->message()));
        QCOMPARE(view->map()->map().length, std::size_t{512});
        QCOMPARE(*view->map()->valueAt(7, 7), 1.0);
        QCOMPARE(*view->map()->valueAt(3, 90), *view->map()->valueAt(90, 3));
        QCOMPARE(written(*view, "svg"), QString());
    }

    void bias_of_mpnet()
    {
        SharedCursor cursor;
        const auto view = shown<RelativeBiasView>("sample:mpnet-base-positions", cursor);
        QVERIFY2(view->canExport(), qPrintable(view->message()));
        const ChartContent& chart = view->curves()->chart();
        QCOMPARE(chart.series.size(), std::size_t{13}); // 12 heads and their mean
        QVERIFY(chart.white_band == (WhiteBandOffsets{0, 0}));
        const auto& edges = chart.edges;
        QVERIFY(std::find(edges.begin(), edges.end(), 11.5) != edges.end()); // a bucket begins at 12
        QVERIFY(view->contextLine().contains(QLatin1String("white band 0 to 0")));
        QCOMPARE(view->picture()->map().length, std::size_t{128});
        cursor.hover(MarkedPlace::diagonal(-5));
        QCOMPARE(view->curves()->markedLine(), std::optional<double>(-5.0));
        for (const char* format : {"pdf", "svg"}) QCOMPARE(written(*view, format), QString());
    }

    void bias_says_where_there_is_none()
    {
        SharedCursor cursor;
        const auto view = shown<RelativeBiasView>("bert", cursor);
        QVERIFY2(view->message().contains(QLatin1String("learned absolute")), qPrintable(view->message()));
    }

    void image_grid()
    {
        SharedCursor cursor;
        const auto view = shown<ImageGridView>("vit", cursor);
        QVERIFY2(view->canExport(), qPrintable(view->message()));
        const QImage& image = view->gridPlot()->chart().image;
        const int side = static_cast<int>(std::lround(std::sqrt(image.width() + 1)));
        QVERIFY(side > 1);
        QCOMPARE(qAlpha(image.pixel(side, 0)), 0); // between two maps
        view->choosePatch(1);
        const QImage& patch = view->patchPlot()->chart().image;
        QCOMPARE(patch.pixel(1, 0), image.pixel(side + 1 + 1, 0)); // a patch is most like itself
        QCOMPARE(written(*view, "png"), QString());
        const auto words = shown<ImageGridView>("bert", cursor);
        QVERIFY2(words->message().contains(QLatin1String("no image")), qPrintable(words->message()));
    }

    void newest_wish_wins()
    {
        SharedCursor cursor;
        PositionMapView view;
        view.setSharedCursor(&cursor);
        view.setSession(session_of("sample:mpnet-base-positions"));
        view.setSession(session_of("sample:gpt-nano-sort"));
        for (int k = 0; k < 600 && view.isBusy(); ++k) QTest::qWait(20);
        QVERIFY(view.contextLine().contains(QLatin1String("gpt-nano-sort")));
        QCOMPARE(view.tsnePlot()->chart().series[0].x.size(), std::size_t{11});
    }
};

} // namespace posiscope::ui

int main(int argc, char** argv)
{
    QApplication program(argc, argv);
    posiscope::ui::TestPositionViews test;
    return QTest::qExec(&test, argc, argv);
}
#include "tst_position_views.moc"
