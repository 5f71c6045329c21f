// SPDX-License-Identifier: GPL-3.0-or-later
// The views that run through all layers and stacks: what they draw, and that the newest wish wins.
#include <algorithm>
#include <cmath>
#include <optional>

#include <QApplication>
#include <QComboBox>
#include <QFile>
#include <QLabel>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>

#include <nlohmann/json.hpp>

#include "core/metrics/metric_list.h"
#include "core/probe/identical_word_probe.h"
#include "tests/support/shown_view.h"
#include "ui/figure/figure_writer.h"
#include "ui/plot/chart_plot.h"
#include "ui/plot/heatmap_plot.h"
#include "ui/shared_cursor.h"
#include "ui/views/layer_metrics_view.h"
#include "ui/views/stack_comparison_view.h"

namespace posiscope::ui {
namespace {

std::shared_ptr<const core::Session> session_of(const std::string& name, int layer = 0,
                                                const std::string& stack = {}, std::int64_t length = 9)
{
    auto session = std::make_shared<core::Session>();
    auto model = core::open_model(POSISCOPE_TEST_DATA "/families/" + name, {});
    if (!model) return session;
    session->model = *std::move(model);
    core::ProbeOptions options;
    options.length = length;
    options.words.count = 4;
    options.layer = layer;
    options.stack = stack;
    if (auto probe = core::run_identical_word_probe(*session->model, options, {}))
        session->probe = std::make_shared<const core::ProbeResult>(*std::move(probe));
    return session;
}

using test::wait_for;
using test::written;

std::size_t metric_index(std::string_view id)
{
    const auto list = core::metric_list();
    return static_cast<std::size_t>(
        std::find_if(list.begin(), list.end(), [&](const core::Metric& m) { return m.id == id; }) -
        list.begin());
}

} // namespace

class TestLayerViews : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void a_metric_against_the_layer()
    {
        SharedCursor cursor;
        const auto view = test::shown_view<LayerMetricsView>(session_of("t5"), cursor);
        QVERIFY2(view->canExport(), qPrintable(view->message()));
        const std::size_t metric = metric_index("symmetry_violation");
        view->shownBox()->setCurrentIndex(static_cast<int>(metric));
        const ChartContent& chart = view->plot()->chart();
        QCOMPARE(chart.series.size(), std::size_t{2});
        QCOMPARE(chart.series[0].name, QStringLiteral("encoder"));
        QCOMPARE(chart.series[1].name, QStringLiteral("decoder"));
        QCOMPARE(chart.series[0].x, (std::vector<double>{0.0, 1.0}));
        QVERIFY(std::isnan(chart.series[1].y[0])); // symmetry is not defined for a causal map
        // The number of a probe of that layer alone.
        const auto alone = session_of("t5", 1);
        const double value = core::metric_list()[metric].evaluate(
            core::quantity_map(*alone->probe, core::Quantity::constants_removed, core::mean_of_heads,
                               core::PositionChoice::all),
            core::Quantity::constants_removed);
        QCOMPARE(chart.series[0].y[1], value);
        QVERIFY(view->contextLine().contains(QLatin1String("encoder and decoder")));
        QVERIFY(view->contextLine().contains(QLatin1String("4 words")));
        for (const char* format : {"pdf", "svg", "png"}) QCOMPARE(written(*view, format), QString());
    }

    void a_click_goes_to_the_layer()
    {
        SharedCursor cursor;
        const auto view = test::shown_view<LayerMetricsView>(session_of("t5"), cursor);
        view->shownBox()->setCurrentIndex(static_cast<int>(metric_index("monotonicity_violation_all")));
        view->plot()->grab();
        QSignalSpy chosen(view.get(), &AnalysisView::layerChosen);
        const ChartSeries decoder = view->plot()->chart().series[1];
        QTest::mouseClick(view->plot(), Qt::LeftButton, {},
                          view->plot()->placeOf(1.0, decoder.y[1]).toPoint());
        QCOMPARE(chosen.size(), 1);
        QCOMPARE(chosen.front().at(0).toString(), QStringLiteral("decoder"));
        QCOMPARE(chosen.front().at(1).toInt(), 1);
        // The session follows: the same numbers, another mark.
        view->setSession(session_of("t5", 1, "decoder"));
        wait_for(*view);
        QCOMPARE(view->plot()->markedLine(), std::optional<double>(1.0));
    }

    void distance_by_query_is_a_curve_for_each_layer()
    {
        SharedCursor cursor;
        const auto view = test::shown_view<LayerMetricsView>(session_of("gpt2"), cursor);
        QVERIFY2(view->canExport(), qPrintable(view->message()));
        view->shownBox()->setCurrentIndex(view->shownBox()->findData(QStringLiteral("distance_ratio")));
        const ChartContent& chart = view->plot()->chart();
        QCOMPARE(chart.series.size(), std::size_t{2});
        QCOMPARE(chart.series[0].x.size(), std::size_t{9});
        QVERIFY(std::isnan(chart.series[0].y[0])); // the first query has one key only
        QVERIFY(chart.series[0].y[5] > 0.0);
        QVERIFY(chart.bar && chart.bar->upper == 1.0);
        // The last layer's line has the colour of the bar's upper end.
        const QImage picture = view->plot()->grab().toImage();
        const QPoint place = view->plot()->placeOf(chart.series[1].x[6], chart.series[1].y[6]).toPoint();
        const QColor upper(color_map_entry(ColorMapId::viridis, 255));
        bool found = false;
        for (int dx = -3; dx <= 3; ++dx)
            for (int dy = -3; dy <= 3; ++dy) {
                const QColor here = picture.pixelColor(place + QPoint(dx, dy));
                found = found || (std::abs(here.hue() - upper.hue()) < 12 && here.saturation() > 120);
            }
        QVERIFY(found);
    }

    void another_length_is_computed_and_the_newest_wish_wins()
    {
        SharedCursor cursor;
        const auto view = test::shown_view<LayerMetricsView>(session_of("t5"), cursor);
        view->setSession(session_of("t5", 0, {}, 12));
        view->setSession(session_of("t5", 0, {}, 7));
        wait_for(*view);
        QVERIFY2(view->contextLine().contains(QLatin1String("L 7")), qPrintable(view->contextLine()));
    }

    void stopped_work_leaves_the_old_picture_and_can_go_on()
    {
        SharedCursor cursor;
        const auto view = test::shown_view<LayerMetricsView>(session_of("bert"), cursor);
        QVERIFY(view->stopButton()->isHidden());
        view->setSession(session_of("bert", 0, {}, 13));
        QVERIFY(view->isBusy());
        QVERIFY(!view->stopButton()->isHidden());
        view->stopButton()->click();
        wait_for(*view);
        QVERIFY(view->canExport());
        if (view->contextLine().contains(QLatin1String("L 13")))
            QSKIP("the work was done before it was stopped");
        QVERIFY(view->contextLine().contains(QLatin1String("L 9")));
        view->stopButton()->click();
        wait_for(*view);
        QVERIFY(view->contextLine().contains(QLatin1String("L 13")));
        QVERIFY(view->stopButton()->isHidden());
    }

    void stacks_side_by_side()
    {
        SharedCursor cursor;
        const auto view = test::shown_view<StackComparisonView>(session_of("marian"), cursor);
        QVERIFY2(view->canExport(), qPrintable(view->message()));
        QVERIFY(view->map(0)->colorScale() == view->map(1)->colorScale());
        QCOMPARE(view->map(0)->map().length, std::size_t{9});
        QVERIFY(view->map(0)->valueAt(2, 5).has_value());
        QVERIFY(std::isnan(*view->map(1)->valueAt(2, 5))); // the decoder's future does not exist
        QVERIFY(view->numbers()->text().contains(QLatin1String("Extra attention to the first position")));
        cursor.hover(MarkedPlace::cell(5, 2));
        QCOMPARE(view->map(0)->markedCell(), std::optional<QPoint>(QPoint(2, 5)));
        QCOMPARE(view->map(1)->markedCell(), std::optional<QPoint>(QPoint(2, 5)));
        QCOMPARE(written(*view, "pdf"), QString());
        view->shownBox()->setCurrentIndex(2);
        const ChartContent& chart = view->distancePlot()->chart();
        QCOMPARE(chart.series.size(), std::size_t{2});
        QVERIFY(chart.series[0].name.contains(QLatin1String("encoder")));
        QVERIFY(chart.series[1].name.contains(QLatin1String("decoder")));
        QCOMPARE(written(*view, "svg"), QString());
    }

    void the_scale_of_the_stacks_is_that_of_the_heatmap()
    {
        SharedCursor cursor;
        auto session = std::make_shared<core::Session>(*session_of("marian"));
        session->display.quantity = core::Quantity::probabilities;
        const auto view = test::shown_view<StackComparisonView>(session, cursor);
        QVERIFY2(view->canExport(), qPrintable(view->message()));
        QCOMPARE(view->scaleBox()->currentData().toString(), QStringLiteral("percentile"));
        QCOMPARE(view->map(0)->colorScale().kind, ScaleKind::percentile);
        QVERIFY(view->map(0)->colorScale() == view->map(1)->colorScale());
        const auto show_quantity = [&](core::Quantity quantity) {
            auto next = std::make_shared<core::Session>(*session);
            next->display.quantity = quantity;
            view->setSession(next);
            wait_for(*view);
        };
        for (const auto quantity : {core::Quantity::logits, core::Quantity::constants_removed}) {
            show_quantity(quantity);
            QCOMPARE(view->scaleBox()->currentData().toString(), QStringLiteral("linear"));
            QCOMPARE(view->map(1)->colorScale().kind, ScaleKind::linear);
        }
        // What a person chose for one quantity is kept, and does not touch the other; another view takes it over.
        view->scaleBox()->setCurrentIndex(view->scaleBox()->findData(QStringLiteral("symmetric")));
        show_quantity(core::Quantity::probabilities);
        QCOMPARE(view->map(0)->colorScale().kind, ScaleKind::percentile);
        show_quantity(core::Quantity::logits);
        QCOMPARE(view->map(0)->colorScale().kind, ScaleKind::symmetric);
        StackComparisonView other;
        other.setChoices(view->choices());
        QCOMPARE(other.choices(), view->choices());
    }

    void stopped_stacks_are_said_to_be_stopped_and_can_be_run_again()
    {
        SharedCursor cursor;
        const auto session = session_of("marian", 0, {}, 64);
        std::optional<StackComparisonView> made;
        // A small model may be done before it is stopped: then again.
        for (int k = 0; k < 200 && !(made && made->isStopped()); ++k) {
            made.emplace();
            made->setSharedCursor(&cursor);
            made->setSession(session);
            QVERIFY(made->hasWork());
            made->stopWork();
            wait_for(*made);
        }
        StackComparisonView& view = *made;
        QVERIFY(view.isStopped());
        QVERIFY(!view.canExport());
        QVERIFY2(view.message().startsWith(QStringLiteral("Stopped")), qPrintable(view.message()));
        view.runAgain();
        QVERIFY(view.hasWork());
        QVERIFY(!view.isStopped());
        wait_for(view);
        QVERIFY2(view.canExport(), qPrintable(view.message()));
        QVERIFY(!view.isStopped());
    }

    void the_record_has_the_tensors_that_were_read()
    {
        SharedCursor cursor;
        const auto layers = test::shown_view<LayerMetricsView>(session_of("marian"), cursor);
        const auto stacks = test::shown_view<StackComparisonView>(session_of("marian"), cursor);
        for (const PositionView* view :
             std::initializer_list<const PositionView*>{layers.get(), stacks.get()}) {
            QVERIFY2(view->canExport(), qPrintable(view->message()));
            const FigureSpec spec = view->figure();
            QVERIFY(!spec.read_tensors); // nothing is left to do when it is written
            const auto record = nlohmann::json::parse(spec.provenance_json.toStdString(), nullptr, false);
            QVERIFY(record.contains("tensors"));
            std::string names;
            for (const auto& [name, tensor] : record["tensors"].items()) {
                names += name + ' ';
                QCOMPARE(tensor["sha256"].get<std::string>().size(), std::size_t{64});
            }
            for (const char* wanted :
                 {"encoder.layers.0.self_attn.q_proj.weight", "decoder.layers.0.self_attn.q_proj.weight"})
                QVERIFY2(names.find(wanted) != std::string::npos, names.c_str());
        }
    }

    void one_stack_is_said_to_be_one()
    {
        SharedCursor cursor;
        const auto view = test::shown_view<StackComparisonView>(session_of("bert"), cursor);
        QVERIFY(!view->canExport());
        QVERIFY2(view->message().contains(QLatin1String("has one stack, the encoder")),
                 qPrintable(view->message()));
    }
};

} // namespace posiscope::ui

int main(int argc, char** argv)
{
    QApplication program(argc, argv);
    posiscope::ui::TestLayerViews test;
    return QTest::qExec(&test, argc, argv);
}
#include "tst_layer_views.moc"
