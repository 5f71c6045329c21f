// SPDX-License-Identifier: GPL-3.0-or-later
// The browser of tensors as a person uses it: going through the tree, filtering, looking, copying, writing.
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QLineEdit>
#include <QPushButton>
#include <QSettings>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>
#include <QTreeView>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>

#include "core/export/npy.h"
#include "core/export/tensors_used.h"
#include "core/probe/identical_word_probe.h"
#include "tests/support/checkpoint_builder.h"
#include "ui/models/tensor_tree_model.h"
#include "ui/plot/chart_plot.h"
#include "ui/views/tensor_browser_view.h"
#include "ui/views/view_table.h"

namespace posiscope::ui {
namespace {

constexpr int patience_ms = 30'000; ///< debug builds on busy machines

/// A tiny BERT on disk, and the view on it.
struct Opened {
    tests::TemporaryFolder folder;
    tests::CheckpointBuilder builder;
    std::shared_ptr<core::Session> session = std::make_shared<core::Session>();
    TensorBrowserView view;

    explicit Opened(const std::function<void(tests::CheckpointBuilder&)>& change = {}, bool probed = false)
    {
        if (change) change(builder);
        builder.write_to(folder);
        auto model = core::open_model(folder.path(), {});
        if (!model) return;
        session->model = *std::move(model);
        if (probed) {
            core::ProbeOptions options;
            options.length = 16;
            auto probe = core::run_identical_word_probe(*session->model, options, {});
            if (probe) session->probe = std::make_shared<const core::ProbeResult>(*std::move(probe));
        }
        view.resize(900, 600);
        static_cast<QWidget&>(view).show();
        view.setSession(session);
    }

    [[nodiscard]] QModelIndex row_of(const char* name) const
    {
        auto* filter = qobject_cast<TensorTreeFilter*>(view.tree()->model());
        auto* tensors = qobject_cast<TensorTreeModel*>(filter->sourceModel());
        return filter->mapFromSource(tensors->indexOf(name));
    }
    void click(const char* name)
    {
        const QModelIndex index = row_of(name);
        view.tree()->scrollTo(index);
        QTest::mouseClick(view.tree()->viewport(), Qt::LeftButton, {},
                          view.tree()->visualRect(index).center());
    }
};

constexpr const char* bias_name = "embeddings.LayerNorm.bias";

} // namespace

class TestTensorBrowserView : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void the_model_is_described()
    {
        const Opened opened;
        QVERIFY(find_view("tensor_browser") != nullptr);
        QVERIFY(find_view("tensor_browser")->applies(*opened.session));
        const QString text = opened.view.modelText();
        for (const QString& part :
             {QStringLiteral("BERT"), QStringLiteral("learned"), QStringLiteral("1 layer"),
              QStringLiteral("2 heads"), QStringLiteral("d 16"), QStringLiteral("L \u2264 40"),
              QStringLiteral("Safetensors"), QStringLiteral("read so far"),
              QStringLiteral("%1 tensors").arg(opened.builder.tensors.size())})
            QVERIFY2(text.contains(part, Qt::CaseInsensitive),
                     qPrintable(part + QStringLiteral(" in ") + text));
        // The table of positions is what people come for.
        QCOMPARE(opened.view.chosen(), QLatin1String(tests::position_table_name));
    }

    void a_click_shows_numbers_and_picture()
    {
        Opened opened;
        opened.click(tests::position_table_name);
        QCOMPARE(opened.view.chosen(), QLatin1String(tests::position_table_name));
        QTRY_VERIFY_WITH_TIMEOUT(opened.view.statistics() && !opened.view.isBusy(), patience_ms);
        const auto& table = opened.builder.tensor(tests::position_table_name);
        QCOMPARE(opened.view.statistics()->count, table.values.size());
        QCOMPARE(opened.view.statistics()->least,
                 static_cast<double>(*std::min_element(table.values.begin(), table.values.end())));
        const core::TensorPicture& picture = opened.view.matrixPlot()->picture();
        QVERIFY(opened.view.matrixPlot()->isVisible());
        QCOMPARE(picture.plan.rows, std::int64_t{40});
        QCOMPARE(picture.plan.columns, std::int64_t{16});
        QCOMPARE(picture.values[17], static_cast<double>(table.values[17]));
        QVERIFY(opened.view.tensorText().contains(QStringLiteral("40 \u00D7 16")));
        QVERIFY(opened.view.captionText().contains(QStringLiteral("40 \u00D7 16")));
        QVERIFY(opened.view.contextLine().contains(QLatin1String(tests::position_table_name)));
        QVERIFY(opened.view.canExport());

        // The colour of a cell on screen is that of the scale; under the pointer it is read out.
        const QRectF cell = opened.view.matrixPlot()->cellRect(3, 5);
        const QImage image = opened.view.matrixPlot()->grab().toImage();
        const QRgb wanted = opened.view.matrixPlot()->colorScale().color(picture.values[3 * 16 + 5]);
        QCOMPARE(image.pixelColor(cell.center().toPoint() * image.devicePixelRatio()).rgb(), wanted);
        // Moved again where the window system's own pointer took the mark away in between.
        const auto marked_under_the_pointer = [&] {
            for (const QPoint& step : {QPoint(1, 1), QPoint(0, 0)})
                QTest::mouseMove(opened.view.matrixPlot(), cell.center().toPoint() + step);
            return opened.view.matrixPlot()->markedCell();
        };
        QTRY_COMPARE(marked_under_the_pointer(), std::optional(QPoint(5, 3)));
        QVERIFY2(opened.view.captionText().startsWith(QStringLiteral("row 3, column 5: ")),
                 qPrintable(opened.view.captionText()));
    }

    void outliers_do_not_hide_the_rest_unless_asked()
    {
        Opened opened([](tests::CheckpointBuilder& builder) {
            builder.tensor(tests::position_table_name).values[0] = 1000.0f;
        });
        opened.view.choose(QLatin1String(tests::position_table_name));
        QTRY_VERIFY_WITH_TIMEOUT(!opened.view.isBusy(), patience_ms);
        QVERIFY(opened.view.matrixPlot()->colorScale().upper < 100.0);
        QVERIFY(opened.view.matrixPlot()->colorScale().upper_clipped);
        opened.view.rangeBox()->setCurrentIndex(1);
        QCOMPARE(opened.view.matrixPlot()->colorScale().upper, 1000.0);
        QVERIFY(!opened.view.matrixPlot()->colorScale().upper_clipped);
        QTemporaryDir folder;
        QSettings settings(folder.filePath(QStringLiteral("choices.ini")), QSettings::IniFormat);
        opened.view.saveChoices(settings);
        TensorBrowserView other;
        other.restoreChoices(settings);
        QCOMPARE(other.rangeBox()->currentIndex(), 1);
    }

    void a_vector_is_a_curve_and_its_faults_are_counted()
    {
        Opened opened([](tests::CheckpointBuilder& builder) {
            auto& bias = builder.tensor(bias_name);
            bias.values[2] = std::numeric_limits<float>::quiet_NaN();
            bias.values[3] = std::numeric_limits<float>::infinity();
        });
        opened.view.choose(QLatin1String(bias_name));
        QTRY_VERIFY_WITH_TIMEOUT(opened.view.statistics() && !opened.view.isBusy(), patience_ms);
        QVERIFY(opened.view.chartPlot()->isVisible());
        QCOMPARE(opened.view.chartPlot()->chart().series[0].y.size(), std::size_t{16});
        QCOMPARE(opened.view.statistics()->nan_count, std::uint64_t{1});
        QCOMPARE(opened.view.statistics()->infinite_count, std::uint64_t{1});
        QVERIFY(opened.view.statisticsText().contains(QStringLiteral("NaN")));
    }

    void tensors_of_more_axes_are_gone_through()
    {
        Opened opened([](tests::CheckpointBuilder& builder) {
            tests::BuiltTensor cube{"cube", {3, 2, 2}, {}};
            for (int n = 0; n < 12; ++n) cube.values.push_back(static_cast<float>(n));
            builder.tensors.push_back(cube);
        });
        opened.view.choose(QStringLiteral("cube"));
        QTRY_VERIFY_WITH_TIMEOUT(!opened.view.isBusy(), patience_ms);
        QVERIFY(opened.view.sliceBox()->isVisible());
        QCOMPARE(opened.view.sliceBox()->maximum(), 2);
        opened.view.sliceBox()->setValue(2);
        QTRY_VERIFY_WITH_TIMEOUT(!opened.view.isBusy(), patience_ms);
        QCOMPARE(opened.view.matrixPlot()->picture().values, (std::vector<double>{8, 9, 10, 11}));
        QVERIFY(opened.view.captionText().startsWith(QStringLiteral("[2, :, :]")));
    }

    void a_filter_narrows_the_tree_and_leaves_what_is_shown()
    {
        Opened opened;
        opened.view.choose(QLatin1String(bias_name));
        QTRY_VERIFY_WITH_TIMEOUT(!opened.view.isBusy(), patience_ms);
        QTest::keyClicks(opened.view.filterField(), QStringLiteral("SELF.key"));
        QVERIFY(opened.row_of(tests::key_weight_name).isValid());
        QVERIFY(!opened.row_of(tests::query_weight_name).isValid());
        QCOMPARE(opened.view.chosen(), QLatin1String(bias_name)); // nobody chose another
        opened.click(tests::key_weight_name);                     // its groups are open
        QCOMPARE(opened.view.chosen(), QLatin1String(tests::key_weight_name));
        opened.view.filterField()->setText(QStringLiteral("no such name"));
        QVERIFY(!opened.view.tree()->isVisible());
        opened.view.filterField()->clear();
        QVERIFY(opened.view.tree()->isVisible());
        QCOMPARE(opened.view.tree()->currentIndex(), opened.row_of(tests::key_weight_name));
    }

    void copy_gives_facts_and_full_numbers()
    {
        Opened opened;
        opened.view.choose(QLatin1String(tests::position_table_name));
        QTRY_VERIFY_WITH_TIMEOUT(opened.view.statistics().has_value(), patience_ms);
        QApplication::clipboard()->clear();
        opened.view.tree()->setFocus();
        QTest::keySequence(opened.view.tree(), QKeySequence::Copy);
        const QString text = QApplication::clipboard()->text();
        QVERIFY2(text.contains(QStringLiteral("name\t%1\n").arg(QLatin1String(tests::position_table_name))),
                 qPrintable(text));
        QVERIFY(text.contains(QStringLiteral("shape\t40 x 16\n")));
        const QString mean = text.section(QStringLiteral("mean\t"), 1).section(QLatin1Char('\n'), 0, 0);
        QVERIFY(std::abs(mean.toDouble() - opened.view.statistics()->mean) <
                1e-8 * std::max(1.0, std::abs(opened.view.statistics()->mean)));
    }

    void the_tensor_is_written_as_it_is()
    {
        Opened opened;
        opened.view.choose(QLatin1String(tests::position_table_name));
        QTemporaryDir folder;
        const QString path = folder.filePath(QStringLiteral("table.npy"));
        opened.view.writeTo(path);
        QTRY_VERIFY_WITH_TIMEOUT(!opened.view.isBusy(), patience_ms);
        const auto source = core::open_file(path.toStdString());
        QVERIFY(source);
        const auto array = core::read_npy(**source);
        QVERIFY(array);
        const auto& table = opened.builder.tensor(tests::position_table_name);
        QCOMPARE(array->shape, table.shape);
        for (std::size_t n = 0; n < table.values.size(); ++n)
            QCOMPARE(array->values[n], static_cast<double>(table.values[n]));
        QVERIFY(opened.view.captionText().contains(path));

        QSignalSpy failed(&opened.view, &AnalysisView::failed);
        opened.view.writeTo(folder.filePath(QStringLiteral("none/table.npy")));
        QTRY_COMPARE_WITH_TIMEOUT(failed.size(), 1, patience_ms);
    }

    void the_digest_is_that_of_the_provenance_record()
    {
        const Opened opened({}, true);
        QVERIFY(opened.session->probe != nullptr);
        QTRY_VERIFY_WITH_TIMEOUT(!opened.view.digest().isEmpty(), patience_ms);
        const auto wanted = core::tensors_used(*opened.session->model, *opened.session->probe);
        QVERIFY(wanted);
        QCOMPARE(opened.view.digest().toStdString(), core::digest_of_all(*wanted));
        QVERIFY(opened.view.digestText().contains(opened.view.digest().left(16)));
        QVERIFY(!opened.view.digestText().contains(opened.view.digest())); // shortened
        QTest::mouseClick(opened.view.copyDigestButton(), Qt::LeftButton);
        QCOMPARE(QApplication::clipboard()->text(), opened.view.digest());
    }

    void a_model_that_was_not_probed_can_be_browsed()
    {
        Opened opened;
        QVERIFY(opened.view.digest().isEmpty());
        QVERIFY(opened.view.digestText().contains(QStringLiteral("none have been used yet")));
        opened.view.choose(QLatin1String(bias_name));
        QTRY_VERIFY_WITH_TIMEOUT(opened.view.statistics().has_value(), patience_ms);
    }

    /// 5 GB of zeros that take no room on the disk: nothing large is read unasked, and reading can be stopped.
    void a_large_table_waits_until_it_is_asked_for()
    {
        constexpr std::uint64_t rows = 250'000, columns = 5'000, size = rows * columns * 4;
        Opened opened;
        // The builder holds its values in memory: the large table goes into a second file's header by hand.
        const std::string path = opened.folder.file("model.safetensors");
        std::string small = tests::safetensors_bytes(opened.builder.tensors);
        std::uint64_t header_size = 0;
        for (int n = 7; n >= 0; --n)
            header_size = header_size << 8u | static_cast<unsigned char>(small[static_cast<std::size_t>(n)]);
        std::string header = small.substr(8, header_size);
        const std::string data = small.substr(8 + header_size);
        header.erase(header.rfind('}'));
        header += ",\"large\":{\"dtype\":\"F32\",\"shape\":[250000,5000],\"data_offsets\":[" +
                  std::to_string(data.size()) + "," + std::to_string(data.size() + size) + "]}}";
        const std::string bytes = tests::safetensors_bytes(header, data);
        opened.folder.write("model.safetensors", bytes);
        std::filesystem::resize_file(path, bytes.size() + size);
        auto model = core::open_model(opened.folder.path(), {});
        QVERIFY2(model, model ? "" : model.error().message.c_str());
        opened.session = std::make_shared<core::Session>();
        opened.session->model = *model;
        opened.view.setSession(opened.session);
        opened.view.choose(QStringLiteral("large"));
        QTRY_VERIFY_WITH_TIMEOUT(!opened.view.isBusy(), patience_ms);
        QVERIFY(!opened.view.statistics());
        QVERIFY(opened.view.readButton()->isVisible());
        QVERIFY(opened.view.readButton()->text().contains(QStringLiteral("5.00\u00A0GB")));
        QVERIFY((*model)->checkpoint->bytes_read() < 70'000'000);

        QTest::mouseClick(opened.view.readButton(), Qt::LeftButton);
        QVERIFY(opened.view.isBusy());
        QTRY_VERIFY_WITH_TIMEOUT(opened.view.stopButton()->isVisible(), patience_ms);
        QTest::mouseClick(opened.view.stopButton(), Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(!opened.view.isBusy(), patience_ms);
        QVERIFY(!opened.view.stopButton()->isVisible());
        QVERIFY(opened.view.statistics() || opened.view.readButton()->isVisible());
    }

    void a_file_that_changes_while_it_is_open_is_told()
    {
        Opened opened;
        const std::string path = opened.folder.file("model.safetensors");
        std::filesystem::resize_file(path, 2'000); // truncated
        opened.view.choose(QLatin1String(tests::query_weight_name));
        QTRY_VERIFY_WITH_TIMEOUT(!opened.view.isBusy(), patience_ms);
        QVERIFY(!opened.view.statistics());
        QVERIFY2(opened.view.statisticsText().contains(QStringLiteral("open it again")),
                 qPrintable(opened.view.statisticsText()));
        QVERIFY2(opened.view.captionText().contains(QStringLiteral("open it again")),
                 qPrintable(opened.view.captionText()));
    }

    void another_model_shows_the_same_tensor()
    {
        Opened first;
        first.view.choose(QLatin1String(bias_name));
        QTRY_VERIFY_WITH_TIMEOUT(first.view.statistics().has_value(), patience_ms);
        const Opened second([](tests::CheckpointBuilder& builder) {
            for (float& value : builder.tensor(bias_name).values) value = 7.0f;
        });
        first.view.setSession(second.session);
        QCOMPARE(first.view.chosen(), QLatin1String(bias_name));
        QTRY_VERIFY_WITH_TIMEOUT(first.view.statistics().has_value(), patience_ms);
        QCOMPARE(first.view.statistics()->mean, 7.0);
    }
};

} // namespace posiscope::ui

QTEST_MAIN(posiscope::ui::TestTensorBrowserView)
#include "tst_tensor_browser_view.moc"
