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
        for (const std::string& view : ui::figure_view_ids()) {
            for (const ui::FigureFormatRow& row : ui::figure_formats()) {
                const QString out = folder.filePath(QString::fromStdString(view + "." + std::string(row.id)));
                ui::FigureRequest request = sample_request(out);
                request.view = view;
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
        const auto options = request.probe_options(**model, warnings);
        const auto probe = core::run_identical_word_probe(**model, *options, {});
        QVERIFY(probe);
        const auto spec = ui::make_figure_spec(**model, *probe, request);
        QVERIFY(spec);
        const auto& content = std::get<ui::HeatmapContent>(spec->content);
        QCOMPARE(content.map.length, std::size_t{15});
        QCOMPARE(content.map.first_position, std::size_t{1});
        const core::PositionMap wanted =
            core::quantity_map(*probe, core::Quantity::constants_removed, core::mean_of_heads,
                               core::PositionChoice::without_first);
        QCOMPARE(content.map.values, wanted.values);
        request.view = "offset_profile";
        const auto profile = ui::make_figure_spec(**model, *probe, request);
        QVERIFY(profile);
        const auto& curve = std::get<ui::ProfileContent>(profile->content).curve;
        QCOMPARE(curve.first_offset, -14);
        QCOMPARE(curve.mean.size(), std::size_t{29});
        QCOMPARE(curve.standard_error.size(), std::size_t{29});
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
        view.view = "position_map";
        QCOMPARE(ui::run_figure_command(view), 1);
        ui::FigureRequest folder_missing = sample_request(folder.filePath(QStringLiteral("no/x.pdf")));
        QCOMPARE(ui::run_figure_command(folder_missing), 1);
        QVERIFY(!QFile::exists(out));
    }
};

QTEST_MAIN(TestFigureCommand)
#include "tst_figure_command.moc"
