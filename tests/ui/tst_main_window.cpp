// SPDX-License-Identifier: GPL-3.0-or-later
#include <QAccessible>
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QDir>
#include <QDropEvent>
#include <QFile>
#include <QFrame>
#include <QLineEdit>
#include <QListView>
#include <QMenu>
#include <QMimeData>
#include <QPushButton>
#include <QSettings>
#include <QSlider>
#include <QSpinBox>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>
#include <QUndoStack>
#include <QUrl>

#include <algorithm>
#include <cmath>
#include <memory>

#include "tests/support/own_settings.h"
#include "ui/analysis_controller.h"
#include "ui/convert.h"
#include "ui/main_window.h"
#include "ui/models/metric_table_model.h"
#include "ui/plot/head_grid.h"
#include "ui/plot/heatmap_plot.h"
#include "ui/plot/profile_plot.h"
#include "ui/shared_cursor.h"
#include "ui/views/attention_heatmap_view.h"
#include "ui/views/metric_table_view.h"
#include "ui/views/offset_profile_view.h"
#include "ui/widgets/error_banner.h"
#include "ui/widgets/model_list_panel.h"
#include "ui/widgets/panel.h"
#include "ui/widgets/probe_panel.h"
#include "ui/widgets/progress_strip.h"
#include "ui/widgets/segmented_buttons.h"
#include "ui/widgets/workspace.h"

using namespace posiscope;
using ui::MainWindow;
using ui::Panel;

namespace {

const QString bert_folder = QStringLiteral(POSISCOPE_TEST_DATA "/families/bert");
const QString sample = QStringLiteral("sample:minilm-l6-first-layer");
constexpr int patience_ms = 30'000; ///< debug builds on busy machines

QAction* action_named(const MainWindow& window, const QString& text)
{
    for (QAction* action : window.findChildren<QAction*>())
        if (QString(action->text()).remove(u'&') == text) return action;
    return nullptr;
}

/// A window as a person has it: shown, its settings in a folder of the test.
struct Opened {
    MainWindow window;
    ui::AnalysisController* controller = window.controller();
    ui::ProbePanel* probe_panel = window.probePanel();

    explicit Opened(const QString& location = bert_folder)
    {
        window.resize(1280, 800);
        window.show();
        if (!location.isEmpty()) window.openLocation(location);
    }

    [[nodiscard]] const core::Session& session() const { return *controller->session(); }
    [[nodiscard]] bool isDone() const
    {
        return session().maps != nullptr && session().metrics != nullptr &&
               !session().metrics->rows.empty() && !controller->isBusy();
    }
    template <class View>
    [[nodiscard]] View* view() const
    {
        return window.findChild<View*>();
    }
    [[nodiscard]] ui::HeatmapPlot* heatmap() const { return view<ui::AttentionHeatmapView>()->plot(); }
};

void hover(QWidget* plot, const QPointF& where)
{
    // The plot's canvas is a child that tracks the mouse.
    QWidget* target = plot->childAt(where.toPoint());
    if (target == nullptr) target = plot;
    QTest::mouseMove(target, target->mapFrom(plot, where.toPoint()));
}

} // namespace

class TestMainWindow : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        QVERIFY(m_folder.isValid());
        posiscope::test::keep_settings_in(m_folder);
    }

    void init() { QSettings().clear(); }

    void starts_empty_and_says_what_to_do()
    {
        Opened opened{QString()};
        for (const Panel* panel : opened.window.workspace()->panels())
            QCOMPARE(panel->state(), Panel::State::empty);
        QVERIFY(!opened.probe_panel->isEnabled());
        QVERIFY(!action_named(opened.window, QStringLiteral("Next head"))->isEnabled());
    }

    void opening_a_folder_fills_all_panels()
    {
        Opened opened;
        QTRY_VERIFY_WITH_TIMEOUT(opened.isDone(), patience_ms);
        for (const Panel* panel : opened.window.workspace()->panels()) {
            QCOMPARE(panel->state(), Panel::State::done);
            // "L 64" of a probe, "64 x 32" of the table of positions
            QVERIFY2(panel->contextLine().contains(QStringLiteral("64")), qPrintable(panel->contextLine()));
        }
        QCOMPARE(opened.heatmap()->map().length, std::size_t{64}); // the table of this model ends there
        QCOMPARE(opened.view<ui::OffsetProfileView>()->plot()->profile().mean.size(), std::size_t{127});
        const auto* model = opened.view<ui::MetricTableView>()->model();
        QCOMPARE(model->rowCount(), 6); // three quantities, with and without the first position
        QVERIFY(
            model->index(0, ui::MetricTableModel::first_metric).data().toString().contains(QChar(0x00b1)));
        QVERIFY(opened.window.strip()->probeText().contains(QStringLiteral("closed form")));
        QVERIFY(opened.window.windowTitle().startsWith(QStringLiteral("bert")));
        QCOMPARE(QSettings().value(QStringLiteral("recent")).toStringList(), QStringList{bert_folder});
    }

    void a_length_that_does_not_fit_the_model_is_told()
    {
        Opened opened;
        QTRY_VERIFY_WITH_TIMEOUT(opened.session().maps != nullptr, patience_ms);
        QCOMPARE(opened.controller->settings().probe.length, std::int64_t{64});
        QVERIFY(!opened.window.banner()->isError());
        QVERIFY(opened.window.banner()->sentence().contains(QStringLiteral("64")));
        opened.probe_panel->lengthBox()->setValue(32); // what was told is a thing of the past
        QVERIFY(opened.window.banner()->sentence().isEmpty());
    }

    void a_drag_of_the_length_slider_is_one_step_of_undo()
    {
        Opened opened;
        QTRY_VERIFY_WITH_TIMEOUT(opened.isDone(), patience_ms);
        for (const int length : {60, 50, 41, 40}) opened.probe_panel->lengthSlider()->setValue(length);
        QTRY_COMPARE_WITH_TIMEOUT(opened.session().probe->length, 40, patience_ms);
        QCOMPARE(opened.probe_panel->lengthBox()->value(), 40);
        QCOMPARE(opened.heatmap()->map().length, std::size_t{40});

        action_named(opened.window, QStringLiteral("Undo: length"))->trigger();
        QTRY_COMPARE_WITH_TIMEOUT(opened.session().probe->length, 64, patience_ms);
        QCOMPARE(opened.probe_panel->lengthSlider()->value(), 64);
        action_named(opened.window, QStringLiteral("Redo: length"))->trigger();
        QTRY_COMPARE_WITH_TIMEOUT(opened.session().probe->length, 40, patience_ms);
    }

    void quantity_head_and_positions_do_not_run_the_probe_again()
    {
        Opened opened;
        QTRY_VERIFY_WITH_TIMEOUT(opened.isDone(), patience_ms);
        const auto probe = opened.session().probe;
        QTest::mouseClick(opened.probe_panel->quantityButtons()->button(2), Qt::LeftButton);
        QTRY_COMPARE_WITH_TIMEOUT(opened.session().display.quantity, core::Quantity::probabilities,
                                  patience_ms);
        opened.probe_panel->headBox()->setCurrentIndex(2);
        QTRY_COMPARE_WITH_TIMEOUT(opened.session().display.head, 1, patience_ms);
        opened.probe_panel->firstPositionBox()->click();
        QTRY_COMPARE_WITH_TIMEOUT(opened.session().display.positions, core::PositionChoice::without_first,
                                  patience_ms);
        QCOMPARE(opened.session().probe, probe);
        QCOMPARE(opened.heatmap()->map().length, std::size_t{63});
        QCOMPARE(opened.heatmap()->map().first_position, std::size_t{1});

        // What is drawn is what core says.
        const core::PositionMap map =
            core::quantity_map(*probe, core::Quantity::probabilities, 1, core::PositionChoice::without_first);
        QCOMPARE(opened.heatmap()->valueAt(5, 9), std::optional(map(4, 8)));
        QTRY_VERIFY_WITH_TIMEOUT(opened.isDone(), patience_ms);
        QCOMPARE(opened.view<ui::MetricTableView>()->model()->rowCount(), 12); // the mean and head 1
    }

    void unknown_words_are_a_sentence_and_the_picture_stays()
    {
        Opened opened;
        QTRY_VERIFY_WITH_TIMEOUT(opened.isDone(), patience_ms);
        const auto probe = opened.session().probe;
        opened.probe_panel->wordsKindBox()->setCurrentIndex(1);
        QTest::keyClicks(opened.probe_panel->wordsEdit(), QStringLiteral("povisu, nosuchword"));
        QTest::keyClick(opened.probe_panel->wordsEdit(), Qt::Key_Return);
        QTRY_VERIFY_WITH_TIMEOUT(opened.window.banner()->isVisible(), patience_ms);
        QVERIFY(opened.window.banner()->isError());
        QVERIFY(opened.window.banner()->sentence().contains(QStringLiteral("nosuchword")));
        QCOMPARE(opened.session().probe, probe);
        for (const Panel* panel : opened.window.workspace()->panels())
            QCOMPARE(panel->state(), Panel::State::done);

        opened.probe_panel->wordsEdit()->setText(QStringLiteral("povisu, be"));
        QTest::keyClick(opened.probe_panel->wordsEdit(), Qt::Key_Return);
        QTRY_COMPARE_WITH_TIMEOUT(opened.session().probe->word_ids.size(), std::size_t{2}, patience_ms);
        QVERIFY(!opened.window.banner()->isVisible());
        QVERIFY(opened.window.workspace()->panels().front()->contextLine().contains(
            QStringLiteral("povisu, be")));
    }

    void an_opened_choice_of_words_waits_for_its_words()
    {
        Opened opened;
        QTRY_VERIFY_WITH_TIMEOUT(opened.isDone(), patience_ms);
        opened.probe_panel->wordsKindBox()->setCurrentIndex(1);
        opened.probe_panel->seedBox()->setValue(3);
        QCOMPARE(opened.probe_panel->wordsKindBox()->currentIndex(), 1);
        QCOMPARE(opened.controller->settings().probe.words.kind, core::WordSelection::Kind::sampled);
    }

    void the_padding_token_as_the_word_is_refused()
    {
        Opened opened;
        QTRY_VERIFY_WITH_TIMEOUT(opened.isDone(), patience_ms);
        const auto probe = opened.session().probe;
        opened.probe_panel->wordsKindBox()->setCurrentIndex(2);
        QTest::keyClicks(opened.probe_panel->wordsEdit(), QStringLiteral("0"));
        QTest::keyClick(opened.probe_panel->wordsEdit(), Qt::Key_Return);
        QTRY_VERIFY_WITH_TIMEOUT(opened.window.banner()->isVisible(), patience_ms);
        QVERIFY2(opened.window.banner()->sentence().contains(QStringLiteral("padding"), Qt::CaseInsensitive),
                 qPrintable(opened.window.banner()->sentence()));
        QCOMPARE(opened.session().probe, probe);
    }

    void a_length_over_the_table_names_the_limit()
    {
        Opened opened;
        QTRY_VERIFY_WITH_TIMEOUT(opened.isDone(), patience_ms);
        const auto probe = opened.session().probe;
        opened.probe_panel->lengthBox()->setValue(65);
        QTRY_VERIFY_WITH_TIMEOUT(opened.window.banner()->isError(), patience_ms);
        QVERIFY(opened.window.banner()->sentence().contains(QStringLiteral("64")));
        QCOMPARE(opened.session().probe, probe);
        opened.probe_panel->lengthBox()->setValue(32);
        QTRY_COMPARE_WITH_TIMEOUT(opened.session().probe->length, 32, patience_ms);
        QVERIFY(!opened.window.banner()->isVisible());
    }

    void a_missing_file_leaves_model_and_picture()
    {
        Opened opened;
        QTRY_VERIFY_WITH_TIMEOUT(opened.isDone(), patience_ms);
        const auto session = opened.controller->session();
        const QString missing = m_folder.filePath(QStringLiteral("missing.safetensors"));
        opened.window.openLocation(missing);
        QTRY_VERIFY_WITH_TIMEOUT(opened.window.banner()->isError(), patience_ms);
        QVERIFY(opened.window.banner()->sentence().contains(QStringLiteral("missing.safetensors")));
        QVERIFY(opened.window.banner()->sentence().contains(QStringLiteral("still there")));
        QCOMPARE(opened.controller->session()->probe, session->probe);
        QCOMPARE(opened.controller->models().size(), std::size_t{1});
        auto* copy = opened.window.banner()->findChild<QPushButton*>();
        QTest::mouseClick(copy, Qt::LeftButton);
        QVERIFY(QApplication::clipboard()->text().contains(QStringLiteral("not_found")));
    }

    /// The file is there; what it lacks is said, and that needs no advice to look for the file.
    void a_file_that_lacks_tensors_is_not_said_to_be_gone()
    {
        Opened opened(QStringLiteral("sample:mpnet-base-positions"));
        QTRY_VERIFY_WITH_TIMEOUT(opened.window.banner()->isError(), patience_ms);
        QVERIFY(opened.window.banner()->fullText().contains(QStringLiteral("not_found")));
        QVERIFY2(!opened.window.banner()->sentence().contains(QStringLiteral("still there")),
                 qPrintable(opened.window.banner()->sentence()));
        // So it is with a folder that is there and holds no weights, and with one that is not local.
        const QTemporaryDir empty;
        QVERIFY(ui::advice_for(core::ErrorCode::not_found, empty.path()).isEmpty());
        QVERIFY(ui::advice_for(core::ErrorCode::not_found, QStringLiteral("hf://org/tiny")).isEmpty());
        QVERIFY(
            !ui::advice_for(core::ErrorCode::not_found, empty.filePath(QStringLiteral("none"))).isEmpty());
    }

    void a_failure_without_a_model_stands_in_the_panels()
    {
        Opened opened(m_folder.filePath(QStringLiteral("nothing")));
        QTRY_COMPARE_WITH_TIMEOUT(opened.window.workspace()->panels().front()->state(), Panel::State::cannot,
                                  patience_ms);
    }

    void dropping_a_folder_opens_it()
    {
        Opened opened{QString()};
        QMimeData mime;
        mime.setUrls({QUrl::fromLocalFile(bert_folder)});
        QDragEnterEvent enter(QPoint(10, 10), Qt::CopyAction, &mime, Qt::LeftButton, Qt::NoModifier);
        QCoreApplication::sendEvent(&opened.window, &enter);
        QVERIFY(enter.isAccepted());
        QDropEvent drop(QPointF(10, 10), Qt::CopyAction, &mime, Qt::LeftButton, Qt::NoModifier);
        QCoreApplication::sendEvent(&opened.window, &drop);
        QTRY_VERIFY_WITH_TIMEOUT(opened.session().maps != nullptr, patience_ms);
        QCOMPARE(opened.controller->current()->location, bert_folder);
    }

    void a_cell_under_the_cursor_shows_everywhere()
    {
        Opened opened;
        QTRY_VERIFY_WITH_TIMEOUT(opened.isDone(), patience_ms);
        QTRY_VERIFY(!opened.heatmap()->cellRect(17, 12).isNull());
        hover(opened.heatmap(), opened.heatmap()->cellRect(17, 12).center());
        QTRY_COMPARE(opened.heatmap()->markedCell(), std::optional(QPoint(12, 17)));
        QCOMPARE(opened.view<ui::OffsetProfileView>()->plot()->markedOffset(), std::optional(-5));
        const QString place = opened.window.strip()->placeText();
        QVERIFY2(place.startsWith(QStringLiteral("i = 17, j = 12, offset \u22125, ")), qPrintable(place));
        QVERIFY2(place.contains(QChar(0x00b1)), qPrintable(place));

        // A click pins: the mark stays when the mouse goes on, until Esc.
        Q_EMIT opened.heatmap()->cellClicked(17, 12);
        hover(opened.heatmap(), opened.heatmap()->cellRect(30, 30).center());
        QCOMPARE(opened.heatmap()->markedCell(), std::optional(QPoint(12, 17)));
        QVERIFY(opened.window.cursor()->isPinned());
        QTest::keyClick(&opened.window, Qt::Key_Escape);
        QVERIFY(!opened.window.cursor()->isPinned());
    }

    void an_offset_under_the_cursor_is_read_out()
    {
        Opened opened;
        QTRY_VERIFY_WITH_TIMEOUT(opened.isDone(), patience_ms);
        Q_EMIT opened.view<ui::OffsetProfileView>()->plot()->offsetHovered(3);
        QVERIFY(opened.window.strip()->placeText().startsWith(QStringLiteral("offset +3, mean ")));
        QVERIFY(!opened.heatmap()->markedCell().has_value());
        Q_EMIT opened.view<ui::OffsetProfileView>()->plot()->offsetLeft();
        QVERIFY(opened.window.strip()->placeText().isEmpty());
    }

    void zooming_positions_zooms_the_profile()
    {
        Opened opened;
        QTRY_VERIFY_WITH_TIMEOUT(opened.isDone(), patience_ms);
        Q_EMIT opened.heatmap()->positionRangeChanged(10, 30);
        QCOMPARE(opened.view<ui::OffsetProfileView>()->plot()->firstShown(), -20);
        QCOMPARE(opened.view<ui::OffsetProfileView>()->plot()->lastShown(), 20);
    }

    void terms_and_spread_are_shown()
    {
        Opened opened;
        QTRY_VERIFY_WITH_TIMEOUT(opened.isDone(), patience_ms);
        auto* view = opened.view<ui::AttentionHeatmapView>();
        view->shownBox()->setCurrentIndex(view->shownBox()->findData(QStringLiteral("spread")));
        QCOMPARE(opened.heatmap()->valueAt(3, 4), std::optional(opened.session().maps->spread(3, 4)));

        view->shownBox()->setCurrentIndex(view->shownBox()->findData(QStringLiteral("position_position")));
        QTRY_VERIFY_WITH_TIMEOUT(!opened.session().maps->terms.empty(), patience_ms);
        const auto& terms = opened.session().maps->terms;
        const auto term = std::find_if(terms.begin(), terms.end(), [](const core::TermMap& one) {
            return one.id == "position_position";
        });
        QVERIFY(term != terms.end());
        QTRY_COMPARE(opened.heatmap()->valueAt(3, 4), std::optional(term->map(3, 4)));
        // The terms sum to the logits.
        double sum = 0.0;
        for (const core::TermMap& one : terms) sum += one.map(3, 4);
        const core::PositionMap logits = core::quantity_map(*opened.session().probe, core::Quantity::logits,
                                                            core::mean_of_heads, core::PositionChoice::all);
        QVERIFY(std::abs(sum - logits(3, 4)) < 1e-4 * std::max(1.0, std::abs(sum)));
        QVERIFY(view->contextLine().startsWith(QStringLiteral("term: position")));
    }

    void heads_side_by_side_pick_one()
    {
        Opened opened;
        QTRY_VERIFY_WITH_TIMEOUT(opened.isDone(), patience_ms);
        auto* view = opened.view<ui::AttentionHeatmapView>();
        QTest::mouseClick(view->headsButton(), Qt::LeftButton);
        QTRY_COMPARE_WITH_TIMEOUT(view->headGrid()->headCount(), 4, patience_ms);
        QTRY_VERIFY(view->headGrid()->isVisible());
        QVERIFY(!view->canExport());
        QTest::mouseClick(view->headGrid(), Qt::LeftButton, Qt::NoModifier,
                          view->headGrid()->headRect(2).center());
        QTRY_COMPARE_WITH_TIMEOUT(opened.session().display.head, 2, patience_ms);
        QVERIFY(!view->headsButton()->isChecked());
        QTRY_VERIFY(opened.heatmap()->isVisible());
        QVERIFY(view->canExport());
    }

    void keys_step_through_heads_and_quantities()
    {
        Opened opened;
        QTRY_VERIFY_WITH_TIMEOUT(opened.isDone(), patience_ms);
        QTest::keyClick(&opened.window, Qt::Key_Period);
        QCOMPARE(opened.controller->settings().display.head, 0);
        QTest::keyClick(&opened.window, Qt::Key_Comma);
        QTest::keyClick(&opened.window, Qt::Key_Comma);
        QCOMPARE(opened.controller->settings().display.head, 3); // round from the mean to the last
        QTest::keyClick(&opened.window, Qt::Key_M);
        QCOMPARE(opened.controller->settings().display.head, core::mean_of_heads);
        QTest::keyClick(&opened.window, Qt::Key_L);
        QCOMPARE(opened.controller->settings().display.quantity, core::Quantity::probabilities);
        // In a field for words the same keys are letters.
        opened.probe_panel->wordsKindBox()->setCurrentIndex(1);
        opened.probe_panel->wordsEdit()->setFocus();
        QTest::keyClicks(opened.probe_panel->wordsEdit(), QStringLiteral("m,l"));
        QCOMPARE(opened.probe_panel->wordsEdit()->text(), QStringLiteral("m,l"));
        QCOMPARE(opened.controller->settings().display.quantity, core::Quantity::probabilities);
    }

    void a_panel_fills_the_workspace_and_goes_back()
    {
        Opened opened;
        QTRY_VERIFY_WITH_TIMEOUT(opened.isDone(), patience_ms);
        const auto& panels = opened.window.workspace()->panels();
        QTest::keyClick(panels[1], Qt::Key_Return);
        QVERIFY(panels[1]->isVisible());
        QVERIFY(!panels[0]->isVisible());
        QVERIFY(!panels[2]->isVisible());
        QTest::keyClick(&opened.window, Qt::Key_Escape);
        for (const Panel* panel : panels) QVERIFY(panel->isVisible());
        action_named(opened.window, QStringLiteral("Single"))->trigger();
        QVERIFY(panels[0]->isVisible());
        QVERIFY(!panels[1]->isVisible());
    }

    void a_panel_changes_its_view()
    {
        Opened opened;
        QTRY_VERIFY_WITH_TIMEOUT(opened.isDone(), patience_ms);
        Panel* panel = opened.window.workspace()->panels()[1];
        panel->setView("attention_heatmap");
        QCOMPARE(panel->state(), Panel::State::done);
        auto* view = qobject_cast<ui::AttentionHeatmapView*>(panel->view());
        QVERIFY(view != nullptr);
        QCOMPARE(view->plot()->map().length, std::size_t{64});
        panel->setView("no such view");
        QCOMPARE(panel->viewId(), std::string_view("attention_heatmap"));
    }

    void several_models_share_the_table()
    {
        Opened opened;
        QTRY_VERIFY_WITH_TIMEOUT(opened.isDone(), patience_ms);
        opened.window.openLocation(sample);
        QTRY_COMPARE_WITH_TIMEOUT(opened.controller->models().size(), std::size_t{2}, patience_ms);
        QTRY_COMPARE_WITH_TIMEOUT(opened.view<ui::MetricTableView>()->model()->rowCount(), 12, patience_ms);
        QCOMPARE(opened.window.modelList()->list()->model()->rowCount(), 2);
        QCOMPARE(opened.window.modelList()->list()->currentIndex().row(), 1);

        // A length that the other model cannot have: it leaves the table, and the notes say why.
        opened.probe_panel->lengthBox()->setValue(100);
        QTRY_COMPARE_WITH_TIMEOUT(opened.view<ui::MetricTableView>()->model()->rowCount(), 6, patience_ms);
        QTRY_VERIFY_WITH_TIMEOUT(
            opened.window.strip()->warnings().join(u' ').contains(QStringLiteral("bert is not in")),
            patience_ms);

        opened.window.modelList()->list()->setCurrentIndex(
            opened.window.modelList()->list()->model()->index(0, 0));
        QTRY_COMPARE_WITH_TIMEOUT(opened.controller->current()->location, bert_folder, patience_ms);
        QTRY_VERIFY_WITH_TIMEOUT(opened.session().model == opened.controller->current()->model, patience_ms);
        action_named(opened.window, QStringLiteral("Close model"))->trigger();
        QCOMPARE(opened.controller->models().size(), std::size_t{1});
        QTRY_VERIFY_WITH_TIMEOUT(opened.session().model == opened.controller->current()->model, patience_ms);
        action_named(opened.window, QStringLiteral("Close model"))->trigger();
        QVERIFY(opened.session().model == nullptr);
        QCOMPARE(opened.window.workspace()->panels().front()->state(), Panel::State::empty);
    }

    void stop_keeps_the_picture_and_offers_to_go_on()
    {
        Opened opened(sample);
        QTRY_VERIFY_WITH_TIMEOUT(opened.session().maps != nullptr, patience_ms);
        opened.probe_panel->seedBox()->setValue(7);
        QVERIFY(opened.controller->isPictureBusy());
        opened.controller->cancel();
        QTRY_VERIFY_WITH_TIMEOUT(!opened.controller->isBusy(), patience_ms);
        QVERIFY(opened.controller->isStopped());
        QVERIFY(opened.session().maps != nullptr);
        QCOMPARE(opened.session().probe->options.seed, std::uint64_t{0});
        QVERIFY(opened.window.strip()->againButton()->isVisible());
        QTest::mouseClick(opened.window.strip()->againButton(), Qt::LeftButton);
        QTRY_COMPARE_WITH_TIMEOUT(opened.session().probe->options.seed, std::uint64_t{7}, patience_ms);
        QVERIFY(!opened.window.strip()->againButton()->isVisible());
    }

    void the_arrangement_is_kept()
    {
        {
            Opened opened;
            QTRY_VERIFY_WITH_TIMEOUT(opened.isDone(), patience_ms);
            opened.window.workspace()->panels()[2]->setView("offset_profile");
            auto* view = opened.view<ui::AttentionHeatmapView>();
            view->colorsBox()->setCurrentIndex(view->colorsBox()->findData(QStringLiteral("magma")));
            action_named(opened.window, QStringLiteral("Single"))->trigger();
            opened.window.close();
        }
        Opened again{QString()};
        QCOMPARE(again.window.workspace()->layoutId(), std::string_view("single"));
        QCOMPARE(again.window.workspace()->panels()[2]->viewId(), std::string_view("offset_profile"));
        QCOMPARE(again.view<ui::AttentionHeatmapView>()->colorsBox()->currentData().toString(),
                 QStringLiteral("magma"));
    }

    void dark_and_light_can_be_forced()
    {
        Opened opened;
        action_named(opened.window, QStringLiteral("Dark"))->trigger();
        QVERIFY(ui::is_dark(QApplication::palette()));
        QCOMPARE(QSettings().value(QStringLiteral("theme")).toString(), QStringLiteral("dark"));
        action_named(opened.window, QStringLiteral("Light"))->trigger();
        QVERIFY(!ui::is_dark(QApplication::palette()));
        action_named(opened.window, QStringLiteral("Follow the desktop"))->trigger();
    }

    void everything_that_takes_the_focus_has_a_name()
    {
        Opened opened;
        QTRY_VERIFY_WITH_TIMEOUT(opened.isDone(), patience_ms);
        int counted = 0;
        for (QWidget* widget : opened.window.findChildren<QWidget*>()) {
            if (!widget->isVisible() || (widget->focusPolicy() & Qt::TabFocus) == 0) continue;
            if (widget->focusProxy() != nullptr) continue;
            QAccessibleInterface* accessible = QAccessible::queryAccessibleInterface(widget);
            QVERIFY(accessible != nullptr);
            ++counted;
            QVERIFY2(!accessible->text(QAccessible::Name).isEmpty(),
                     qPrintable(QStringLiteral("%1 in %2")
                                    .arg(QLatin1String(widget->metaObject()->className()),
                                         QLatin1String(widget->parentWidget()->metaObject()->className()))));
        }
        QVERIFY(counted > 20);
    }

    void the_first_sample_is_the_embedded_one()
    {
        Opened opened{QString()};
        opened.window.openFirstSample();
        QVERIFY(opened.window.welcome()->isVisible());
        QTRY_VERIFY_WITH_TIMEOUT(opened.session().maps != nullptr, patience_ms);
        QCOMPARE(opened.controller->current()->location, sample);
        QTest::mouseClick(opened.window.welcome()->findChild<QToolButton*>(), Qt::LeftButton);
        QVERIFY(!opened.window.welcome()->isVisible());
    }

    void a_picture_of_the_window_can_be_taken()
    {
        Opened opened;
        QTRY_VERIFY_WITH_TIMEOUT(opened.isDone(), patience_ms);
        const QImage picture = opened.window.grab().toImage();
        QCOMPARE(picture.size(), opened.window.size() * picture.devicePixelRatio());
        // The colour of a cell on screen is that of the scale.
        const QRectF cell = opened.heatmap()->cellRect(20, 20);
        const QPoint where = opened.heatmap()->mapTo(&opened.window, cell.center().toPoint());
        const QRgb expected = opened.heatmap()->colorScale().color(*opened.heatmap()->valueAt(20, 20));
        QCOMPARE(picture.pixelColor(where * picture.devicePixelRatio()).rgb(), expected);
    }

private:
    QTemporaryDir m_folder;
};

QTEST_MAIN(TestMainWindow)
#include "tst_main_window.moc"
