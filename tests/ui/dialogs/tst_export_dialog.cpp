// SPDX-License-Identifier: GPL-3.0-or-later
#include <QClipboard>
#include <QComboBox>
#include <QCoreApplication>
#include <QFile>
#include <QGuiApplication>
#include <QImage>
#include <QMimeData>
#include <QPushButton>
#include <QSettings>
#include <QTemporaryDir>
#include <QTest>

#include <future>
#include <thread>

#include <nlohmann/json.hpp>

#include "tests/support/plot_maps.h"
#include "ui/dialogs/export_dialog.h"
#include "ui/dialogs/figure_preview.h"

using namespace posiscope::ui;

namespace {

FigureSpec board_spec()
{
    FigureSpec spec;
    HeatmapContent content;
    content.map = posiscope::test::corner_board(5);
    content.scale = make_color_scale(content.map, ColorMapId::viridis, ScaleKind::linear);
    content.quantity_label = QStringLiteral("attention logit");
    spec.content = content;
    spec.title = QStringLiteral("Title");
    return spec;
}

} // namespace

class TestExportDialog : public QObject {
    Q_OBJECT

    QTemporaryDir m_settings_folder;

private Q_SLOTS:
    void initTestCase()
    {
        QCoreApplication::setOrganizationName(QStringLiteral("PosiscopeTest"));
        QCoreApplication::setApplicationName(QStringLiteral("export_dialog"));
        QSettings::setDefaultFormat(QSettings::IniFormat);
        QSettings::setPath(QSettings::IniFormat, QSettings::UserScope, m_settings_folder.path());
    }

    void init() { QSettings().clear(); }

    void options_survive_the_controls()
    {
        ExportDialog dialog(board_spec());
        FigureOptions options;
        options.width_mm = 120.5;
        options.height_mm = 80.0;
        options.font_family = dialog.options().font_family;
        options.font_pt = 9.5;
        options.color_map = ColorMapId::magma;
        options.title = true;
        options.letter = QStringLiteral("b");
        options.dpi = 600;
        dialog.setOptions(options);
        QCOMPARE(dialog.options(), options);
        dialog.setFormat(FigureFormat::svg);
        QCOMPARE(dialog.format(), FigureFormat::svg);
    }

    void a_preset_sets_the_sizes()
    {
        ExportDialog dialog(board_spec());
        auto* presets = dialog.findChildren<QComboBox*>().first();
        for (std::size_t n = 0; n < figure_presets().size(); ++n) {
            presets->setCurrentIndex(static_cast<int>(n) + 1);
            const FigurePreset& preset = figure_presets()[n];
            QVERIFY(std::abs(dialog.options().width_mm - preset.width_mm) < 0.06);
            QVERIFY(std::abs(dialog.options().height_mm - preset.height_mm) < 0.06);
            QCOMPARE(dialog.options().font_pt, preset.font_pt);
            QCOMPARE(presets->currentIndex(), static_cast<int>(n) + 1);
        }
    }

    void preview_has_the_proportions_of_the_page()
    {
        ExportDialog dialog(board_spec());
        FigureOptions options;
        options.width_mm = 100.0;
        options.height_mm = 50.0;
        dialog.setOptions(options);
        dialog.show();
        QVERIFY(QTest::qWaitForWindowExposed(&dialog));
        auto* preview = dialog.findChild<FigurePreview*>();
        const QRect page = preview->pageRect();
        QVERIFY(std::abs(page.width() - 2 * page.height()) <= 2);
        QVERIFY(preview->rect().contains(page));
        QCOMPARE(preview->grab().toImage().pixel(page.topLeft() + QPoint(2, 2)), QColor(Qt::white).rgb());
    }

    void saving_remembers_the_choice_for_next_time()
    {
        const QTemporaryDir folder;
        FigureOptions chosen;
        {
            ExportDialog dialog(board_spec());
            chosen = dialog.options();
            chosen.width_mm = 99.0;
            chosen.letter = QStringLiteral("c");
            chosen.color_map = ColorMapId::cividis;
            dialog.setOptions(chosen);
            dialog.setFormat(FigureFormat::png);
            dialog.saveTo(folder.filePath(QStringLiteral("x.png")));
            QCOMPARE(dialog.result(), static_cast<int>(QDialog::Accepted));
        }
        QVERIFY(!QImage(folder.filePath(QStringLiteral("x.png"))).isNull());
        ExportDialog again(board_spec());
        QCOMPARE(again.options(), chosen);
        QCOMPARE(again.format(), FigureFormat::png);
    }

    void a_failure_is_told_inside_and_the_dialog_stays()
    {
        const QTemporaryDir folder;
        ExportDialog dialog(board_spec());
        dialog.show();
        dialog.saveTo(folder.filePath(QStringLiteral("no/such/x.pdf")));
        QVERIFY(dialog.bannerText().contains(QStringLiteral("x.pdf")));
        QVERIFY(dialog.bannerText().contains(QStringLiteral("still there"))); // the folder is not
        QVERIFY(dialog.isVisible());
        FigureOptions options = dialog.options();
        options.width_mm = 100.0;
        dialog.setOptions(options);
        QVERIFY(dialog.bannerText().isEmpty());
    }

    void copy_puts_three_formats_on_the_clipboard()
    {
        ExportDialog dialog(board_spec());
        dialog.copy();
        const QMimeData* copied = QGuiApplication::clipboard()->mimeData();
        QVERIFY(copied->hasImage());
        QVERIFY(copied->data(QStringLiteral("image/svg+xml")).startsWith("<?xml"));
        QVERIFY(copied->data(QStringLiteral("application/pdf")).startsWith("%PDF"));
        QVERIFY(!dialog.bannerText().isEmpty());
    }

    /// Tensors may take long to read: that is done in the background, and what is asked for meanwhile waits for it.
    void the_record_is_made_in_the_background_before_anything_is_written()
    {
        std::promise<void> go;
        std::promise<std::thread::id> where;
        FigureSpec spec = board_spec();
        spec.provenance_json = R"({"program":"Posiscope","settings":{"seed":7}})";
        spec.read_tensors = [&, ready = go.get_future().share()](const posiscope::core::RunContext&) {
            where.set_value(std::this_thread::get_id());
            ready.wait();
            return posiscope::core::Result<TensorDigests>({{"weight", {{2, 3}, "abc"}}});
        };
        const QTemporaryDir folder;
        const QString path = folder.filePath(QStringLiteral("x.png"));
        ExportDialog dialog(spec);
        dialog.show();
        QVERIFY(dialog.isRecording());
        QVERIFY(where.get_future().get() != std::this_thread::get_id());
        dialog.saveTo(path);
        QVERIFY(!QFile::exists(path));
        QVERIFY(dialog.isVisible());
        QVERIFY(dialog.bannerText().contains(QStringLiteral("Saved as soon as")));
        for (QPushButton* button : dialog.findChildren<QPushButton*>())
            if (button->text().startsWith(QStringLiteral("Save")))
                QVERIFY(!button->isEnabled()); // once is enough
        go.set_value();
        QTRY_VERIFY(!dialog.isVisible());
        const auto record = nlohmann::json::parse(
            QImage(path).text(QStringLiteral("posiscope:provenance")).toStdString(), nullptr, false);
        QCOMPARE(record["settings"]["seed"].get<int>(), 7);
        QCOMPARE(record["tensors"]["weight"]["sha256"].get<std::string>(), std::string("abc"));
        QCOMPARE(record["tensors_sha256"].get<std::string>().size(), std::size_t{64});
    }

    void weights_that_cannot_be_read_any_more_keep_no_figure_back()
    {
        FigureSpec spec = board_spec();
        spec.provenance_json = R"({"program":"Posiscope"})";
        spec.read_tensors = [](const posiscope::core::RunContext&) -> posiscope::core::Result<TensorDigests> {
            return posiscope::core::Error{posiscope::core::ErrorCode::unreadable, "gone", {}};
        };
        const QTemporaryDir folder;
        const QString path = folder.filePath(QStringLiteral("x.png"));
        ExportDialog dialog(spec);
        dialog.saveTo(path);
        QTRY_VERIFY(QFile::exists(path));
        QVERIFY(
            !QImage(path).text(QStringLiteral("posiscope:provenance")).contains(QStringLiteral("tensors")));
    }
};

QTEST_MAIN(TestExportDialog)
#include "tst_export_dialog.moc"
