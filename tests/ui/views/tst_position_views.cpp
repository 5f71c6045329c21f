// SPDX-License-Identifier: GPL-3.0-or-later
// The views that need no probe: what they draw from the embedded samples, what they say where they cannot, their exports.
#include <algorithm>
#include <cmath>

#include <QAbstractButton>
#include <QAbstractItemView>
#include <QAbstractSpinBox>
#include <QApplication>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QPushButton>
#include <QUndoStack>
#include <QFile>
#include <QSettings>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QImage>
#include <QPointF>
#include <QTest>
#include <QWidget>

#include <nlohmann/json.hpp>

#include "core/metrics/map_report.h"
#include "core/probe/identical_word_probe.h"
#include "tests/support/shown_view.h"
#include "ui/choice_command.h"
#include "ui/figure/figure_command.h"
#include "ui/figure/figure_provenance.h"
#include "ui/figure/figure_writer.h"
#include "ui/plot/chart_plot.h"
#include "ui/plot/heatmap_plot.h"
#include "ui/shared_cursor.h"
#include "ui/views/attention_heatmap_view.h"
#include "ui/views/image_grid_view.h"
#include "ui/views/metric_table_view.h"
#include "ui/views/offset_profile_view.h"
#include "ui/views/position_map_view.h"
#include "ui/views/position_similarity_view.h"
#include "ui/views/relative_bias_view.h"
#include "ui/views/view_table.h"
#include "ui/widgets/panel.h"

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
    return test::shown_view<View>(session_of(name), cursor);
}

using test::written;

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
        // The head of a panel breaks lines, but not inside the name; a figure's title has it as it is written.
        QVERIFY(view->contextLine().contains(QStringLiteral("t\u2011SNE")));
        QVERIFY(view->figure().title.contains(QStringLiteral("t-SNE")));
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
        QVERIFY(view->messageButton()->isVisible());
    }

    void a_view_that_cannot_shows_the_way_data()
    {
        QTest::addColumn<QString>("view");
        QTest::addColumn<QString>("model");
        QTest::addColumn<QString>("scheme");
        QTest::addColumn<QString>("instead");
        QTest::newRow("ALiBi") << QStringLiteral("position_map") << QStringLiteral("bloom")
                               << QStringLiteral("ALiBi") << QStringLiteral("relative_bias");
        QTest::newRow("T5") << QStringLiteral("position_map") << QStringLiteral("t5")
                            << QStringLiteral("bias") << QStringLiteral("relative_bias");
        QTest::newRow("T5's similarity") << QStringLiteral("position_similarity") << QStringLiteral("t5")
                                         << QStringLiteral("bias") << QStringLiteral("relative_bias");
        QTest::newRow("BERT's bias") << QStringLiteral("relative_bias") << QStringLiteral("bert")
                                     << QStringLiteral("learned absolute") << QStringLiteral("position_map");
        QTest::newRow("an image of words") << QStringLiteral("image_grid") << QStringLiteral("bert")
                                           << QStringLiteral("no image") << QStringLiteral("position_map");
    }

    void a_view_that_cannot_shows_the_way()
    {
        QFETCH(QString, view);
        QFETCH(QString, model);
        QFETCH(QString, scheme);
        QFETCH(QString, instead);
        SharedCursor cursor;
        Panel panel(&cursor, view.toStdString());
        panel.resize(500, 360);
        panel.setSession(session_of(model.toStdString()));
        panel.show();
        const auto* cannot = qobject_cast<PositionView*>(panel.view());
        QVERIFY(cannot);
        QVERIFY2(cannot->message().contains(scheme), qPrintable(cannot->message()));
        QVERIFY(cannot->message().endsWith(u'.'));
        QVERIFY(!cannot->canExport());
        QTest::mouseClick(cannot->messageButton(), Qt::LeftButton);
        QCOMPARE(QString::fromUtf8(panel.viewId().data(), qsizetype(panel.viewId().size())), instead);
        const auto* can = qobject_cast<PositionView*>(panel.view());
        QTRY_VERIFY2(can->canExport(), qPrintable(can->message()));
    }

    void no_control_is_cut_at_any_width_data()
    {
        QTest::addColumn<QString>("view");
        for (const ViewRow& row : view_table())
            QTest::newRow(std::string(row.id).c_str())
                << QString::fromUtf8(row.id.data(), qsizetype(row.id.size()));
    }

    void no_control_is_cut_at_any_width()
    {
        QFETCH(QString, view);
        SharedCursor cursor;
        Panel panel(&cursor, view.toStdString());
        panel.setSession(session_of(view == QLatin1String("image_grid") ? "sample:vit-mnist-4x4"
                                                                        : "sample:mpnet-base-positions"));
        panel.show();
        if (const auto* busy = qobject_cast<PositionView*>(panel.view()))
            QTRY_VERIFY_WITH_TIMEOUT(!busy->isBusy(), 20'000);
        for (int width = panel.minimumSizeHint().width(); width < 800; width += 37) {
            panel.resize(width, 420);
            QCoreApplication::sendPostedEvents(nullptr, QEvent::LayoutRequest);
            panel.view()->grab();
            for (const QWidget* control : panel.view()->findChildren<QWidget*>()) {
                const bool is_control = qobject_cast<const QComboBox*>(control) ||
                                        qobject_cast<const QAbstractSpinBox*>(control) ||
                                        qobject_cast<const QAbstractButton*>(control);
                if (!is_control || !control->isVisible() || control->window() != panel.window() ||
                    qobject_cast<const QAbstractItemView*>(control->parentWidget()) ||
                    control->parentWidget()->inherits("QComboBox"))
                    continue;
                const QRect place(control->mapTo(&panel, QPoint()), control->size());
                const QString what = QStringLiteral("%1 at %2: %3 of %4 pixels")
                                         .arg(control->accessibleName())
                                         .arg(width)
                                         .arg(control->width())
                                         .arg(control->sizeHint().width());
                QVERIFY2(panel.rect().contains(place), qPrintable(what));
                QVERIFY2(control->width() >= std::min(control->sizeHint().width(), control->maximumWidth()),
                         qPrintable(what));
                QVERIFY2(control->height() >= control->minimumSizeHint().height(), qPrintable(what));
            }
        }
    }

    void choices_are_taken_back()
    {
        SharedCursor cursor;
        Panel panel(&cursor, "position_map");
        panel.setSession(session_of("sample:gpt-nano-sort"));
        panel.resize(600, 400);
        panel.show();
        QUndoStack steps;
        connect(&panel, &Panel::choiceMade, this,
                [&](const QVariantMap& before, const QVariantMap& after, const QString& what) {
                    steps.push(new ChoiceCommand(&panel, before, after, what));
                });
        const auto box = [&](const QString& name) -> QWidget* {
            for (QWidget* one : panel.view()->findChildren<QWidget*>())
                if (one->accessibleName() == name) return one;
            return nullptr;
        };
        auto* perplexity = qobject_cast<QDoubleSpinBox*>(box(QStringLiteral("Perplexity")));
        auto* map = qobject_cast<QComboBox*>(box(QStringLiteral("Which map")));
        QVERIFY(perplexity && map);
        QTest::keyClick(perplexity, Qt::Key_Up);
        QTest::keyClick(perplexity, Qt::Key_Up); // quick steps of one choice are one
        QCOMPARE(perplexity->value(), 32.0);
        QCOMPARE(steps.count(), 1);
        QTest::keyClick(map, Qt::Key_Down);
        QCOMPARE(map->currentIndex(), 1);
        QCOMPARE(steps.count(), 2);
        QCOMPARE(steps.undoText(), QStringLiteral("maps shown"));
        steps.undo();
        QCOMPARE(map->currentIndex(), 0);
        steps.undo();
        QCOMPARE(perplexity->value(), 30.0);
        QVERIFY(!steps.canUndo());
        steps.redo();
        QCOMPARE(perplexity->value(), 32.0);
        QCOMPARE(steps.count(), 2); // taking back is no choice of its own
        // Another view stands there by now: the choice's own comes back.
        panel.setView("offset_profile");
        steps.undo();
        QCOMPARE(panel.viewId(), std::string_view("position_map"));
        QCOMPARE(panel.choices().value(QStringLiteral("map_perplexity")).toDouble(), 30.0);
    }

    void a_map_is_stopped_where_it_stands()
    {
        SharedCursor cursor;
        PositionMapView view;
        view.setSharedCursor(&cursor);
        view.setChoices({{QStringLiteral("map_iterations"), 20000}});
        view.setSession(session_of("sample:minilm-l6-first-layer"));
        QTRY_VERIFY_WITH_TIMEOUT(view.contextLine().contains(QLatin1String("iteration ")), 20'000);
        QVERIFY(!view.canExport()); // it still moves
        view.stop();
        QTRY_VERIFY(!view.isBusy());
        QVERIFY2(view.contextLine().endsWith(QLatin1String("stopped")), qPrintable(view.contextLine()));
        QVERIFY(view.canExport());
        QCOMPARE(written(view, "svg"), QString());
    }

    void command_and_window_make_the_same_figure_data()
    {
        QTest::addColumn<QString>("view");
        QTest::addColumn<QString>("location");
        QTest::newRow("position_map")
            << QStringLiteral("position_map") << QStringLiteral("sample:gpt-nano-sort");
        QTest::newRow("position_similarity")
            << QStringLiteral("position_similarity") << QStringLiteral("sample:mpnet-base-positions");
        QTest::newRow("relative_bias")
            << QStringLiteral("relative_bias") << QStringLiteral("sample:mpnet-base-positions");
        QTest::newRow("image_grid") << QStringLiteral("image_grid") << QStringLiteral("sample:vit-mnist-4x4");
        for (const char* view : {"attention_heatmap", "offset_profile", "metric_table"})
            QTest::newRow(view) << QString::fromLatin1(view)
                                << QStringLiteral("sample:minilm-l6-first-layer");
    }

    void command_and_window_make_the_same_figure()
    {
        QFETCH(QString, view);
        QFETCH(QString, location);
        FigureRequest request;
        request.view = view.toStdString();
        request.location = location.toStdString();
        core::ProbeOptions options;
        options.words.count = 40;
        const bool has_probe = view == QLatin1String("attention_heatmap") ||
                               view == QLatin1String("offset_profile") ||
                               view == QLatin1String("metric_table");
        if (has_probe) options.length = 24; // without a probe the window has the default
        request.probe_options = [&](const core::OpenModel&, std::vector<std::string>&) {
            return core::Result<core::ProbeOptions>(options);
        };
        auto session = std::make_shared<core::Session>(*session_of(request.location));
        QVERIFY(session->model);
        std::vector<std::string> warnings;
        const auto wanted = make_figure_spec(session->model, request, warnings, {});
        QVERIFY2(wanted, wanted ? "" : wanted.error().message.c_str());

        // The window's way: a session, as the controller makes it.
        core::ProbeOptions probed = options;
        if (view == QLatin1String("attention_heatmap")) probed.probabilities = probed.group_spread = false;
        if (view == QLatin1String("offset_profile")) probed.probabilities = false;
        if (has_probe) {
            auto probe = core::run_identical_word_probe(*session->model, probed, {});
            QVERIFY(probe);
            session->probe = std::make_shared<const core::ProbeResult>(*std::move(probe));
            auto maps = core::compute_display_maps(*session->probe, {}, {});
            QVERIFY(maps);
            session->maps = std::make_shared<const core::DisplayMaps>(*std::move(maps));
            core::MetricOptions metrics;
            metrics.seed = options.seed;
            auto table = core::evaluate_metrics(*session->probe, metrics, {});
            QVERIFY(table);
            session->metrics = std::make_shared<const core::MetricTable>(*std::move(table));
        }
        SharedCursor cursor;
        Panel panel(&cursor, view.toStdString());
        panel.resize(600, 420);
        panel.show();
        panel.setSession(session);
        FigureSpec shown;
        if (auto* positions = qobject_cast<PositionView*>(panel.view())) {
            QTRY_VERIFY_WITH_TIMEOUT(positions->canExport() && !positions->isBusy(), 20'000);
            shown = positions->figure();
        } else if (auto* heatmap = qobject_cast<AttentionHeatmapView*>(panel.view())) {
            shown = heatmap->figure();
        } else if (auto* profile = qobject_cast<OffsetProfileView*>(panel.view())) {
            shown = profile->figure();
        } else if (auto* table = qobject_cast<MetricTableView*>(panel.view())) {
            QVERIFY(table->canExport());
            shown = table->figure();
        }
        QCOMPARE(shown.title, wanted->title);
        QCOMPARE(shown.suggested_name, wanted->suggested_name);
        // Both records have the digests of the same tensors: those of the positions at least.
        const auto tensors_of = [](const FigureSpec& spec) {
            const auto record =
                nlohmann::json::parse(complete_provenance(spec, {}).toStdString(), nullptr, false);
            return record.value("tensors", nlohmann::json());
        };
        QVERIFY(!tensors_of(shown).empty());
        QCOMPARE(tensors_of(shown).dump(), tensors_of(*wanted).dump());
        // A view of weights has them from the reading itself; a probe's are read when the figure is written.
        QCOMPARE(static_cast<bool>(shown.read_tensors), qobject_cast<PositionView*>(panel.view()) == nullptr);
        // The same drawing: SVG says every line of it. Provenance has times of day and seconds of work in it.
        FigureSpec ours = *wanted;
        ours.provenance_json = shown.provenance_json = "{}";
        const auto left = figure_bytes(shown, {}, FigureFormat::svg),
                   right = figure_bytes(ours, {}, FigureFormat::svg);
        QVERIFY(left && right);
        const auto drawing = [](const QByteArray& svg) { return svg.mid(svg.indexOf("</metadata>")); };
        QVERIFY(drawing(*left) == drawing(*right));
    }

    void image_grid()
    {
        SharedCursor cursor;
        const auto view = shown<ImageGridView>("vit", cursor);
        QVERIFY2(view->canExport(), qPrintable(view->message()));
        const ChartContent& chart = view->gridPlot()->chart();
        const QImage& image = chart.image;
        const core::Stack* stack = session_of("vit")->model->architecture.find_stack({});
        const auto side = static_cast<int>(stack->grid_columns);
        QVERIFY(side > 1);
        QCOMPARE(image.width(), side * (side + 1) - 1);
        QCOMPARE(qAlpha(image.pixel(side, 0)), 0); // between two maps
        // The class token's map stands apart below, with its name; a click enlarges it.
        QCOMPARE(chart.notes.size(), std::size_t{1});
        QCOMPARE(chart.notes[0].text, QStringLiteral("class token"));
        QVERIFY(image.height() > side * (side + 1));
        view->gridPlot()->grab();
        QTest::mouseClick(view->gridPlot(), Qt::LeftButton, {},
                          view->gridPlot()->placeOf(0.5 * side, 0.5 * side - image.height()).toPoint());
        QCOMPARE(view->patch(), side * side);
        QVERIFY2(view->contextLine().endsWith(QLatin1String("class token")), qPrintable(view->contextLine()));
        QCOMPARE(view->patchPlot()->chart().image.pixel(0, 0), image.pixel(0, image.height() - side));
        view->choosePatch(1);
        const QImage& patch = view->patchPlot()->chart().image;
        QCOMPARE(patch.pixel(1, 0), image.pixel(side + 1 + 1, 0)); // a patch is most like itself
        QCOMPARE(written(*view, "png"), QString());
        // On screen the gaps are the page, not black.
        const QImage seen = view->gridPlot()->grab().toImage();
        QCOMPARE(seen.pixel(view->gridPlot()->placeOf(side + 0.5, -0.5).toPoint()),
                 view->palette().color(QPalette::Base).rgb());
        const auto words = shown<ImageGridView>("bert", cursor);
        QVERIFY2(words->message().contains(QLatin1String("no image")), qPrintable(words->message()));
    }

    void image_grid_shows_the_metrics_in_two_dimensions()
    {
        SharedCursor cursor;
        const auto view = shown<ImageGridView>("sample:vit-mnist-4x4", cursor);
        QVERIFY2(view->canExport(), qPrintable(view->message()));
        QVERIFY(view->gridPlot()->chart().notes.empty()); // no class token
        QVERIFY2(view->metricsText().contains(QLatin1String("Position vectors in two dimensions")),
                 qPrintable(view->metricsText()));
        QVERIFY(!view->metricsText().contains(QLatin1String("Attention")));
        // With a probe those of the attention too: the numbers of metrics.json.
        auto session = std::make_shared<core::Session>(*session_of("sample:vit-mnist-4x4"));
        core::ProbeOptions options;
        options.length = 16;
        options.words.count = 20;
        auto probe = core::run_identical_word_probe(*session->model, options, {});
        QVERIFY2(probe, probe ? "" : probe.error().message.c_str());
        const auto report = core::probe_report(*probe, {});
        session->display.quantity = core::Quantity::logits;
        session->probe = std::make_shared<const core::ProbeResult>(*std::move(probe));
        view->setSession(session);
        const double wanted =
            report["quantities"]["logits"]["head_mean"]["translation_invariance_violation_2d"].get<double>();
        QTRY_VERIFY2(
            view->metricsText().contains(QStringLiteral("Attention (logits, layer 0, 1 head): violation of "
                                                        "translation invariance %1")
                                             .arg(wanted, 0, 'f', 3)),
            qPrintable(view->metricsText()));
    }

    void image_grid_of_a_bias()
    {
        SharedCursor cursor;
        for (const char* name : {"beit", "swin"}) {
            const auto view = shown<ImageGridView>(name, cursor);
            QVERIFY2(view->canExport(), qPrintable(view->message()));
            QVERIFY2(
                view->metricsText().contains(QLatin1String("Bias in two dimensions: violation of translation "
                                                           "invariance 0.000")),
                qPrintable(view->metricsText())); // by construction
            QVERIFY(view->gridPlot()->chart().bar->lower < 0.0);
        }
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
