// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <QFloat16> // JSON asks what it can become
#include <QTest>

#include <nlohmann/json.hpp>

#include "core/model/families/rotary_config.h"
#include "core/probe/identical_word_probe.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/expected_error.h"

namespace posiscope::core {
namespace {

using nlohmann::json;

constexpr std::int64_t head_dim = 16;

Result<RotarySettings> read(const char* text)
{
    return read_rotary_settings(ConfigJson(json::parse(text), "config.json"), head_dim, {});
}

/// The llama fixture with other keys in its config.
std::shared_ptr<const OpenModel> opened_with(const char* changes)
{
    const std::string fixture = std::string(POSISCOPE_TEST_DATA) + "/families/llama/";
    const auto bytes = [&](const char* name) {
        std::ifstream file(fixture + name, std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(file), {});
    };
    auto config = json::parse(bytes("config.json"));
    config.erase("rope_parameters");
    config.update(json::parse(changes));
    const tests::TemporaryFolder folder;
    folder.write("config.json", config.dump());
    folder.write("model.safetensors", bytes("model.safetensors"));
    return *open_model(folder.path(), {});
}

ProbeResult probed(const OpenModel& model, std::int64_t length, InputVariant variant = InputVariant::plain)
{
    ProbeOptions options;
    options.length = length;
    options.variant = variant;
    options.words.kind = WordSelection::Kind::listed;
    options.words.ids = {17, 42, 66};
    return *run_identical_word_probe(model, options, {});
}

} // namespace

/// Rotary positions that are scaled to longer inputs.
class TestRotaryConfig : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void frequencies_are_those_of_transformers_data()
    {
        // ROPE_INIT_FUNCTIONS of transformers 5.24.0 (float32) on LlamaConfig with head_dim 16.
        QTest::addColumn<QByteArray>("config");
        QTest::addColumn<int>("length");
        QTest::addColumn<double>("attention_factor");
        QTest::addColumn<QList<double>>("frequencies");
        const auto row = [](const char* title, const char* config, int length, double attention_factor,
                            const QList<double>& frequencies) {
            QTest::newRow(title) << QByteArray(config) << length << attention_factor << frequencies;
        };
        const QList<double> plain{1.0,  0.316227764,   0.100000001,   0.0316227786,
                                  0.01, 0.00316227786, 0.00100000005, 0.000316227786};
        row("none", R"({"rope_theta": 10000.0})", 128, 1.0, plain);
        row("default, new", R"({"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}})", 128,
            1.0, plain);
        row("null", R"({"rope_theta": 10000.0, "rope_scaling": null})", 128, 1.0, plain);
        row("linear, old", R"({"rope_theta": 10000.0, "rope_scaling": {"type": "linear", "factor": 4.0}})",
            128, 1.0,
            {0.25, 0.079056941, 0.0250000004, 0.00790569466, 0.00249999994, 0.000790569466, 0.000250000012,
             7.90569466e-05});
        row("linear, half of the features",
            R"({"rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0,
                                    "partial_rotary_factor": 0.5}})",
            128, 1.0, {0.5, 0.0500000007, 0.00499999989, 0.000500000024});
        const char* dynamic = R"({"max_position_embeddings": 2048, "rope_theta": 10000.0,
                                  "rope_scaling": {"type": "dynamic", "factor": 2.0}})";
        row("dynamic, short", dynamic, 128, 1.0, plain);
        row("dynamic, as trained", dynamic, 2048, 1.0, plain);
        row("dynamic, twice", dynamic, 4096, 1.0,
            {1.0, 0.270296127, 0.0730599985, 0.0197478328, 0.00533776265, 0.00144277664, 0.000389976922,
             0.000105409257});
        row("dynamic, four times", dynamic, 8192, 1.0,
            {1.0, 0.239481375, 0.057351321, 0.0137345716, 0.00328917382, 0.00078769587, 0.000188638471,
             4.51753949e-05});
        const QList<double> llama3{1.0,
                                   0.193922758,
                                   0.0376060307,
                                   0.00729266508,
                                   0.000524846022,
                                   3.42810235e-05,
                                   6.64786967e-06,
                                   1.28917316e-06};
        row("llama3, old", R"({"max_position_embeddings": 131072, "rope_theta": 500000.0,
              "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                               "original_max_position_embeddings": 8192}})",
            128, 1.0, llama3);
        row("llama3, new", R"({"max_position_embeddings": 131072,
              "rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
                                  "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}})",
            128, 1.0, llama3);
        const QList<double> yarn{1.0,           0.316227764,    0.0812500045,   0.0197642371,
                                 0.00437500002, 0.000790569466, 0.000250000012, 7.90569466e-05};
        row("yarn", R"({"max_position_embeddings": 4096, "rope_theta": 10000.0,
              "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024}})",
            128, 1.138629436111989, yarn);
        row("yarn, factor from the lengths", R"({"max_position_embeddings": 4096, "rope_theta": 10000.0,
              "rope_scaling": {"type": "yarn", "factor": null, "original_max_position_embeddings": 1024}})",
            128, 1.138629436111989, yarn);
        row("yarn with weights", R"({"max_position_embeddings": 163840, "rope_theta": 10000.0,
              "rope_scaling": {"rope_type": "yarn", "factor": 40.0, "mscale": 1.0, "mscale_all_dim": 0.5, "beta_fast": 16,
                               "beta_slow": 2, "truncate": false, "original_max_position_embeddings": 4096}})",
            128, 1.1557219901962608,
            {1.0, 0.316227764, 0.100000001, 0.0316227786, 0.00579010462, 0.000123952457, 2.49999994e-05,
             7.90569447e-06});
        row("yarn with its own factor", R"({"max_position_embeddings": 131072,
              "rope_parameters": {"rope_type": "yarn", "rope_theta": 1000000.0, "factor": 4.0, "attention_factor": 1.25,
                                  "original_max_position_embeddings": 32768}})",
            128, 1.25,
            {1.0, 0.177827939, 0.0316227786, 0.00421755994, 0.000500000024, 4.44569851e-05, 7.90569356e-06,
             1.40585337e-06});
        const char* longrope =
            R"({"max_position_embeddings": 131072, "original_max_position_embeddings": 4096,
              "rope_theta": 10000.0,
              "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.1, 1.2, 1.3, 1.5, 2.0, 2.5, 3.0],
                               "long_factor": [1.0, 1.5, 2.5, 4.0, 8.0, 16.0, 24.0, 32.0]}})";
        const QList<double> short_frequencies{1.0,           0.287479758,   0.0833333358,  0.0243252143,
                                              0.00666666683, 0.00158113893, 0.00039999999, 0.000105409257};
        row("longrope, short", longrope, 128, 1.1902380714238083, short_frequencies);
        row("longrope, as trained", longrope, 4096, 1.1902380714238083, short_frequencies);
        row("longrope, long", longrope, 5000, 1.1902380714238083,
            {1.0, 0.210818499, 0.0399999991, 0.00790569466, 0.00124999997, 0.000197642366, 4.16666662e-05,
             9.88211832e-06});
    }

    void frequencies_are_those_of_transformers()
    {
        QFETCH(const QByteArray, config);
        QFETCH(const int, length);
        QFETCH(const double, attention_factor);
        QFETCH(const QList<double>, frequencies);
        const auto settings = read(config.constData());
        QVERIFY2(settings, tests::failure(settings).c_str());
        QVERIFY(std::abs(settings->scheme.attention_factor - attention_factor) < 1e-12);
        const auto found = rotary_frequencies(settings->scheme, length);
        QCOMPARE(found.size(), static_cast<std::size_t>(frequencies.size()));
        for (std::size_t k = 0; k < found.size(); ++k) {
            const double expected = frequencies[static_cast<qsizetype>(k)];
            QVERIFY2(
                std::abs(found[k] - expected) <= 1e-6 * expected,
                qPrintable(
                    QString("pair %1: %2, not %3").arg(k).arg(found[k], 0, 'g', 9).arg(expected, 0, 'g', 9)));
        }
        HostTensor cosines, sines;
        rotary_tables(settings->scheme, 3, cosines, sines);
        QVERIFY(std::abs(static_cast<double>(cosines.data()[0]) - attention_factor) < 1e-6);
        QCOMPARE(sines.data()[0], 0.0f);
        const auto pairs = static_cast<std::size_t>(cosines.dim(1));
        const auto frequency = rotary_frequencies(settings->scheme, 3).back();
        QVERIFY(std::abs(static_cast<double>(sines.data()[3 * pairs - 1]) -
                         attention_factor * std::sin(2.0 * frequency)) < 1e-6);
    }

    void senseless_settings_are_refused_data()
    {
        QTest::addColumn<QByteArray>("config");
        QTest::addColumn<QString>("named");
        const auto row = [](const char* config, const char* named) {
            QTest::newRow(named) << QByteArray(config) << QString(named);
        };
        row(R"({"rope_scaling": {"type": "proportional", "factor": 2.0}})", "'proportional'");
        row(R"({"rope_scaling": {"type": "mrope"}})", "llama3, yarn");
        row(R"({"rope_parameters": {"full_attention": {"rope_type": "default"}}})", "'full_attention'");
        row(R"({"rope_scaling": {"type": "linear"}})", "'factor' is missing");
        row(R"({"rope_scaling": {"type": "linear", "factor": 0}})", "'factor' is 0");
        row(R"({"rope_scaling": {"type": "linear", "factor": -2}})", "-2");
        row(R"({"rope_scaling": {"type": "linear", "factor": "2"}})", "'2'");
        row(R"({"rope_scaling": {"type": 3}})", "'type' is 3");
        row(R"({"rope_scaling": {"type": "dynamic", "factor": 2.0}})", "max_position_embeddings");
        row(R"({"max_position_embeddings": 64, "rope_scaling": {"rope_type": "llama3", "factor": 8.0,
                "low_freq_factor": 4.0, "high_freq_factor": 1.0}})",
            "high_freq_factor");
        row(R"({"max_position_embeddings": 64, "rope_scaling": {"type": "longrope", "short_factor": [1.0],
                "long_factor": [1.0]}})",
            "'short_factor' must list 8 positive numbers");
        row(R"({"max_position_embeddings": 64, "rope_scaling": {"type": "su"}})", "'short_factor'");
        row(R"({"rope_theta": 0.5})", "no rotation");
        row(R"({"partial_rotary_factor": 0.05})", "the share of turned features");
    }
    void senseless_settings_are_refused()
    {
        QFETCH(const QByteArray, config);
        QFETCH(const QString, named);
        const auto settings = read(config.constData());
        QVERIFY(!settings);
        QVERIFY2(QString::fromStdString(settings.error().message).contains(named),
                 settings.error().message.c_str());
        QVERIFY(settings.error().message.find("config.json") != std::string::npos);
    }

    void the_attention_factor_enters_logits_squared()
    {
        // Factor 1 stretches nothing; 1.5 on queries and on keys.
        const auto plain = opened_with(R"({"rope_theta": 10000.0})");
        const auto scaled = opened_with(
            R"({"rope_theta": 10000.0, "rope_scaling": {"type": "yarn", "factor": 1.0, "attention_factor": 1.5}})");
        QVERIFY(tests::any_holds(scaled->warnings, {"'yarn'"}));
        for (const auto variant : {InputVariant::plain, InputVariant::special}) {
            const auto expected = probed(*plain, 9, variant).attention_logits;
            const auto found = probed(*scaled, 9, variant).attention_logits;
            QCOMPARE(found.shape(), expected.shape());
            double largest = 0.0, worst = 0.0;
            for (std::size_t n = 0; n < expected.size(); ++n) {
                largest = std::max(largest, std::abs(2.25 * static_cast<double>(expected.data()[n])));
                worst = std::max(worst, std::abs(static_cast<double>(found.data()[n]) -
                                                 2.25 * static_cast<double>(expected.data()[n])));
            }
            QVERIFY2(worst <= 1e-5 * largest, qPrintable(QString::number(worst)));
        }
    }

    void a_length_beyond_training_changes_the_map()
    {
        const char* dynamic = R"({"rope_theta": 10000.0, "max_position_embeddings": 8,
                                  "rope_scaling": {"type": "dynamic", "factor": 4.0}})";
        const auto plain = opened_with(R"({"rope_theta": 10000.0})"), scaled = opened_with(dynamic);
        const auto same = [&](std::int64_t length) {
            const auto expected = probed(*plain, length), found = probed(*scaled, length);
            return std::ranges::equal(expected.attention_logits.values(), found.attention_logits.values());
        };
        QVERIFY(same(8));
        QVERIFY(!same(9));
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestRotaryConfig)
#include "tst_rotary_config.moc"
