// SPDX-License-Identifier: GPL-3.0-or-later
#include <QFloat16> // JSON asks what it can become
#include <QFile>
#include <QImage>
#include <QTemporaryDir>
#include <QTest>

#include <nlohmann/json.hpp>

#include "core/probe/identical_word_probe.h"
#include "ui/figure/figure_command.h"
#include "ui/figure/figure_layout.h"

using namespace posiscope;

namespace {

/// The embedded sample with few words and positions.
ui::FigureRequest sample_request(const QString& out)
{
    ui::FigureRequest request;
    request.location = "sample:minilm-l6-first-layer";
    request.out = out.toStdString();
    request.probe_options = [](const core::OpenModel&, std::vector<std::string>&) {
        core::ProbeOptions options;
        options.length = 16;
        options.words.count = 8;
        options.seed = 3;
        return core::Result<core::ProbeOptions>(options);
    };
    return request;
}

} // namespace

class TestFigureCommand : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void every_view_is_written_in_every_format()
    {
        const QTemporaryDir folder;
        QCOMPARE(ui::figure_view_ids().size(), std::size_t{7});
        for (const std::string& view : ui::figure_view_ids()) {
            for (const ui::FigureFormatRow& row : ui::figure_formats()) {
                const QString out = folder.filePath(QString::fromStdString(view + "." + std::string(row.id)));
                ui::FigureRequest request = sample_request(out);
                request.view = view;
                request.tsne.iterations = 50;
                if (view == "relative_bias") request.location = "sample:mpnet-base-positions";
                if (view == "image_grid") request.location = "sample:vit-mnist-4x4";
                QCOMPARE(ui::run_figure_command(request), 0);
                QVERIFY(QFile(out).size() > 1000);
            }
        }
    }

    void provenance_says_every_setting()
    {
        const QTemporaryDir folder;
        ui::FigureRequest request = sample_request(folder.filePath(QStringLiteral("x.png")));
        request.display.head = 2;
        request.display.quantity = core::Quantity::probabilities;
        request.scale = ui::ScaleKind::percentile;
        QCOMPARE(ui::run_figure_command(request), 0);
        const QImage image(QString::fromStdString(request.out));
        const auto json =
            nlohmann::json::parse(image.text(QStringLiteral("posiscope:provenance")).toStdString());
        QCOMPARE(json["settings"]["seed"].get<int>(), 3);
        QCOMPARE(json["settings"]["length"].get<int>(), 16);
        QCOMPARE(json["word_ids"].size(), std::size_t{8});
        QCOMPARE(json["view"]["head"].get<int>(), 2);
        QCOMPARE(json["view"]["quantity"].get<std::string>(), std::string("probabilities"));
        QCOMPARE(json["figure"]["scale"].get<std::string>(), std::string("percentile"));
        QVERIFY(json["program"].get<std::string>().starts_with("Posiscope "));
    }

    void drawn_map_is_that_of_the_probe()
    {
        const auto model = core::open_model("sample:minilm-l6-first-layer", {});
        QVERIFY(model);
        ui::FigureRequest request = sample_request({});
        request.display.positions = core::PositionChoice::without_first;
        std::vector<std::string> warnings;
        auto options = request.probe_options(**model, warnings);
        options->probabilities = options->group_spread = false; // only what is drawn is computed
        const auto probe = core::run_identical_word_probe(**model, *options, {});
        QVERIFY(probe);
        const auto spec = ui::make_figure_spec(*model, request, warnings, {});
        QVERIFY(spec);
        const auto& content = std::get<ui::HeatmapContent>(spec->content);
        QCOMPARE(content.map.length, std::size_t{15});
        QCOMPARE(content.map.first_position, std::size_t{1});
        const core::PositionMap wanted =
            core::quantity_map(*probe, core::Quantity::constants_removed, core::mean_of_heads,
                               core::PositionChoice::without_first);
        QCOMPARE(content.map.values, wanted.values);
        request.view = "offset_profile";
        const auto profile = ui::make_figure_spec(*model, request, warnings, {});
        QVERIFY(profile);
        const auto& curve = std::get<ui::ProfileContent>(profile->content).curve;
        QCOMPARE(curve.first_offset, -14);
        QCOMPARE(curve.mean.size(), std::size_t{29});
        QCOMPARE(curve.standard_error.size(), std::size_t{29});
    }

    void probabilities_are_drawn_by_percentiles_and_logits_are_not()
    {
        const auto model = core::open_model("sample:minilm-l6-first-layer", {});
        QVERIFY(model);
        std::vector<std::string> warnings;
        ui::FigureRequest request = sample_request({});
        const auto kind_of = [&] {
            const auto spec = ui::make_figure_spec(*model, request, warnings, {});
            return spec ? std::get<ui::HeatmapContent>(spec->content).scale : ui::ColorScale{};
        };
        QCOMPARE(kind_of().kind, ui::ScaleKind::linear);
        QVERIFY(!kind_of().upper_clipped);
        request.display.quantity = core::Quantity::probabilities;
        QCOMPARE(kind_of().kind, ui::ScaleKind::percentile);
        QVERIFY(kind_of().upper_clipped); // the first position, which draws six times its share
        request.scale = ui::ScaleKind::linear;
        QCOMPARE(kind_of().kind, ui::ScaleKind::linear);
    }

    void a_view_that_does_not_apply_says_what_does_data()
    {
        QTest::addColumn<QString>("view");
        QTest::addColumn<QString>("location");
        QTest::addColumn<QString>("why");
        QTest::addColumn<QString>("instead");
        const QString families = QStringLiteral(POSISCOPE_TEST_DATA "/families/");
        QTest::newRow("image grid of words")
            << QStringLiteral("image_grid") << families + QStringLiteral("bert")
            << QStringLiteral("reads no image") << QStringLiteral("position_map");
        QTest::newRow("map of ALiBi")
            << QStringLiteral("position_map") << families + QStringLiteral("bloom")
            << QStringLiteral("no position vectors") << QStringLiteral("relative_bias");
        QTest::newRow("similarity of T5")
            << QStringLiteral("position_similarity") << families + QStringLiteral("t5")
            << QStringLiteral("no position vectors") << QStringLiteral("relative_bias");
        QTest::newRow("bias of BERT")
            << QStringLiteral("relative_bias") << families + QStringLiteral("bert")
            << QStringLiteral("no relative scheme") << QStringLiteral("position_similarity");
    }

    void a_view_that_does_not_apply_says_what_does()
    {
        QFETCH(QString, view);
        QFETCH(QString, location);
        QFETCH(QString, why);
        QFETCH(QString, instead);
        const QTemporaryDir folder;
        ui::FigureRequest request = sample_request(folder.filePath(QStringLiteral("x.pdf")));
        request.view = view.toStdString();
        request.location = location.toStdString();
        const auto model = core::open_model(request.location, {});
        QVERIFY(model);
        std::vector<std::string> warnings;
        const auto spec = ui::make_figure_spec(*model, request, warnings, {});
        QVERIFY(!spec);
        const QString message = QString::fromStdString(spec.error().message);
        QVERIFY2(message.contains(why), qPrintable(message));
        QVERIFY2(message.section(QStringLiteral("views that apply"), 1).contains(instead),
                 qPrintable(message));
        QVERIFY(!message.contains(u'\n')); // one sentence
        QCOMPARE(ui::run_figure_command(request), 1);
        QVERIFY(!QFile::exists(QString::fromStdString(request.out)));
    }

    void metric_table_has_rows_and_errors()
    {
        const auto model = core::open_model("sample:minilm-l6-first-layer", {});
        QVERIFY(model);
        std::vector<std::string> warnings;
        ui::FigureRequest request = sample_request({});
        request.view = "metric_table";
        const auto spec = ui::make_figure_spec(*model, request, warnings, {});
        QVERIFY2(spec, spec ? "" : spec.error().message.c_str());
        const auto& table = std::get<ui::TableContent>(spec->content);
        QCOMPARE(table.rows(), std::size_t{6}); // three quantities, with and without the first position
        QCOMPARE(table.columns[0].head, QStringLiteral("Quantity"));
        QCOMPARE(table.columns[1].head, QStringLiteral("Positions"));
        QCOMPARE(table.columns[2].head, QStringLiteral("TI"));
        QVERIFY(!table.columns[2].is_label);
        QVERIFY(table.columns[2].cells[0].error.startsWith(QStringLiteral("\u00b1 0.0")));
        request.table_quantity = core::Quantity::probabilities;
        const auto fewer = ui::make_figure_spec(*model, request, warnings, {});
        QVERIFY(fewer);
        QCOMPARE(std::get<ui::TableContent>(fewer->content).rows(), std::size_t{2});
    }

    void refused_input_gives_status_1_and_no_file()
    {
        const QTemporaryDir folder;
        const QString out = folder.filePath(QStringLiteral("x.pdf"));
        ui::FigureRequest missing = sample_request(out);
        missing.location = folder.filePath(QStringLiteral("nowhere")).toStdString();
        QCOMPARE(ui::run_figure_command(missing), 1);
        ui::FigureRequest head = sample_request(out);
        head.display.head = 12;
        QCOMPARE(ui::run_figure_command(head), 1);
        ui::FigureRequest view = sample_request(out);
        view.view = "layers";
        QCOMPARE(ui::run_figure_command(view), 1);
        ui::FigureRequest part = sample_request(out);
        part.view = "position_similarity";
        part.part = "curves";
        QCOMPARE(ui::run_figure_command(part), 1);
        ui::FigureRequest folder_missing = sample_request(folder.filePath(QStringLiteral("no/x.pdf")));
        QCOMPARE(ui::run_figure_command(folder_missing), 1);
        QVERIFY(!QFile::exists(out));
    }
};

QTEST_MAIN(TestFigureCommand)
#include "tst_figure_command.moc"
