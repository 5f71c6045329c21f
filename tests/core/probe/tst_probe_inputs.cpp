// SPDX-License-Identifier: GPL-3.0-or-later
// What a probe is fed: contents of images and audio encoders, windows, segments, several layers, and their faults.
#include <QTest>

#include <cmath>
#include <filesystem>

#include "core/metrics/metric_list.h"
#include "core/model/engine.h"
#include "core/probe/identical_word_probe.h"
#include "core/session/layer_metrics.h"
#include "core/session/stack_maps.h"

using namespace posiscope::core;

namespace {

std::shared_ptr<const OpenModel> family(const std::string& name)
{
    auto model = open_model((std::filesystem::path(POSISCOPE_TEST_DATA) / "families" / name).string(), {});
    return model ? *std::move(model) : nullptr;
}

/// The message of a probe that must be refused.
std::string refusal(const OpenModel& model, const ProbeOptions& options)
{
    const auto probe = run_identical_word_probe(model, options, {});
    return probe ? "it was not refused" : probe.error().message;
}

ProbeOptions image_options(std::int64_t length)
{
    ProbeOptions options;
    options.length = length;
    options.words.count = 5;
    return options;
}

} // namespace

class TestProbeInputs : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void drawn_contents_follow_the_seed()
    {
        const auto model = family("vit");
        ProbeOptions options = image_options(36);
        const auto first = run_identical_word_probe(*model, options, {});
        const auto again = run_identical_word_probe(*model, options, {});
        options.seed = 1;
        const auto other = run_identical_word_probe(*model, options, {});
        QVERIFY(first && again && other);
        QCOMPARE(first->words.front(), std::string("patch 0"));
        QCOMPARE(first->grid_rows, 6);
        QVERIFY(std::equal(first->attention_logits.values().begin(), first->attention_logits.values().end(),
                           again->attention_logits.values().begin()));
        QVERIFY(!std::equal(first->attention_logits.values().begin(), first->attention_logits.values().end(),
                            other->attention_logits.values().begin()));
    }

    void an_image_has_one_length()
    {
        const auto model = family("vit");
        const Stack& stack = model->architecture.stacks.front();
        QVERIFY(!has_free_length(stack));
        QCOMPARE(default_length(stack, InputVariant::plain, 128), 36);
        QCOMPARE(default_length(stack, InputVariant::special, 128), 37);
        QVERIFY(QString::fromStdString(refusal(*model, image_options(17)))
                    .contains(QLatin1String("6 x 6 patches")));
    }

    void contents_of_another_shape_are_refused()
    {
        const auto model = family("vit");
        ProbeOptions options = image_options(36);
        options.content = std::make_shared<const HostTensor>(Shape{5, 3, 4, 5});
        const QString sentence = QString::fromStdString(refusal(*model, options));
        QVERIFY2(sentence.contains(QLatin1String("[5, 3, 4, 5]")) &&
                     sentence.contains(QLatin1String("[-1, 3, 4, 4]")),
                 qPrintable(sentence));
    }

    void patches_and_their_vectors_give_the_same_maps()
    {
        // A vector is what a patch becomes: zeros become the bias of the patches' map.
        const auto model = family("siglip");
        ProbeOptions options = image_options(36);
        options.stack = "vision";
        options.content = std::make_shared<const HostTensor>(Shape{1, 3, 4, 4});
        const auto patches = run_identical_word_probe(*model, options, {});
        QVERIFY2(patches, patches ? "" : patches.error().message.c_str());
        const auto bias = model->checkpoint->read(model->architecture.find_stack("vision")->patch_map.bias);
        QVERIFY(bias);
        options.content = std::make_shared<const HostTensor>(
            Shape{1, bias->dim(0)}, std::vector<float>(bias->values().begin(), bias->values().end()));
        const auto vectors = run_identical_word_probe(*model, options, {});
        QVERIFY2(vectors, vectors ? "" : vectors.error().message.c_str());
        QVERIFY(std::equal(patches->attention_logits.values().begin(),
                           patches->attention_logits.values().end(),
                           vectors->attention_logits.values().begin()));
    }

    void content_rows_go_with_words()
    {
        if (!load_engine()) QSKIP("the engine is not built");
        const auto model = family("whisper");
        ProbeOptions options;
        options.stack = "decoder";
        options.layer = 1;
        options.length = 9;
        options.words.kind = WordSelection::Kind::listed;
        options.words.ids = {17, 42};
        options.content = std::make_shared<const HostTensor>(Shape{3, 32});
        QVERIFY(
            QString::fromStdString(refusal(*model, options)).contains(QLatin1String("3 rows for 2 words")));
    }

    void windows_are_counted()
    {
        const auto model = family("swin");
        ProbeOptions options = image_options(36);
        options.layer = 1;
        options.window = 4;
        QVERIFY(QString::fromStdString(refusal(*model, options)).contains(QLatin1String("windows 0 to 3")));
    }

    void images_without_a_prefix_have_no_special_input()
    {
        const auto model = family("swin");
        ProbeOptions options = image_options(36);
        options.variant = InputVariant::special;
        QVERIFY(QString::fromStdString(refusal(*model, options)).contains(QLatin1String("no tokens before")));
        const auto beit = family("beit");
        QVERIFY(QString::fromStdString(refusal(*beit, image_options(36))).contains(QLatin1String("special")));
    }

    void tables_of_offsets_limit_the_length()
    {
        const auto model = family("bert-relative_key");
        ProbeOptions options;
        options.words.count = 3;
        options.length = 64;
        QVERIFY(run_identical_word_probe(*model, options, {}));
        options.length = 65;
        QVERIFY(QString::fromStdString(refusal(*model, options)).contains(QLatin1String("64 positions")));
    }

    void layers_are_sorted_and_taken_once()
    {
        const auto model = family("t5");
        ProbeOptions options;
        options.length = 9;
        options.words.count = 4;
        const auto probes = run_identical_word_probe(*model, options, {1, 0, 1}, {});
        QVERIFY(probes);
        QCOMPARE(probes->size(), std::size_t{2});
        QCOMPARE(probes->front().options.layer, 0);
        QCOMPARE(probes->back().way, ProbeWay::one_row);
        const auto none = run_identical_word_probe(*model, options, std::vector<int>{}, {});
        QVERIFY(!none);
    }

    void every_stack_has_its_curve_of_metrics()
    {
        const auto model = family("t5");
        ProbeOptions options;
        options.length = 9;
        options.words.count = 4;
        const auto metrics = compute_layer_metrics(*model, options, {}, {});
        QVERIFY(metrics);
        QCOMPARE(metrics->stacks.size(), std::size_t{2});
        for (const StackLayers& stack : metrics->stacks) {
            QCOMPARE(stack.layers, (std::vector<int>{0, 1}));
            QCOMPARE(stack.values.size(), metric_list().size());
            for (const auto& of_layers : stack.values) QCOMPARE(of_layers.size(), std::size_t{2});
            QCOMPARE(stack.distance.size(), std::size_t{2});
            QCOMPARE(stack.distance.front().size(), std::size_t{9});
        }
        // The same numbers as a probe of one layer.
        options.stack = "decoder";
        options.layer = 1;
        const auto one = run_identical_word_probe(*model, options, {});
        QVERIFY(one);
        const PositionMap map =
            quantity_map(*one, Quantity::constants_removed, mean_of_heads, PositionChoice::all);
        const auto list = metric_list();
        for (std::size_t m = 0; m < list.size(); ++m) {
            const double alone = list[m].evaluate(map, Quantity::constants_removed);
            const double in_curve = metrics->stacks.back().values[m][1];
            QVERIFY((std::isnan(alone) && std::isnan(in_curve)) || alone == in_curve);
        }
    }

    void stacks_stand_side_by_side()
    {
        const auto model = family("marian");
        ProbeOptions options;
        options.length = 9;
        options.words.count = 4;
        options.layer = 7; // beyond both: each shows its last
        const auto maps = compute_stack_maps(*model, options, {}, {});
        QVERIFY(maps);
        QCOMPARE(maps->stacks.size(), std::size_t{2});
        QVERIFY(!maps->stacks[0].causal && maps->stacks[1].causal);
        options.stack = "decoder";
        options.layer = maps->stacks[1].layer;
        const auto one = run_identical_word_probe(*model, options, {});
        QVERIFY(one);
        const PositionMap map =
            quantity_map(*one, Quantity::constants_removed, mean_of_heads, PositionChoice::all);
        for (std::size_t k = 0; k < map.values.size(); ++k)
            QVERIFY(map.values[k] == maps->stacks[1].map.values[k] ||
                    (std::isnan(map.values[k]) && std::isnan(maps->stacks[1].map.values[k])));
        QCOMPARE(maps->stacks[1].distance.distance.front(), 0.0); // the first query sees itself alone

        std::stop_source source;
        RunContext ctx;
        ctx.stop = source.get_token();
        source.request_stop();
        const auto stopped = compute_stack_maps(*model, options, {}, ctx);
        QVERIFY(!stopped);
        QCOMPARE(stopped.error().code, ErrorCode::cancelled);
    }

    void metrics_by_layer_stop_when_asked()
    {
        const auto model = family("bert");
        std::stop_source source;
        RunContext ctx;
        ctx.stop = source.get_token();
        ctx.progress = [&](const Progress&) { source.request_stop(); };
        ProbeOptions options;
        options.length = 17;
        const auto metrics = compute_layer_metrics(*model, options, {}, ctx);
        QVERIFY(!metrics);
        QCOMPARE(metrics.error().code, ErrorCode::cancelled);
    }
};

QTEST_APPLESS_MAIN(TestProbeInputs)
#include "tst_probe_inputs.moc"
