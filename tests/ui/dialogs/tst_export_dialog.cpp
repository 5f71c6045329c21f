// SPDX-License-Identifier: GPL-3.0-or-later
#include <QClipboard>
#include <QComboBox>
#include <QCoreApplication>
#include <QGuiApplication>
#include <QImage>
#include <QMimeData>
#include <QSettings>
#include <QTemporaryDir>
#include <QTest>

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
            QVERIFY(dialog.saveTo(folder.filePath(QStringLiteral("x.png"))));
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
        QVERIFY(!dialog.saveTo(folder.filePath(QStringLiteral("no/such/x.pdf"))));
        QVERIFY(dialog.bannerText().contains(QStringLiteral("x.pdf")));
        QVERIFY(dialog.isVisible());
        FigureOptions options = dialog.options();
        options.width_mm = 100.0;
        dialog.setOptions(options);
        QVERIFY(dialog.bannerText().isEmpty());
    }

    void copy_puts_three_formats_on_the_clipboard()
    {
        ExportDialog dialog(board_spec());
        QVERIFY(dialog.copy());
        const QMimeData* copied = QGuiApplication::clipboard()->mimeData();
        QVERIFY(copied->hasImage());
        QVERIFY(copied->data(QStringLiteral("image/svg+xml")).startsWith("<?xml"));
        QVERIFY(copied->data(QStringLiteral("application/pdf")).startsWith("%PDF"));
        QVERIFY(!dialog.bannerText().isEmpty());
    }
};

QTEST_MAIN(TestExportDialog)
#include "tst_export_dialog.moc"
