// SPDX-License-Identifier: GPL-3.0-or-later
// Relative biases by offset: bucket edges as published, families' fixtures, and MPNet's trained bias.
#include <cmath>
#include <cstdlib>

#include <QTest>

#include "core/metrics/relative_bias.h"
#include "tests/support/expected_error.h"

namespace posiscope::core {
namespace {

std::shared_ptr<const OpenModel> opened(const std::string& name)
{
    auto model = open_model(name.starts_with("sample:") ? name : POSISCOPE_TEST_DATA "/families/" + name, {});
    return model ? *std::move(model) : nullptr;
}

} // namespace

class TestRelativeBias : public QObject {
    Q_OBJECT

private Q_SLOTS:
    // x-transformers PR 10, candle PR 1312: |offset| at which a bucket begins.
    void bucket_edges()
    {
        const std::vector<std::int64_t> both{0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91};
        const auto edges = offset_buckets({32, 128, true}, 300);
        for (const OffsetBucket& bucket : edges) {
            const std::int64_t number = bucket.bucket % 16;
            if (bucket.first > 0) {
                QCOMPARE(bucket.bucket, 16 + number);
                QCOMPARE(bucket.first, both[static_cast<std::size_t>(number)]);
            } else {
                QCOMPARE(bucket.bucket, number);
                QCOMPARE(-bucket.last, both[static_cast<std::size_t>(number)]);
            }
        }
        QCOMPARE(edges.size(), std::size_t{31}); // bucket 16, "the key follows at distance 0", is never used
        QCOMPARE(edges.front().bucket, std::int64_t{15});
        QCOMPARE(edges.back().bucket, std::int64_t{31});

        const std::vector<std::int64_t> back{16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113};
        const auto one_way = offset_buckets({32, 128, false}, 300);
        QCOMPARE(one_way.back(), (OffsetBucket{0, 0, 299})); // all that follows shares the bucket of 0
        for (const OffsetBucket& bucket : one_way) {
            if (bucket.bucket == 0) continue;
            const std::int64_t wanted =
                bucket.bucket < 16 ? bucket.bucket : back[static_cast<std::size_t>(bucket.bucket - 16)];
            QCOMPARE(-bucket.last, wanted);
        }
    }

    void mpnet_has_the_white_band()
    {
        const auto model = opened("sample:mpnet-base-positions");
        QVERIFY(model);
        const auto bias = read_relative_bias(*model, model->architecture.stacks.front(), 0, 128, {});
        QVERIFY2(bias, tests::failure(bias).c_str());
        QCOMPARE(bias->kind, RelativeBiasKind::bias);
        QCOMPARE(bias->heads.size(), std::size_t{12});
        const std::size_t centre = bias->profile.centre();
        QVERIFY(std::abs(bias->profile.mean[centre] + 6.9) < 0.05);
        QVERIFY(std::abs(bias->profile.mean[centre - 1] + 0.2) < 0.05);
        QVERIFY(std::abs(bias->profile.mean[centre + 1] + 0.7) < 0.05);
        QCOMPARE(bias->white_band.first, 0.0);
        QCOMPARE(bias->white_band.last, 0.0);
        QCOMPARE(bias->white_band.width, 1.0);
        QVERIFY(bias->white_band.depth > 6.0);
        // Toeplitz: nothing varies along a diagonal.
        for (const double sd : bias->profile.standard_deviation) QVERIFY(sd < 1e-6);
    }

    // transformers PR 8518, 7323: the decoder looks back only.
    void decoder_of_t5_looks_back_only()
    {
        const auto model = opened("t5");
        QVERIFY(model);
        const Stack* decoder = model->architecture.find_stack("decoder");
        QVERIFY(decoder != nullptr);
        const auto bias = read_relative_bias(*model, *decoder, 1, 20, {}); // the table stands in block 0 only
        QVERIFY2(bias, tests::failure(bias).c_str());
        QVERIFY(bias->causal);
        for (std::size_t k = 0; k < bias->profile.offsets.size(); ++k)
            QCOMPARE(std::isnan(bias->profile.mean[k]), bias->profile.offsets[k] > 0);
        const auto both = read_relative_bias(*model, *model->architecture.find_stack("encoder"), 0, 20, {});
        QVERIFY(both);
        QVERIFY(std::isfinite(both->profile.mean.back()));
    }

    void alibi_falls_in_a_line()
    {
        const auto model = opened("bloom");
        QVERIFY(model);
        const auto bias = read_relative_bias(*model, model->architecture.stacks.front(), 0, 10, {});
        QVERIFY2(bias, tests::failure(bias).c_str());
        const std::size_t centre = bias->profile.centre();
        for (const OffsetProfile& head : bias->head_profiles) {
            QCOMPARE(head.mean[centre], 0.0);
            const double slope = head.mean[centre] - head.mean[centre - 1];
            QVERIFY(slope > 0.0);
            for (std::size_t k = 1; k <= centre; ++k)
                QVERIFY(std::abs(head.mean[centre - k] + slope * static_cast<double>(k)) < 1e-5);
        }
    }

    void every_relative_scheme_has_a_bias_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<QString>("kind");
        for (const char* name : {"t5", "mpnet", "bloom", "mpt", "swin", "beit", "tupe"})
            QTest::addRow("%s", name) << name << "bias";
        for (const char* name : {"bert-relative_key", "bert-relative_key_query", "nezha", "xlnet",
                                 "transfo-xl", "deberta", "deberta-v2", "vits-shaw"})
            QTest::addRow("%s", name) << name << "constant_term";
        for (const char* name : {"llama", "gpt_neox", "gptj", "roformer"})
            QTest::addRow("%s", name) << name << "rotation";
    }
    void every_relative_scheme_has_a_bias()
    {
        QFETCH(QString, family);
        QFETCH(QString, kind);
        const auto model = opened(family.toStdString());
        QVERIFY(model);
        const auto bias = read_relative_bias(*model, model->architecture.stacks.front(), 0, 8, {});
        QVERIFY2(bias, tests::failure(bias).c_str());
        QCOMPARE(QString::fromStdString(std::string(relative_bias_kind_name(bias->kind))), kind);
        QVERIFY(lack_of_relative_bias(model->architecture.stacks.front()).empty());
        std::size_t finite = 0;
        for (const double value : bias->profile.mean) finite += std::isfinite(value) ? 1 : 0;
        QVERIFY(finite > 3);
        if (kind == QLatin1String("rotation"))
            QVERIFY(std::abs(bias->profile.mean[bias->profile.centre()] - 1.0) < 1e-6);
    }

    void refusals()
    {
        const auto bert = opened("bert");
        QVERIFY(bert);
        QCOMPARE(tests::refusal(read_relative_bias(*bert, bert->architecture.stacks.front(), 0, 8, {}),
                                ErrorCode::unsupported_model, {"bert", "learned absolute"}),
                 QString());
        const auto t5 = opened("t5");
        QVERIFY(t5);
        QCOMPARE(tests::refusal(read_relative_bias(*t5, t5->architecture.stacks.front(), 99, 8, {}),
                                ErrorCode::invalid_argument, {"layer 99"}),
                 QString());
        QCOMPARE(tests::refusal(read_relative_bias(*t5, t5->architecture.stacks.front(), 0, 1, {}),
                                ErrorCode::invalid_argument, {"length 1"}),
                 QString());
        std::stop_source source;
        source.request_stop();
        QCOMPARE(tests::refusal(read_relative_bias(*t5, t5->architecture.stacks.front(), 0, 8,
                                                   RunContext{source.get_token(), {}}),
                                ErrorCode::cancelled, {}),
                 QString());
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestRelativeBias)
#include "tst_relative_bias.moc"
