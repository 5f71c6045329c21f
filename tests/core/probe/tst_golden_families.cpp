// SPDX-License-Identifier: GPL-3.0-or-later
#include <string>
#include <vector>

#include <QtTest>

#include "core/metrics/metric_list.h"
#include "core/metrics/quantity.h"
#include "core/probe/identical_word_probe.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/compare.h"
#include "tests/support/expected_error.h"
#include "tests/support/npy_file.h"

namespace posiscope::core {
namespace {

using tests::failure;
using tests::read_golden;
using tests::relative_error;

constexpr double tolerance = 2e-6; // of the map's largest magnitude; 2e-7 is measured

ProbeOptions golden_options(const QString& variant, int layer)
{
    ProbeOptions options;
    options.length = 17;
    options.layer = layer;
    options.variant = variant == QStringLiteral("special") ? InputVariant::special : InputVariant::plain;
    options.words.kind = WordSelection::Kind::listed;
    options.words.ids = {17, 42, 66, 91, 113, 138, 160, 187};
    return options;
}

/// Value of one metric of the probabilities' mean over heads.
double metric_of(const ProbeResult& probe, std::string_view id, PositionChoice positions)
{
    const PositionMap map = quantity_map(probe, Quantity::probabilities, mean_of_heads, positions);
    for (const Metric& metric : metric_list())
        if (metric.id == id) return metric.evaluate(map, Quantity::probabilities);
    return std::numeric_limits<double>::quiet_NaN();
}

} // namespace

/// Probes of the fixture families against arrays that PyTorch made from the same files.
class TestGoldenFamilies : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void maps_are_the_golden_ones_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<QString>("variant");
        QTest::addColumn<int>("layer");
        QTest::addColumn<bool>("forward");
        for (const char* variant : {"plain", "special"}) {
            QTest::addRow("bert, %s, layer 0", variant) << "bert" << variant << 0 << false;
#ifdef POSISCOPE_HAS_ENGINE
            for (const int layer : {0, 1})
                QTest::addRow("bert, %s, layer %d, forward", variant, layer)
                    << "bert" << variant << layer << true;
#endif
        }
    }
    void maps_are_the_golden_ones()
    {
        QFETCH(const QString, family);
        QFETCH(const QString, variant);
        QFETCH(const int, layer);
        QFETCH(const bool, forward);
        const auto model = open_model(POSISCOPE_TEST_DATA "/families/" + family.toStdString(), {});
        QVERIFY2(model, failure(model).c_str());
        ProbeOptions options = golden_options(variant, layer);
        options.force_forward = forward;
        options.device = DeviceChoice::cpu;
        const auto probe = run_identical_word_probe(**model, options, {});
        QVERIFY2(probe, failure(probe).c_str());
        QCOMPARE(probe->way, forward ? ProbeWay::forward : ProbeWay::closed_form);
        const std::string name = variant.toStdString() + ".enc.layer" + std::to_string(layer);
        const auto logits = read_golden(family.toStdString(), name + ".logits");
        const auto probabilities = read_golden(family.toStdString(), name + ".probs");
        QCOMPARE(probe->attention_logits.shape(), logits.shape);
        QVERIFY(relative_error(probe->attention_logits.values(), logits.values) < tolerance);
        QVERIFY(relative_error(probe->attention_probabilities.values(), probabilities.values) < tolerance);
        for (std::size_t row = 0; row < probabilities.values.size() / 17; ++row) {
            double sum = 0.0;
            for (std::size_t j = 0; j < 17; ++j)
                sum += static_cast<double>(probe->attention_probabilities.values()[row * 17 + j]);
            QVERIFY(std::abs(sum - 1.0) < 1e-5);
        }
    }

    void terms_are_the_golden_ones()
    {
        const auto model = open_model(POSISCOPE_TEST_DATA "/families/bert", {});
        ProbeOptions options = golden_options(QStringLiteral("plain"), 0);
        options.terms = true;
        const auto probe = run_identical_word_probe(**model, options, {});
        QVERIFY2(probe, failure(probe).c_str());
        QCOMPARE(probe->terms.size(), std::size_t{4});
        for (const ProbeTerm& term : probe->terms) {
            const auto golden = read_golden("bert", "plain.enc.layer0.terms." + term.id);
            QCOMPARE(term.values.shape(), golden.shape);
            QVERIFY2(relative_error(term.values.values(), golden.values) < tolerance, term.id.c_str());
        }
    }

#ifdef POSISCOPE_HAS_ENGINE
    void closed_form_and_forward_pass_agree_data()
    {
        QTest::addColumn<bool>("special");
        QTest::addColumn<bool>("causal");
        for (const bool special : {false, true})
            for (const bool causal : {false, true})
                QTest::addRow("%s, %s", special ? "special" : "plain", causal ? "decoder" : "encoder")
                    << special << causal;
    }
    void closed_form_and_forward_pass_agree()
    {
        QFETCH(const bool, special);
        QFETCH(const bool, causal);
        tests::TinyBert sizes;
        sizes.hidden_size = 96;
        sizes.heads = 3;
        sizes.vocabulary = 120;
        tests::CheckpointBuilder builder(sizes);
        if (causal) builder.config["is_decoder"] = true;
        const tests::TemporaryFolder folder;
        builder.write_to(folder);
        const auto model = *open_model(folder.path(), {});
        ProbeOptions options;
        options.length = 21;
        options.words.count = 70;
        options.variant = special ? InputVariant::special : InputVariant::plain;
        const auto closed = run_identical_word_probe(*model, options, {});
        QVERIFY2(closed, failure(closed).c_str());
        options.force_forward = true;
        options.device = DeviceChoice::cpu;
        const auto forward = run_identical_word_probe(*model, options, {});
        QVERIFY2(forward, failure(forward).c_str());
        QCOMPARE(forward->word_ids, closed->word_ids);
        QCOMPARE(forward->groups.word_counts, closed->groups.word_counts);
        const auto same = [](const HostTensor& a, const HostTensor& b) {
            return a.shape() == b.shape() && relative_error(a.values(), b.values()) < tolerance;
        };
        QVERIFY(same(forward->attention_logits, closed->attention_logits));
        QVERIFY(same(forward->attention_probabilities, closed->attention_probabilities));
        QVERIFY(same(forward->groups.attention_logits, closed->groups.attention_logits));
        QVERIFY(same(forward->groups.attention_probabilities, closed->groups.attention_probabilities));
    }
#endif

    /// Wang et al. 2021 found BERT's position embeddings to be translation-invariant but for the first position; so
    /// they are in the sentence encoder inside the program.
    void the_sample_shows_what_the_paper_found()
    {
        const auto model = open_model("sample:minilm-l6-first-layer", {});
        QVERIFY2(model, failure(model).c_str());
        const ProbeOptions options; // 300 words, L = 128, plain, seed 0
        const auto probe = run_identical_word_probe(**model, options, {});
        QVERIFY2(probe, failure(probe).c_str());
        QCOMPARE(probe->word_ids.size(), std::size_t{300});
        const auto close = [&](std::string_view id, PositionChoice positions, double wanted, double allowed) {
            return std::abs(metric_of(*probe, id, positions) - wanted) < allowed;
        };
        QVERIFY(close("translation_invariance_violation", PositionChoice::all, 0.1892, 0.002));
        QVERIFY(close("translation_invariance_violation", PositionChoice::without_first, 0.0186, 0.002));
        QVERIFY(close("first_position_extra", PositionChoice::all, 5.9, 0.1));
        QVERIFY(metric_of(*probe, "direction_balance", PositionChoice::without_first) > 0.0);
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestGoldenFamilies)
#include "tst_golden_families.moc"
