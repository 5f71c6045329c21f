// SPDX-License-Identifier: GPL-3.0-or-later
#include <QAbstractItemModelTester>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <limits>
#include <memory>

#include "core/metrics/metric_list.h"
#include "core/probe/identical_word_probe.h"
#include "ui/analysis_controller.h"
#include "ui/convert.h"
#include "ui/figure/view_figures.h"
#include "ui/models/metric_table_model.h"
#include "ui/models/open_models_model.h"
#include "ui/views/metric_table_view.h"

using namespace posiscope;
using ui::MetricTableFilter;
using ui::MetricTableModel;

namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

core::MetricRow row_of(const std::string& model, core::Quantity quantity, double value, double error)
{
    core::MetricRow row;
    row.model = model;
    row.stack = "encoder";
    row.quantity = quantity;
    row.values.assign(core::metric_list().size(), core::MetricValue{value, error});
    return row;
}

std::shared_ptr<const core::MetricTable> table_of(std::vector<core::MetricRow> rows)
{
    return std::make_shared<const core::MetricTable>(core::MetricTable{std::move(rows)});
}

} // namespace

class TestUiModels : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void metric_table_is_a_sound_model()
    {
        MetricTableModel model;
        MetricTableFilter filter;
        filter.setSourceModel(&model);
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
        const QAbstractItemModelTester filter_tester(&filter,
                                                     QAbstractItemModelTester::FailureReportingMode::Fatal);
        model.setTable(table_of({row_of("a", core::Quantity::logits, 0.25, undefined)}));
        // The same rows with new values keep selections: no reset.
        QSignalSpy reset(&model, &QAbstractItemModel::modelReset);
        QSignalSpy changed(&model, &QAbstractItemModel::dataChanged);
        model.setTable(table_of({row_of("a", core::Quantity::logits, 0.25, 0.0123)}));
        QCOMPARE(reset.size(), 0);
        QCOMPARE(changed.size(), 1);
        model.setTable(table_of({row_of("a", core::Quantity::logits, 0.25, 0.0123),
                                 row_of("b", core::Quantity::probabilities, 0.5, 0.01)}));
        QCOMPARE(reset.size(), 1);
        model.setTable(nullptr);
        QCOMPARE(model.rowCount(), 0);
    }

    void numbers_have_equal_decimals_and_undefined_is_a_dash()
    {
        MetricTableModel model;
        auto flat = row_of("flat", core::Quantity::logits, undefined, undefined);
        flat.flat = true;
        model.setTable(table_of({row_of("a", core::Quantity::logits, 0.25, 0.0123), flat,
                                 row_of("c", core::Quantity::logits, -0.00001, undefined)}));
        const int column = MetricTableModel::first_metric;
        QCOMPARE(model.index(0, column).data().toString(), QStringLiteral("0.250 \u00b1 0.0123"));
        QCOMPARE(model.index(1, column).data().toString(), QStringLiteral("\u2013"));
        QVERIFY(model.index(1, column).data(Qt::ToolTipRole).toString().contains(QStringLiteral("flat")));
        QCOMPARE(model.index(2, column).data().toString(), QStringLiteral("0.000")); // not "-0.000"
        QVERIFY(model.index(0, column)
                    .data(Qt::TextAlignmentRole)
                    .value<Qt::Alignment>()
                    .testFlag(Qt::AlignRight));
        QVERIFY(model.headerData(column, Qt::Horizontal, Qt::ToolTipRole)
                    .toString()
                    .contains(QString::fromUtf8(core::metric_list()[0].label.data())));
    }

    /// Files give 0 for the ends of a band that is not there.
    void no_white_band_begins_and_ends_nowhere()
    {
        const auto metrics = core::metric_list();
        const auto column_of = [&](std::string_view id) {
            return static_cast<std::size_t>(
                std::find_if(metrics.begin(), metrics.end(), [&](const auto& one) { return one.id == id; }) -
                metrics.begin());
        };
        const std::size_t width = column_of("white_band.width"), first = column_of("white_band.first"),
                          last = column_of("white_band.last");
        auto none = row_of("none", core::Quantity::logits, 0.5, 0.01);
        for (const std::size_t m : {width, first, last}) none.values[m] = {0.0, 0.0};
        auto narrow = none; // the word itself alone
        narrow.model = "narrow";
        narrow.values[width].value = 1.0;
        MetricTableModel model;
        model.setTable(table_of({none, narrow}));
        const auto text = [&](int row, std::size_t metric, int role = Qt::DisplayRole) {
            return model.index(row, MetricTableModel::first_metric + static_cast<int>(metric))
                .data(role)
                .toString();
        };
        for (const std::size_t edge : {first, last}) {
            QCOMPARE(text(0, edge), QStringLiteral("\u2013"));
            QVERIFY(text(0, edge, Qt::ToolTipRole).contains(QStringLiteral("no white band")));
            QVERIFY(!model.index(0, MetricTableModel::first_metric + static_cast<int>(edge))
                         .data(MetricTableModel::sort_role)
                         .isValid());
            QVERIFY(text(1, edge).startsWith(u'0'));
        }
        QVERIFY(text(0, width).startsWith(u'0')); // that is what it says of the band
        // The figure has the same.
        core::Session session;
        auto opened = core::open_model("sample:gpt-nano-sort", {});
        QVERIFY(opened);
        session.model = *std::move(opened);
        core::ProbeOptions options;
        options.length = 4;
        auto probe = core::run_identical_word_probe(*session.model, options, {});
        QVERIFY(probe);
        session.probe = std::make_shared<const core::ProbeResult>(*std::move(probe));
        const ui::FigureSpec spec = ui::metric_table_figure(session, model.table());
        int found = 0;
        for (const ui::TableColumn& column : std::get<ui::TableContent>(spec.content).columns)
            if (column.head == ui::to_qstring(metrics[first].short_label) ||
                column.head == ui::to_qstring(metrics[last].short_label)) {
                ++found;
                QCOMPARE(column.cells[0].text, QStringLiteral("\u2013"));
                QVERIFY(column.cells[0].error.isEmpty());
                QCOMPARE(column.cells[1].text, QStringLiteral("0"));
            }
        QCOMPARE(found, 2);
    }

    void undefined_sorts_last_in_either_order()
    {
        MetricTableModel model;
        MetricTableFilter filter;
        filter.setSourceModel(&model);
        model.setTable(table_of({row_of("none", core::Quantity::logits, undefined, undefined),
                                 row_of("high", core::Quantity::logits, 0.9, 0.1),
                                 row_of("low", core::Quantity::logits, 0.1, 0.1)}));
        const auto order = [&] {
            QStringList names;
            for (int row = 0; row < filter.rowCount(); ++row)
                names.append(filter.index(row, 0).data().toString());
            return names.join(u' ');
        };
        filter.sort(MetricTableModel::first_metric, Qt::AscendingOrder);
        QCOMPARE(order(), QStringLiteral("low high none"));
        filter.sort(MetricTableModel::first_metric, Qt::DescendingOrder);
        QCOMPARE(order(), QStringLiteral("high low none"));
        QCOMPARE(filter.shownRows().rows.front().model, std::string("high"));
    }

    void rows_are_filtered()
    {
        MetricTableModel model;
        MetricTableFilter filter;
        filter.setSourceModel(&model);
        model.setTable(table_of({row_of("a", core::Quantity::logits, 0.1, 0.0),
                                 row_of("a", core::Quantity::probabilities, 0.2, 0.0),
                                 row_of("b", core::Quantity::logits, 0.3, 0.0)}));
        filter.setQuantity(core::Quantity::logits);
        QCOMPARE(filter.rowCount(), 2);
        filter.setModelName(QStringLiteral("b"));
        QCOMPARE(filter.rowCount(), 1);
        filter.setQuantity(std::nullopt);
        filter.setModelName({});
        QCOMPARE(filter.rowCount(), 3);
    }

    void the_table_is_written_as_its_name_asks()
    {
        QTemporaryDir folder;
        QVERIFY(folder.isValid());
        ui::MetricTableView view;
        auto session = std::make_shared<core::Session>();
        session->metrics = table_of({row_of("some_model", core::Quantity::logits, 0.25, 0.0123)});
        view.setSession(session);
        const auto content = [&](const QString& name) {
            view.writeTo(folder.filePath(name));
            QFile file(folder.filePath(name));
            return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
        };
        QVERIFY(content(QStringLiteral("t.csv")).contains(QStringLiteral("some_model,encoder")));
        QVERIFY(content(QStringLiteral("t.md")).startsWith(u'|'));
        QVERIFY(content(QStringLiteral("t.tex")).contains(QStringLiteral("some\\_model")));
        QSignalSpy failed(&view, &ui::AnalysisView::failed);
        view.writeTo(folder.filePath(QStringLiteral("no/such/folder/t.csv")));
        QCOMPARE(failed.size(), 1);
    }

    void open_models_is_a_sound_model()
    {
        ui::AnalysisController controller;
        ui::OpenModelsModel model(&controller);
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
        QCOMPARE(model.currentRow(), -1);
        controller.open(QStringLiteral(POSISCOPE_TEST_DATA "/families/bert"));
        QTRY_COMPARE_WITH_TIMEOUT(model.rowCount(), 1, 30'000);
        QCOMPARE(model.currentRow(), 0);
        QCOMPARE(model.index(0).data().toString(), QStringLiteral("bert"));
        QVERIFY(model.index(0)
                    .data(ui::OpenModelsModel::sizes_role)
                    .toString()
                    .contains(QStringLiteral("4 heads")));
        controller.open(
            QStringLiteral(POSISCOPE_TEST_DATA "/families/bert")); // again: read afresh, not listed twice
        QTRY_VERIFY_WITH_TIMEOUT(!controller.isOpening(), 30'000);
        QCOMPARE(model.rowCount(), 1);
        controller.close(model.index(0).data(ui::OpenModelsModel::id_role).toInt());
        QCOMPARE(model.rowCount(), 0);
    }
};

QTEST_MAIN(TestUiModels)
#include "tst_ui_models.moc"
