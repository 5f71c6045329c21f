// SPDX-License-Identifier: GPL-3.0-or-later
// Models over a network, and files that change, in the window: what the strip says, and that Stop stops.
#include <QAction>
#include <QLineEdit>
#include <QLabel>
#include <QPushButton>
#include <QSettings>
#include <QTemporaryDir>
#include <QTest>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/checkpoint_builder.h"
#include "tests/support/range_server.h"
#include "tests/support/own_settings.h"
#include "ui/analysis_controller.h"
#include "ui/dialogs/hub_picker_dialog.h"
#include "ui/main_window.h"
#include "ui/views/position_view.h"
#include "ui/views/tensor_browser_view.h"
#include "ui/widgets/error_banner.h"
#include "ui/widgets/panel.h"
#include "ui/widgets/progress_strip.h"
#include "ui/widgets/workspace.h"

namespace posiscope::ui {
namespace {

constexpr int patience_ms = 30'000; ///< debug builds on busy machines

/// A tiny BERT on a server of this machine, which HF_ENDPOINT names. Its weights are 400 kB, of which the first 32 kB
/// come at once.
struct Hub {
    tests::TemporaryFolder folder, cache;
    tests::RangeServer server;

    Hub()
    {
        tests::TinyBert sizes;
        sizes.positions = 4'000;
        sizes.vocabulary = 2'000;
        tests::CheckpointBuilder(sizes).write_to(folder);
        serve("config.json", 0, 0);
        serve("vocab.txt", 0, 0);
        qputenv("HF_ENDPOINT", QByteArray::fromStdString(server.url()));
        qputenv("XDG_CACHE_HOME", QByteArray::fromStdString(cache.path()));
    }
    ~Hub()
    {
        qunsetenv("HF_ENDPOINT");
        qunsetenv("XDG_CACHE_HOME");
    }
    /// @param slow_bytes  sent every 20 ms in ranges from slow_from on; 0: all at once
    void serve(const std::string& name, std::size_t slow_bytes, std::uint64_t slow_from)
    {
        std::ifstream in(folder.file(name), std::ios::binary);
        tests::ServedFile file{std::string(std::istreambuf_iterator<char>(in), {})};
        file.slow_bytes = slow_bytes;
        file.slow_from = slow_from;
        server.serve("/org/tiny/resolve/main/" + name, file);
    }
};

struct Window {
    MainWindow window;
    AnalysisController* controller = window.controller();

    Window()
    {
        window.resize(1280, 800);
        window.show();
    }
    [[nodiscard]] QString stripText() const
    {
        QStringList parts;
        for (const QLabel* label : window.strip()->findChildren<QLabel*>())
            if (label->isVisible()) parts.append(label->text());
        return parts.join(QLatin1Char('|'));
    }
};

const QString location = QStringLiteral("hf://org/tiny");

} // namespace

class TestRemoteWindow : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        QVERIFY(m_folder.isValid());
        posiscope::test::keep_settings_in(m_folder);
        qunsetenv("HF_HUB_OFFLINE");
        qunsetenv("HF_TOKEN");
    }
    void init() { QSettings().clear(); }

    void a_slow_opening_is_told_and_stopped_and_done_again()
    {
        Hub hub;
        hub.serve("model.safetensors", 40, 0); // the first 32 kB alone take more than fifteen seconds
        Window opened;
        opened.window.openLocation(location);
        QTRY_VERIFY2_WITH_TIMEOUT(opened.stripText().contains(QStringLiteral("Opening hf://org/tiny: ")),
                                  qPrintable(opened.stripText()), patience_ms);
        QVERIFY2(opened.stripText().contains(QStringLiteral("of 32.8\u00A0kB")),
                 qPrintable(opened.stripText()));
        QTRY_VERIFY(opened.window.strip()->cancelButton()->isVisible());
        QTest::mouseClick(opened.window.strip()->cancelButton(), Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(!opened.controller->isBusy(), patience_ms);
        QVERIFY(opened.controller->models().empty());
        QVERIFY(!opened.window.banner()->isError()); // a stop is no failure
        QVERIFY(opened.window.strip()->againButton()->isVisible());

        hub.serve("model.safetensors", 0, 0);
        QTest::mouseClick(opened.window.strip()->againButton(), Qt::LeftButton);
        QTRY_COMPARE_WITH_TIMEOUT(opened.controller->models().size(), std::size_t{1}, patience_ms);
        QCOMPARE(opened.controller->current()->location, location);
        QTRY_VERIFY_WITH_TIMEOUT(opened.controller->session()->maps != nullptr, patience_ms);
        QVERIFY(!opened.window.strip()->againButton()->isVisible());
    }

    void a_slow_probe_is_told_and_stopped_and_the_tensors_are_there()
    {
        Hub hub;
        hub.serve("model.safetensors", 20, 32'768); // the rest would take minutes
        Window opened;
        opened.window.workspace()->panels()[0]->setView("tensor_browser");
        opened.window.openLocation(location);
        QTRY_VERIFY2_WITH_TIMEOUT(opened.stripText().contains(QStringLiteral("Reading over the network: ")),
                                  qPrintable(opened.stripText()), patience_ms);
        QVERIFY(opened.controller->isPictureBusy());
        hub.serve("model.safetensors", 0,
                  0); // what is asked for from now on comes quickly; the probe's request does not
        QTRY_VERIFY(opened.window.strip()->cancelButton()->isVisible());
        QTest::mouseClick(opened.window.strip()->cancelButton(), Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(!opened.controller->isBusy(), patience_ms);
        QVERIFY(!opened.window.banner()->isError());
        QVERIFY(opened.controller->session()->maps == nullptr);

        // What needs no probe is there: the model, its tensors, and of one the numbers.
        Panel* panel = opened.window.workspace()->panels()[0];
        QCOMPARE(panel->state(), Panel::State::done);
        auto* view = qobject_cast<TensorBrowserView*>(panel->view());
        QVERIFY(view != nullptr);
        QVERIFY(view->modelText().contains(QStringLiteral("BERT")));
        view->choose(QStringLiteral("embeddings.LayerNorm.bias"));
        QTRY_VERIFY_WITH_TIMEOUT(view->statistics().has_value(), patience_ms);
    }

    /// What a view reads by itself: the strip tells of it, its button stops it, and does it once more.
    void a_slow_view_is_told_and_stopped_and_done_again()
    {
        Hub hub;
        hub.serve("model.safetensors", 0, 0);
        Window opened;
        Panel* panel = opened.window.workspace()->panels()[0];
        opened.window.workspace()->panels()[3]->setView("metric_table"); // reads no table
        opened.window.openLocation(location);
        QTRY_VERIFY_WITH_TIMEOUT(opened.controller->session()->maps && !opened.controller->isBusy(),
                                 patience_ms);
        QVERIFY(!opened.window.strip()->cancelButton()->isVisible());
        hub.serve("model.safetensors", 20, 32'768); // the rest of the table would take minutes
        panel->setView("position_map");
        QVERIFY(panel->hasWork());
        QVERIFY(!opened.controller->isBusy());
        QTRY_VERIFY2_WITH_TIMEOUT(
            opened.stripText().contains(QStringLiteral("Position map: Reading over the network: ")),
            qPrintable(opened.stripText()), patience_ms);
        QTRY_VERIFY(opened.window.strip()->cancelButton()->isVisible());
        QTest::mouseClick(opened.window.strip()->cancelButton(), Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(!panel->hasWork(), patience_ms);
        QVERIFY(!opened.window.banner()->isError()); // a stop is no failure
        QVERIFY(!opened.window.strip()->cancelButton()->isVisible());
        QVERIFY(opened.window.strip()->againButton()->isVisible());
        auto* view = qobject_cast<PositionView*>(panel->view());
        QVERIFY(view != nullptr);
        QVERIFY2(view->message().startsWith(QStringLiteral("Stopped")), qPrintable(view->message()));

        hub.serve("model.safetensors", 0, 0);
        QTest::mouseClick(opened.window.strip()->againButton(), Qt::LeftButton);
        QVERIFY(panel->hasWork());
        QVERIFY(!opened.window.strip()->againButton()->isVisible());
        // t-SNE of 4000 vectors takes long: it is told as well, and stopping it keeps the map as far as it came.
        QTRY_VERIFY2_WITH_TIMEOUT(opened.stripText().contains(QStringLiteral("Position map: t-SNE")),
                                  qPrintable(opened.stripText()), patience_ms);
        QTRY_VERIFY_WITH_TIMEOUT(view->message().isEmpty(), patience_ms);
        QTest::mouseClick(opened.window.strip()->cancelButton(), Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(!panel->hasWork(), patience_ms);
        QVERIFY(view->canExport());
        QVERIFY(!opened.window.strip()->againButton()->isVisible());
    }

    void the_picker_is_in_the_menu_and_its_failures_in_the_banner()
    {
        Hub hub;
        hub.serve("model.safetensors", 0, 0);
        Window opened;
        QAction* action = nullptr;
        for (QAction* one : opened.window.findChildren<QAction*>())
            if (QString(one->text()).remove(u'&').startsWith(QStringLiteral("Open from the hub cache")))
                action = one;
        QVERIFY(action != nullptr);
        const auto type = [&](const QString& what) {
            action->trigger();
            auto* dialog = opened.window.findChild<HubPickerDialog*>();
            QVERIFY(dialog != nullptr);
            QTest::keyClicks(dialog->address(), what);
            QTest::keyClick(dialog->address(), Qt::Key_Return);
            QTRY_VERIFY_WITH_TIMEOUT(opened.window.findChild<HubPickerDialog*>() == nullptr, patience_ms);
        };
        type(QStringLiteral("org/absent"));
        QTRY_VERIFY_WITH_TIMEOUT(opened.window.banner()->isError(), patience_ms);
        QVERIFY2(opened.window.banner()->sentence().contains(QStringLiteral("hf://org/absent")),
                 qPrintable(opened.window.banner()->sentence()));
        type(QStringLiteral("org/tiny"));
        QTRY_COMPARE_WITH_TIMEOUT(opened.controller->models().size(), std::size_t{1}, patience_ms);
        QCOMPARE(opened.controller->current()->location, location);
    }

    void a_file_replaced_while_open_is_an_error_and_no_crash()
    {
        const tests::TemporaryFolder folder;
        tests::TinyBert sizes;
        sizes.layers = 2;
        tests::CheckpointBuilder(sizes).write_to(folder);
        Window opened;
        opened.window.openLocation(QString::fromStdString(folder.path()));
        QTRY_VERIFY_WITH_TIMEOUT(
            opened.controller->session()->maps != nullptr && !opened.controller->isBusy(), patience_ms);
        const auto shown = opened.controller->session()->maps;
        // Cut short in place, as by a program that writes it anew.
        std::filesystem::resize_file(folder.file("model.safetensors"), 3'000);
        AnalysisSettings settings = opened.controller->settings();
        settings.probe.seed = 5;
        opened.controller->change(settings, SettingField::seed);
        QTRY_VERIFY_WITH_TIMEOUT(opened.window.banner()->isError(), patience_ms);
        QVERIFY2(opened.window.banner()->sentence().contains(QStringLiteral("open it again")),
                 qPrintable(opened.window.banner()->sentence()));
        QCOMPARE(opened.controller->session()->maps, shown); // the old picture stays
        // Opened again, whole: all is well.
        tests::CheckpointBuilder(sizes).write_to(folder);
        opened.window.openLocation(QString::fromStdString(folder.path()));
        QTRY_VERIFY_WITH_TIMEOUT(opened.controller->session()->maps != shown && !opened.controller->isBusy(),
                                 patience_ms);
        QVERIFY(!opened.window.banner()->isError());
    }

private:
    QTemporaryDir m_folder;
};

} // namespace posiscope::ui

QTEST_MAIN(posiscope::ui::TestRemoteWindow)
#include "tst_remote_window.moc"
