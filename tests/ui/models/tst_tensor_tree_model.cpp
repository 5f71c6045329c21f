// SPDX-License-Identifier: GPL-3.0-or-later
#include <QAbstractItemModelTester>
#include <QStringList>
#include <QTest>

#include <memory>
#include <vector>

#include "tests/support/checkpoint_builder.h"
#include "ui/models/cached_models_model.h"
#include "ui/models/tensor_tree_model.h"

using namespace posiscope;
using ui::CachedModelsModel;
using ui::TensorTreeFilter;
using ui::TensorTreeModel;

namespace {

std::shared_ptr<const core::Checkpoint> checkpoint_of(const std::vector<tests::BuiltTensor>& tensors)
{
    const tests::TemporaryFolder folder;
    folder.write("config.json", "{}");
    folder.write("model.safetensors", tests::safetensors_bytes(tensors));
    const auto opened = core::open_checkpoint(folder.path(), {});
    return opened ? *opened : nullptr;
}

tests::BuiltTensor zeros(const std::string& name, core::Shape shape, core::DType dtype = core::DType::f32)
{
    std::size_t size = 1;
    for (const std::int64_t axis : shape) size *= static_cast<std::size_t>(axis);
    return {name, std::move(shape), std::vector<float>(size, 0.0f), dtype};
}

QStringList names_below(const QAbstractItemModel& model, const QModelIndex& parent = {})
{
    QStringList names;
    for (int row = 0; row < model.rowCount(parent); ++row)
        names.append(model.index(row, TensorTreeModel::name_column, parent).data().toString());
    return names;
}

} // namespace

class TestTensorTreeModel : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void it_is_a_sound_model()
    {
        TensorTreeModel model;
        TensorTreeFilter filter;
        filter.setSourceModel(&model);
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
        const QAbstractItemModelTester filter_tester(&filter,
                                                     QAbstractItemModelTester::FailureReportingMode::Fatal);
        model.setCheckpoint(checkpoint_of({zeros("layer.10.weight", {2, 3}), zeros("layer.2.weight", {2, 3}),
                                           zeros("layer.2.bias", {3}), zeros("scale", {})}));
        filter.setText(QStringLiteral("WEIGHT"));
        filter.setText({});
        model.setCheckpoint(nullptr);
        QCOMPARE(model.rowCount(), 0);
    }

    void names_are_split_at_dots_and_sorted_as_people_count()
    {
        TensorTreeModel model;
        model.setCheckpoint(checkpoint_of({zeros("layer.10.weight", {2, 3}), zeros("layer.9.b", {1}),
                                           zeros("layer.2.weight", {2, 3}), zeros("emb", {40, 16})}));
        QCOMPARE(names_below(model), (QStringList{QStringLiteral("emb"), QStringLiteral("layer")}));
        const QModelIndex layers = model.index(1, 0);
        QCOMPARE(names_below(model, layers),
                 (QStringList{QStringLiteral("2"), QStringLiteral("9"), QStringLiteral("10")}));
        const QModelIndex weight = model.indexOf("layer.10.weight");
        QVERIFY(weight.isValid());
        QCOMPARE(weight.parent(), model.index(2, 0, layers));
        QCOMPARE(weight.data(TensorTreeModel::tensor_role).toString(), QStringLiteral("layer.10.weight"));
        QVERIFY(model.indexOf("layer.10.weight").isValid());
        QVERIFY(!model.indexOf("layer.10").isValid()); // a group is no tensor
        QVERIFY(!model.indexOf("layer.10.weight.more").isValid());
        QVERIFY(!model.indexOf("").isValid());
    }

    void columns_tell_shape_type_and_size()
    {
        TensorTreeModel model;
        model.setCheckpoint(
            checkpoint_of({zeros("a.w", {30'522, 4}, core::DType::f16), zeros("a.b", {4}), zeros("s", {})}));
        const QModelIndex w = model.indexOf("a.w");
        QCOMPARE(w.siblingAtColumn(TensorTreeModel::shape_column).data().toString(),
                 QStringLiteral("30\u2009522 \u00D7 4"));
        QCOMPARE(w.siblingAtColumn(TensorTreeModel::type_column).data().toString(), QStringLiteral("F16"));
        QCOMPARE(w.siblingAtColumn(TensorTreeModel::size_column).data().toString(),
                 QStringLiteral("244\u00A0kB"));
        const QModelIndex group = w.parent();
        QCOMPARE(group.siblingAtColumn(TensorTreeModel::shape_column).data().toString(),
                 QStringLiteral("2 tensors"));
        QCOMPARE(group.siblingAtColumn(TensorTreeModel::type_column).data().toString(), QString());
        QCOMPARE(model.indexOf("s").siblingAtColumn(TensorTreeModel::shape_column).data().toString(),
                 QStringLiteral("scalar"));
    }

    void a_name_may_be_a_tensor_and_a_group()
    {
        TensorTreeModel model;
        model.setCheckpoint(checkpoint_of({zeros("gamma", {2}), zeros("gamma.more", {3}), zeros("..", {1})}));
        const QModelIndex gamma = model.indexOf("gamma");
        QVERIFY(gamma.isValid());
        QCOMPARE(model.rowCount(gamma), 1);
        QCOMPARE(model.indexOf("gamma.more").parent(), gamma);
        QVERIFY(model.indexOf("..").isValid());
    }

    void a_filter_keeps_what_holds_the_text_and_the_rows_above()
    {
        TensorTreeModel model;
        TensorTreeFilter filter;
        filter.setSourceModel(&model);
        model.setCheckpoint(checkpoint_of({zeros("enc.0.Query.weight", {2}), zeros("enc.0.key.weight", {2}),
                                           zeros("dec.0.key.weight", {2})}));
        filter.setText(QStringLiteral("0.query")); // over a dot, whatever the case
        QCOMPARE(names_below(filter), QStringList{QStringLiteral("enc")});
        const QModelIndex layer = filter.index(0, 0, filter.index(0, 0));
        QCOMPARE(names_below(filter, layer), QStringList{QStringLiteral("Query")});
        filter.setText(QStringLiteral("nothing"));
        QCOMPARE(filter.rowCount(), 0);
        filter.setText({});
        QCOMPARE(filter.rowCount(), 2);
    }

    void natural_order()
    {
        QVERIFY(ui::natural_less("2", "10"));
        QVERIFY(!ui::natural_less("10", "2"));
        QVERIFY(ui::natural_less("layer_9_x", "layer_10_a"));
        QVERIFY(ui::natural_less("a", "a1"));
        QVERIFY(ui::natural_less("a1", "b0"));
        QVERIFY(!ui::natural_less("a", "a"));
        // Equal numbers are still two names: one comes first, always the same.
        QVERIFY(ui::natural_less("01", "1") != ui::natural_less("1", "01"));
        QVERIFY(ui::natural_less("99999999999999999999", "100000000000000000000"));
    }

    void cached_models_sort_by_size_as_a_number()
    {
        CachedModelsModel model;
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
        model.setModels({{"org/small", "/a", "main", "bert", 999'900},
                         {"org/large", "/b", "0123456789abcdef0123456789abcdef01234567", "", 12'000'000}});
        QCOMPARE(model.index(0, CachedModelsModel::size_column).data().toString(),
                 QStringLiteral("1.00\u00A0MB"));
        QVERIFY(
            model.index(0, CachedModelsModel::size_column).data(CachedModelsModel::sort_role).toULongLong() <
            model.index(1, CachedModelsModel::size_column).data(CachedModelsModel::sort_role).toULongLong());
        QCOMPARE(model.index(1, CachedModelsModel::family_column).data().toString(),
                 QStringLiteral("\u2013"));
        QCOMPARE(model.index(1, CachedModelsModel::revision_column).data().toString(),
                 QStringLiteral("0123456789"));
        QCOMPARE(model.index(1, 0).data(CachedModelsModel::location_role).toString(), QStringLiteral("/b"));
    }
};

QTEST_MAIN(TestTensorTreeModel)
#include "tst_tensor_tree_model.moc"
