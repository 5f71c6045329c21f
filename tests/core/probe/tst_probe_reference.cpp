// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <QTest>

#include "core/metrics/metric_list.h"
#include "core/metrics/quantity.h"
#include "core/probe/identical_word_probe.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/compare.h"
#include "tests/support/expected_error.h"

namespace posiscope::core {
namespace {

using tests::failure;
using tests::relative_error;

/// Value of one metric of the probabilities' mean over heads.
double metric_of(const ProbeResult& probe, std::string_view id, PositionChoice positions)
{
    const PositionMap map = quantity_map(probe, Quantity::probabilities, mean_of_heads, positions);
    for (const Metric& metric : metric_list())
        if (metric.id == id) return metric.evaluate(map, Quantity::probabilities);
    return std::numeric_limits<double>::quiet_NaN();
}

} // namespace

/// The probe against LibTorch on models of other sizes, and against what is known of the embedded sample.
class TestProbeReference : public QObject {
    Q_OBJECT

private Q_SLOTS:
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
        constexpr double tolerance = 2e-6; // of the largest magnitude; 2e-7 is measured
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

QTEST_APPLESS_MAIN(posiscope::core::TestProbeReference)
#include "tst_probe_reference.moc"
