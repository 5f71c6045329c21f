// SPDX-License-Identifier: GPL-3.0-or-later
#include <string>
#include <vector>

#include <QTest>

#include "core/model/tensor_names.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/expected_error.h"

namespace posiscope::core {
namespace {

using tests::refusal;

/// A checkpoint with tensors of these names, [2, 3] each, and the names found in it with the prefix "bert.".
class NamesOf {
public:
    explicit NamesOf(const std::vector<std::string>& file_names, DType dtype = DType::f32)
    {
        std::vector<tests::BuiltTensor> tensors;
        for (const std::string& name : file_names)
            tensors.push_back({name, {2, 3}, std::vector<float>(6, 1.0f), dtype});
        m_folder.write("model.safetensors", tests::safetensors_bytes(tensors));
        m_folder.write("config.json", "{}");
        m_checkpoint = *open_checkpoint(m_folder.path(), {});
        m_names = std::make_unique<TensorNames>(*m_checkpoint, std::vector<std::string_view>{"bert."});
    }

    const TensorNames* operator->() const { return m_names.get(); }

    /// The name in the file, or "" where the canonical one is not found.
    [[nodiscard]] QString find(std::string_view canonical) const
    {
        const TensorInfo* info = m_names->find(canonical);
        return info == nullptr ? QString() : QString::fromStdString(info->name);
    }

private:
    tests::TemporaryFolder m_folder;
    std::shared_ptr<const Checkpoint> m_checkpoint;
    std::unique_ptr<TensorNames> m_names;
};

} // namespace

class TestTensorNames : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void prefixes_are_taken_off_at_the_start_data()
    {
        QTest::addColumn<QString>("prefix");
        for (const char* prefix :
             {"", "bert.", "module.", "_orig_mod.", "_orig_mod.module.", "module._orig_mod.", "model.bert.",
              "module.model.bert.", "state_dict.module.bert.", "module.module."})
            QTest::newRow(*prefix == '\0' ? "none" : prefix) << QString::fromLatin1(prefix);
    }
    void prefixes_are_taken_off_at_the_start()
    {
        QFETCH(const QString, prefix);
        const QString name = prefix + QStringLiteral("encoder.layer.0.output.dense.weight");
        const NamesOf names({name.toStdString()});
        QCOMPARE(names.find("encoder.layer.0.output.dense.weight"), name);
    }

    void prefixes_are_left_alone_elsewhere()
    {
        const NamesOf names(
            {"encoder.module.layer.weight", "encoder.bert.bias", "modules.weight", "Bert.weight"});
        QCOMPARE(names.find("encoder.module.layer.weight"), QStringLiteral("encoder.module.layer.weight"));
        QCOMPARE(names.find("encoder.bert.bias"), QStringLiteral("encoder.bert.bias"));
        QCOMPARE(names.find("encoder.layer.weight"), QString());
        QCOMPARE(names.find("encoder.bias"), QString());
        QCOMPARE(names.find("weight"), QString());
        QCOMPARE(names.find("modules.weight"), QStringLiteral("modules.weight"));
    }

    void gamma_and_beta_are_read_in_pairs_of_a_layer_norm_only()
    {
        const NamesOf names({"bert.embeddings.LayerNorm.gamma", "bert.embeddings.LayerNorm.beta",
                             "encoder.layer.0.output.LayerNorm.gamma", // alone
                             "pooler.gamma", "pooler.beta", "LayerNorm.gamma.extra"});
        QCOMPARE(names.find("embeddings.LayerNorm.weight"),
                 QStringLiteral("bert.embeddings.LayerNorm.gamma"));
        QCOMPARE(names.find("embeddings.LayerNorm.bias"), QStringLiteral("bert.embeddings.LayerNorm.beta"));
        QCOMPARE(names.find("embeddings.LayerNorm.gamma"), QString());
        QCOMPARE(names.find("encoder.layer.0.output.LayerNorm.weight"), QString());
        QCOMPARE(names.find("encoder.layer.0.output.LayerNorm.gamma"),
                 QStringLiteral("encoder.layer.0.output.LayerNorm.gamma"));
        QCOMPARE(names.find("pooler.weight"), QString());
        QCOMPARE(names.find("pooler.gamma"), QStringLiteral("pooler.gamma"));
        QCOMPARE(names.find("LayerNorm.weight.extra"), QString());
    }

    void two_tensors_of_one_name_are_a_warning()
    {
        const NamesOf names({"bert.pooler.weight", "module.pooler.weight"});
        QCOMPARE(names.find("pooler.weight"), QStringLiteral("bert.pooler.weight"));
        QVERIFY(tests::any_holds(names->warnings(), {"bert.pooler.weight", "module.pooler.weight"}));
        QVERIFY(NamesOf({"a.weight", "b.weight"})->warnings().empty());
    }

    void shapes_and_types_are_checked()
    {
        const NamesOf names({"bert.pooler.weight"});
        QVERIFY(names->require("pooler.weight", {2, 3}));
        QVERIFY(names->require("pooler.weight", {-1, 3}));
        QVERIFY(names->require("pooler.weight", {-1, -1}));
        for (const Shape& shape : {Shape{3, 2}, Shape{2}, Shape{2, 3, 1}, Shape{-1, 4}, Shape{}}) {
            QCOMPARE(refusal(names->require("pooler.weight", shape), ErrorCode::shape_mismatch,
                             {"bert.pooler.weight", "model.safetensors", "[2, 3]"}),
                     QString());
            QCOMPARE(refusal(names->optional("pooler.weight", shape), ErrorCode::shape_mismatch, {}),
                     QString());
        }
        QCOMPARE(refusal(names->require("pooler.weight", {-1, 4}), ErrorCode::shape_mismatch, {"[any, 4]"}),
                 QString());
        const NamesOf whole({"pooler.weight"}, DType::i32);
        QCOMPARE(refusal(whole->require("pooler.weight", {2, 3}), ErrorCode::shape_mismatch,
                         {"pooler.weight", "I32"}),
                 QString());
    }

    void missing_tensors_are_named_with_the_nearest()
    {
        const NamesOf names({"bert.encoder.layer.0.attn.query.weight", "bert.encoder.layer.0.attn.key.weight",
                             "bert.encoder.layer.0.attn.value.weight", "bert.encoder.layer.0.attn.query.bias",
                             "zzz"});
        const auto absent = names->optional("encoder.layer.0.attention.query.weight", {2, 3});
        QVERIFY(absent && *absent == nullptr);
        const auto required = names->require("encoder.layer.0.attention.query.weight", {2, 3});
        QCOMPARE(refusal(required, ErrorCode::not_found,
                         {"model.safetensors", "'encoder.layer.0.attention.query.weight'", "nearest",
                          "'bert.encoder.layer.0.attn.query.weight'"}),
                 QString());
        QVERIFY(required.error().message.find("zzz") == std::string::npos);
        const auto nothing_near = NamesOf({"zzz"})->require("encoder.layer.0.attention.query.weight", {2, 3});
        QVERIFY(nothing_near.error().message.find("nearest") == std::string::npos);
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestTensorNames)
#include "tst_tensor_names.moc"
