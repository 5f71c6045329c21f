// SPDX-License-Identifier: GPL-3.0-or-later
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <QTest>

#include "core/kernels/kernel_set.h"
#include "core/kernels/thread_pool.h"
#include "core/probe/identical_word_probe.h"
#include "core/probe/word_choice.h"
#include "tests/support/brute_force_probe.h"
#include "tests/support/compare.h"
#include "tests/support/expected_error.h"

Q_DECLARE_METATYPE(posiscope::core::ProbeOptions)

namespace posiscope::core {
namespace {

using tests::any_holds;
using tests::brute_force;
using tests::CheckpointBuilder;
using tests::failure;
using tests::refusal;
using tests::relative_error;
using tests::TemporaryFolder;
using tests::TinyBert;

std::shared_ptr<const OpenModel> opened(const CheckpointBuilder& builder)
{
    const TemporaryFolder folder;
    builder.write_to(folder);
    return *open_model(folder.path(), {});
}

ProbeOptions options_of(std::int64_t length, std::size_t words = 10)
{
    ProbeOptions options;
    options.length = length;
    options.words.count = words;
    options.terms = true;
    return options;
}

ProbeOptions with_words(ProbeOptions options, std::vector<std::int64_t> ids)
{
    options.words.kind = WordSelection::Kind::listed;
    options.words.ids = std::move(ids);
    return options;
}

bool same_bits(const HostTensor& a, const HostTensor& b)
{
    return a.shape() == b.shape() && std::equal(a.values().begin(), a.values().end(), b.values().begin());
}

constexpr double tolerance = 2e-6; // of the largest magnitude; 2e-7 is measured

} // namespace

class TestIdenticalWordProbe : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void maps_are_those_of_the_definition_data()
    {
        QTest::addColumn<int>("hidden_size");
        QTest::addColumn<int>("heads");
        QTest::addColumn<int>("length");
        QTest::addColumn<int>("words");
        QTest::addColumn<bool>("special");
        QTest::addColumn<bool>("causal");
        QTest::addColumn<int>("seed");
        const auto row = [](int hidden, int heads, int length, int words, bool special, bool causal,
                            int seed) {
            QTest::addRow("hidden %d, %d heads, L %d, N %d%s%s, seed %d", hidden, heads, length, words,
                          special ? ", special" : "", causal ? ", causal" : "", seed)
                << hidden << heads << length << words << special << causal << seed;
        };
        row(8, 1, 5, 1, false, false, 1);
        row(16, 2, 1, 5, false, false, 2);
        row(16, 2, 2, 5, false, true, 3);
        row(16, 2, 3, 5, true, false, 4);
        row(32, 4, 33, 65, false, false, 5);
        row(32, 4, 33, 65, true, false, 6);
        row(32, 4, 33, 65, true, true, 7);
        row(48, 3, 17, 30, false, true, 8);
        row(64, 1, 33, 5, true, false, 9);
        row(128, 2, 17, 20, false, false, 10);
        row(16, 2, 130, 65, false, false, 11);
        row(16, 2, 5, 2100, false, false, 12);
    }
    void maps_are_those_of_the_definition()
    {
        QFETCH(const int, hidden_size);
        QFETCH(const int, heads);
        QFETCH(const int, length);
        QFETCH(const int, words);
        QFETCH(const bool, special);
        QFETCH(const bool, causal);
        QFETCH(const int, seed);
        TinyBert sizes;
        sizes.hidden_size = hidden_size;
        sizes.heads = heads;
        sizes.positions = length + 3;
        sizes.vocabulary = words + 20;
        sizes.seed = static_cast<std::uint64_t>(seed);
        CheckpointBuilder builder(sizes);
        if (causal) builder.config["is_decoder"] = true;
        const auto model = opened(builder);
        ProbeOptions options = options_of(length, static_cast<std::size_t>(words));
        options.variant = special ? InputVariant::special : InputVariant::plain;
        options.seed = static_cast<std::uint64_t>(seed);
        const auto probe = run_identical_word_probe(*model, options, {});
        QVERIFY2(probe, failure(probe).c_str());

        QCOMPARE(probe->word_ids.size(), static_cast<std::size_t>(words));
        const auto reference = tests::reference_layer(
            builder, {probe->word_ids, static_cast<std::size_t>(length), special, false, causal});
        const auto wanted = brute_force(reference, 0, probe->word_ids.size());
        QVERIFY(relative_error(probe->attention_logits.values(), wanted.logits) < tolerance);
        QVERIFY(relative_error(probe->attention_probabilities.values(), wanted.probabilities) < tolerance);

        const auto groups = group_sizes(probe->word_ids.size());
        QCOMPARE(probe->groups.word_counts, groups);
        const auto last = brute_force(reference, probe->word_ids.size() - groups.back(), groups.back());
        const std::size_t cells = wanted.logits.size();
        QVERIFY(relative_error(probe->groups.attention_logits.values().last(cells), last.logits) < tolerance);
        QVERIFY(relative_error(probe->groups.attention_probabilities.values().last(cells),
                               last.probabilities) < tolerance);

        std::vector<double> sum(cells, 0.0);
        for (const ProbeTerm& term : probe->terms)
            for (std::size_t n = 0; n < cells; ++n) sum[n] += static_cast<double>(term.values.values()[n]);
        QVERIFY(relative_error(sum, wanted.logits) < 2.0 * tolerance);
    }

    void the_result_says_what_it_is()
    {
        const auto model = opened(CheckpointBuilder());
        ProbeOptions options = with_words(options_of(7), {20, 9});
        options.variant = InputVariant::special;
        const auto probe = run_identical_word_probe(*model, options, {});
        QVERIFY2(probe, failure(probe).c_str());
        QCOMPARE(probe->options.stack, std::string("encoder"));
        QCOMPARE(probe->family, std::string("bert"));
        QCOMPARE(probe->scheme, std::string("absolute_learned"));
        QCOMPARE(probe->model_name, model->checkpoint->display_name());
        QCOMPARE(probe->heads, std::int64_t{2});
        QCOMPARE(probe->length, std::int64_t{7});
        QVERIFY(!probe->causal);
        QCOMPARE(probe->word_ids, (std::vector<std::int64_t>{20, 9}));
        QCOMPARE(probe->words, (std::vector<std::string>{"w20", "w9"}));
        QCOMPARE(probe->special_positions, (std::vector<std::int64_t>{0, 6}));
        QCOMPARE(probe->attention_logits.shape(), (Shape{2, 7, 7}));
        QCOMPARE(probe->way, ProbeWay::closed_form);
        QCOMPARE(probe_way_name(probe->way), std::string_view("closed_form"));
        QCOMPARE(probe->device, std::string("cpu"));
        QCOMPARE(probe->kernels, std::string(kernels().name));
        QVERIFY(probe->warnings.empty());
        QVERIFY(probe->seconds > 0.0);
    }

    void taking_the_positions_out_leaves_a_flat_map()
    {
        const CheckpointBuilder builder;
        const auto model = opened(builder);
        ProbeOptions options = options_of(12);
        options.no_positions = true;
        const auto probe = run_identical_word_probe(*model, options, {});
        const auto logits = std::as_const(probe->attention_logits).values();
        const double scale = tests::largest_magnitude(logits);
        for (std::size_t n = 0; n < logits.size(); ++n) {
            QVERIFY(std::abs(static_cast<double>(logits[n] - logits[n - n % 144])) < 1e-6 * scale);
            QVERIFY(std::abs(probe->attention_probabilities.values()[n] - 1.0f / 12.0f) < 1e-6f);
        }
        // Between special tokens there is still the content of those.
        options.variant = InputVariant::special;
        const auto special = run_identical_word_probe(*model, options, {});
        const auto wanted =
            brute_force(tests::reference_layer(builder, {special->word_ids, 12, true, true, false}), 0, 10);
        QVERIFY(relative_error(special->attention_logits.values(), wanted.logits) < tolerance);
        QVERIFY(relative_error(special->attention_probabilities.values(), wanted.probabilities) < tolerance);
    }

    void a_decoder_has_no_future()
    {
        CheckpointBuilder builder;
        builder.config["is_decoder"] = true;
        const auto probe = run_identical_word_probe(*opened(builder), options_of(9), {});
        QVERIFY(probe->causal);
        bool any_logit = false;
        for (std::size_t h = 0; h < 2; ++h)
            for (std::size_t i = 0; i < 9; ++i)
                for (std::size_t j = i + 1; j < 9; ++j) {
                    QCOMPARE(probe->attention_probabilities.matrix(h)(i, j), 0.0f);
                    any_logit = any_logit || probe->attention_logits.matrix(h)(i, j) != 0.0f;
                }
        QVERIFY(any_logit); // the mask is not applied to the logits
        QCOMPARE(probe->attention_probabilities.matrix(1)(0, 0), 1.0f);
    }

    void a_longer_input_only_adds_rows()
    {
        // Identical words: entry i, j does not know how long the input is.
        const auto model = opened(CheckpointBuilder());
        const auto small = run_identical_word_probe(*model, options_of(5), {});
        const auto large = run_identical_word_probe(*model, options_of(30), {});
        for (std::size_t i = 0; i < 5; ++i)
            for (std::size_t j = 0; j < 5; ++j)
                QVERIFY(std::abs(small->attention_logits.matrix(1)(i, j) -
                                 large->attention_logits.matrix(1)(i, j)) < 1e-5f);
    }

    void every_storage_type_gives_the_same_map()
    {
        TinyBert sizes;
        sizes.exact_values = true;
        CheckpointBuilder builder(sizes);
        const auto first = run_identical_word_probe(*opened(builder), options_of(9), {});
        QVERIFY2(first, failure(first).c_str());
        for (const DType dtype : {DType::f64, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2}) {
            builder.set_dtype(dtype);
            const auto other = run_identical_word_probe(*opened(builder), options_of(9), {});
            QVERIFY2(other, failure(other).c_str());
            QVERIFY(same_bits(other->attention_logits, first->attention_logits));
            QVERIFY(same_bits(other->attention_probabilities, first->attention_probabilities));
        }
    }

    void names_with_prefixes_give_the_same_map()
    {
        CheckpointBuilder builder;
        const auto first = run_identical_word_probe(*opened(builder), options_of(9), {});
        builder.add_prefix("_orig_mod.module.bert.");
        builder.tensors.push_back({"_orig_mod.module.cls.bias", {40}, std::vector<float>(40, 0.0f)});
        const auto other = run_identical_word_probe(*opened(builder), options_of(9), {});
        QVERIFY2(other, failure(other).c_str());
        QVERIFY(same_bits(other->attention_logits, first->attention_logits));
    }

    void a_zero_row_gives_no_nan()
    {
        CheckpointBuilder builder;
        for (const char* name :
             {tests::word_table_name, tests::position_table_name, "embeddings.token_type_embeddings.weight"})
            std::fill(builder.tensor(name).values.begin(), builder.tensor(name).values.end(), 0.0f);
        builder.config["layer_norm_eps"] = 1e-12;
        const auto probe = run_identical_word_probe(*opened(builder), options_of(6), {});
        QVERIFY2(probe, failure(probe).c_str());
        for (const float value : std::as_const(probe->attention_probabilities).values())
            QVERIFY(std::abs(value - 1.0f / 6.0f) < 1e-6f);
    }

    void the_whole_vocabulary_and_the_group_spread()
    {
        const auto model = opened(CheckpointBuilder());
        ProbeOptions options = options_of(6);
        options.words.kind = WordSelection::Kind::all;
        options.group_spread = false;
        options.probabilities = false;
        options.terms = false;
        const auto probe = run_identical_word_probe(*model, options, {});
        QCOMPARE(probe->word_ids.size(), std::size_t{32});
        QVERIFY(probe->groups.word_counts.empty());
        QVERIFY(probe->groups.attention_logits.empty());
        QVERIFY(probe->attention_probabilities.empty());
        QVERIFY(probe->terms.empty());
    }

    void the_same_bits_on_any_number_of_threads()
    {
        const auto model = opened(CheckpointBuilder());
        const auto run = [&](std::size_t threads) {
            set_thread_count(threads);
            return run_identical_word_probe(*model, options_of(33, 32), {});
        };
        const auto one = run(1);
        for (const std::size_t threads : {2, 4}) {
            const auto several = run(threads);
            QVERIFY(same_bits(several->attention_logits, one->attention_logits));
            QVERIFY(same_bits(several->groups.attention_probabilities, one->groups.attention_probabilities));
        }
        set_thread_count(default_thread_count());
    }

    void it_stops_at_the_first_progress()
    {
        const auto model = opened(CheckpointBuilder());
        std::stop_source stop;
        int calls = 0;
        const RunContext ctx{stop.get_token(), [&](const Progress&) {
                                 ++calls;
                                 stop.request_stop();
                             }};
        QCOMPARE(refusal(run_identical_word_probe(*model, options_of(33, 32), ctx), ErrorCode::cancelled, {}),
                 QString());
        QCOMPARE(calls, 1);
    }

    void senseless_options_are_refused_data()
    {
        QTest::addColumn<ProbeOptions>("options");
        QTest::addColumn<QStringList>("named");
        const auto row = [](const char* name, const QStringList& named, const auto& change) {
            ProbeOptions options;
            options.length = 10;
            change(options);
            QTest::newRow(name) << options << named;
        };
        const auto listed = [](ProbeOptions& options, std::vector<std::int64_t> ids,
                               std::vector<std::string> words = {}) {
            options.words.kind = WordSelection::Kind::listed;
            options.words.ids = std::move(ids);
            options.words.words = std::move(words);
        };
        row("length over the table", {"41", "40"}, [](ProbeOptions& o) { o.length = 41; });
        row("length far over the table", {"40"}, [](ProbeOptions& o) { o.length = INT64_MAX; });
        row("length 0", {"length 0", "at least 1"}, [](ProbeOptions& o) { o.length = 0; });
        row("length negative", {"-3"}, [](ProbeOptions& o) { o.length = -3; });
        row("no room between special tokens", {"length 2", "2 special"}, [](ProbeOptions& o) {
            o.length = 2;
            o.variant = InputVariant::special;
        });
        row("layer out of range", {"layer 1", "0 to 0"}, [](ProbeOptions& o) { o.layer = 1; });
        row("layer negative", {"layer -1"}, [](ProbeOptions& o) { o.layer = -1; });
        row("no such stack", {"'vision'", "'encoder'"}, [](ProbeOptions& o) { o.stack = "vision"; });
        row("padding token by id", {"0", "padding"}, [&](ProbeOptions& o) { listed(o, {0}); });
        row("padding token by name", {"'[PAD]'", "padding"},
            [&](ProbeOptions& o) { listed(o, {}, {"[PAD]"}); });
        row("unknown id", {"4711", "vocabulary"}, [&](ProbeOptions& o) { listed(o, {9, 4711}); });
        row("unknown word", {"'nowhere'", "vocabulary"},
            [&](ProbeOptions& o) { listed(o, {}, {"nowhere"}); });
        row("no words", {"0 words"}, [](ProbeOptions& o) { o.words.count = 0; });
        row("terms of a forward pass", {"terms"}, [](ProbeOptions& o) { o.terms = o.force_forward = true; });
        row("terms on a GPU", {"terms"}, [](ProbeOptions& o) {
            o.terms = true;
            o.device = DeviceChoice::cuda;
        });
    }
    void senseless_options_are_refused()
    {
        QFETCH(const ProbeOptions, options);
        QFETCH(const QStringList, named);
        std::vector<std::string> wanted;
        for (const QString& name : named) wanted.push_back(name.toStdString());
        QCOMPARE(refusal(run_identical_word_probe(*opened(CheckpointBuilder()), options, {}),
                         ErrorCode::invalid_argument, wanted),
                 QString());
    }

    void the_limits_themselves_are_allowed()
    {
        const auto model = opened(CheckpointBuilder());
        QVERIFY(run_identical_word_probe(*model, options_of(40), {}));
        QVERIFY(run_identical_word_probe(*model, options_of(1), {}));
        ProbeOptions special = options_of(3);
        special.variant = InputVariant::special;
        QVERIFY(run_identical_word_probe(*model, special, {}));
    }

    void special_tokens_that_are_not_known_are_said()
    {
        CheckpointBuilder builder;
        builder.words.clear();
        ProbeOptions options = options_of(9);
        options.variant = InputVariant::special;
        QCOMPARE(refusal(run_identical_word_probe(*opened(builder), options, {}), ErrorCode::invalid_argument,
                         {"special tokens", "vocabulary"}),
                 QString());
    }

    void a_layer_that_the_file_lacks_is_named()
    {
        TinyBert sizes;
        sizes.layers = 3;
        CheckpointBuilder builder(sizes);
        builder.remove("encoder.layer.1.attention.self.query.weight");
        const auto model = opened(builder);
        QVERIFY(run_identical_word_probe(*model, options_of(9), {}));
        for (const int layer : {1, 2}) {
            ProbeOptions options = options_of(9);
            options.terms = false;
            options.layer = layer;
            QCOMPARE(refusal(run_identical_word_probe(*model, options, {}), ErrorCode::not_found,
                             {"layer " + std::to_string(layer), "1 of 3",
                              "'encoder.layer.1.attention.self.query.weight'", "model.safetensors"}),
                     QString());
        }
    }

    void values_that_are_no_numbers_are_named_data()
    {
        QTest::addColumn<QString>("tensor");
        QTest::addColumn<float>("value");
        constexpr float nan = std::numeric_limits<float>::quiet_NaN();
        constexpr float infinity = std::numeric_limits<float>::infinity();
        QTest::newRow("position table") << tests::position_table_name << nan;
        QTest::newRow("word table") << tests::word_table_name << -infinity;
        QTest::newRow("query weight") << tests::query_weight_name << infinity;
        QTest::newRow("key bias") << "encoder.layer.0.attention.self.key.bias" << nan;
        QTest::newRow("norm gain") << "embeddings.LayerNorm.weight" << nan;
        QTest::newRow("token types") << "embeddings.token_type_embeddings.weight" << nan;
    }
    void values_that_are_no_numbers_are_named()
    {
        QFETCH(const QString, tensor);
        QFETCH(const float, value);
        CheckpointBuilder builder;
        // Two in a row that is read: word 9, position 9.
        auto& values = builder.tensor(tensor.toStdString()).values;
        const std::size_t at = values.size() > 9 * 16 + 1 ? 9 * 16 : 0;
        values[at] = values[at + 1] = value;
        QCOMPARE(refusal(run_identical_word_probe(*opened(builder), with_words(options_of(20), {9}), {}),
                         ErrorCode::numeric_failure, {tensor.toStdString(), "model.safetensors", "2 values"}),
                 QString());
    }

    void values_that_are_not_read_do_no_harm()
    {
        CheckpointBuilder builder;
        builder.tensor(tests::position_table_name).values.back() = std::numeric_limits<float>::quiet_NaN();
        const auto model = opened(builder);
        QVERIFY(run_identical_word_probe(*model, options_of(39), {}));
        QVERIFY(!run_identical_word_probe(*model, options_of(40), {}));
    }

    void logits_beyond_float32_are_an_error()
    {
        CheckpointBuilder builder;
        for (const char* name : {tests::query_weight_name, tests::key_weight_name})
            for (float& value : builder.tensor(name).values) value *= 1e30f;
        QCOMPARE(refusal(run_identical_word_probe(*opened(builder), options_of(5), {}),
                         ErrorCode::numeric_failure, {"layer 0", "too large"}),
                 QString());
    }

    void a_file_that_changes_before_the_probe_is_an_error()
    {
        const TemporaryFolder folder;
        const CheckpointBuilder builder;
        builder.write_to(folder);
        const std::string path = folder.file("model.safetensors");
        std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() -
                                                   std::chrono::hours(1));
        const auto model = *open_model(folder.path(), {});
        const auto before = run_identical_word_probe(*model, options_of(9), {});
        QVERIFY(before);
        std::filesystem::resize_file(path, 4000);
        QCOMPARE(refusal(run_identical_word_probe(*model, options_of(9), {}), ErrorCode::unreadable,
                         {"model.safetensors"}),
                 QString());
        folder.write("model.safetensors", tests::safetensors_bytes(builder.tensors));
        QCOMPARE(refusal(run_identical_word_probe(*model, options_of(9), {}), ErrorCode::unreadable,
                         {"model.safetensors", "changed"}),
                 QString());
        const auto again = run_identical_word_probe(**open_model(folder.path(), {}), options_of(9), {});
        QVERIFY(again && same_bits(again->attention_logits, before->attention_logits));
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestIdenticalWordProbe)
#include "tst_identical_word_probe.moc"
