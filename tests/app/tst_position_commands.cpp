// SPDX-License-Identifier: GPL-3.0-or-later
// The commands map, bias and similarity, as people and scripts meet them.
#include <cmath>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <QStringList>
#include <QTest>

#include <nlohmann/json.hpp>

#include "tests/app/cli_run.h"
#include "tests/support/fixture_checkpoint.h"
#include "tests/support/npy_file.h"

namespace posiscope {
namespace {

using nlohmann::json;
using tests::BuiltTensor;
using tests::CheckpointBuilder;
using tests::refusal;
using tests::Run;
using tests::run;
using tests::TemporaryFolder;
using tests::text;

using Shape = std::vector<std::int64_t>;

QString family(const char* name)
{
    return text(tests::family_folder(name).string());
}

std::string content_of(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// The object that a run printed: nothing before it, nothing behind it but the end of the line.
json only_object(const Run& result)
{
    if (result.status != 0) return {};
    const json object = result.object();
    return object.is_object() && result.output.startsWith('{') && result.output.endsWith("}\n") ? object
                                                                                                : json{};
}

std::set<std::string> keys_of(const json& object)
{
    std::set<std::string> keys;
    for (const auto& [key, value] : object.items()) keys.insert(key);
    return keys;
}

bool has_keys(const json& object, const std::vector<std::string>& wanted)
{
    const auto keys = keys_of(object);
    for (const std::string& key : wanted)
        if (!keys.contains(key)) return false;
    return true;
}

/// Everything but what differs from run to run.
json without_times(json object)
{
    object.erase("seconds");
    object.erase("threads");
    return object;
}

const std::vector<std::string> origin{"model", "family", "stack", "scheme"};

} // namespace

class TestPositionCommands : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void map_writes_points_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("stack");
        QTest::addColumn<QString>("kind");
        QTest::addColumn<int>("first"); // position of the first row
        QTest::addColumn<int>("rows");
        QTest::newRow("a table") << "bert"
                                 << ""
                                 << "table" << 0 << 64;
        QTest::newRow("a table with unused rows") << "roberta"
                                                  << ""
                                                  << "table" << -2 << 66;
        QTest::newRow("a decoder's table") << "bart"
                                           << "decoder"
                                           << "table" << -2 << 66;
        QTest::newRow("sinusoids") << "marian"
                                   << ""
                                   << "sinusoids" << 0 << 512;
        QTest::newRow("an image's patches") << "vit"
                                            << ""
                                            << "table" << 0 << 37;
        QTest::newRow("vectors of offsets") << "nezha"
                                            << ""
                                            << "offset_vectors" << -64 << 129;
        QTest::newRow("phases") << "llama"
                                << ""
                                << "rotary_phases" << 0 << 512;
    }
    void map_writes_points()
    {
        QFETCH(const QString, name);
        QFETCH(const QString, stack);
        QFETCH(const QString, kind);
        QFETCH(const int, first);
        QFETCH(const int, rows);
        const TemporaryFolder out;
        for (const char* method : {"tsne", "pca"}) {
            const QString file = text(out.file("points.csv"));
            QStringList arguments{
                "map",   family(qPrintable(name)), "--method", method, "--iterations", "60", "--out", file,
                "--json"};
            if (!stack.isEmpty()) arguments += {"--stack", stack};
            const json object = only_object(run(arguments));
            QVERIFY(object.is_object());
            QVERIFY(has_keys(object, origin));
            QCOMPARE(text(object.at("vectors").get<std::string>()), kind);
            QCOMPARE(object.at("rows").get<int>(), rows);
            QCOMPARE(object.at("method").get<std::string>(), std::string(method));
            QVERIFY(object.at("seconds").get<double>() >= 0.0);
            QVERIFY(!object.contains("points")); // they are in the file
            if (std::string(method) == "tsne") {
                QVERIFY(
                    has_keys(object, {"kl", "perplexity", "iterations", "seed", "init", "gradient_norm"}));
                QVERIFY(object.at("kl").get<double>() >= 0.0);
                QVERIFY(object.at("iterations").get<int>() <= 60);
                QCOMPARE(object.at("perplexity").get<double>(), std::min(30.0, (rows - 1) / 3.0));
            } else {
                QVERIFY(!object.contains("kl") && object.at("variance_share").is_array());
            }
            const QStringList lines =
                text(content_of(out.file("points.csv"))).split('\n', Qt::SkipEmptyParts);
            QCOMPARE(lines.size(), rows + 1);
            QCOMPARE(lines.front(), QStringLiteral("position,x,y"));
            for (int row = 0; row < rows; ++row) {
                const QStringList parts = lines[row + 1].split(',');
                QCOMPARE(parts.size(), 3);
                QCOMPARE(parts[0].toInt(), first + row);
                for (int column : {1, 2}) {
                    bool is_number = false;
                    QVERIFY(std::isfinite(parts[column].toDouble(&is_number)) && is_number);
                }
            }
        }
    }

    void map_repeats_itself_and_follows_its_options()
    {
        const auto points = [](const QStringList& options) {
            const json object = only_object(
                run(QStringList{"map", family("bert"), "--iterations", "60", "--json"} + options));
            return object.is_object() ? object.at("points") : json();
        };
        const json wanted = points({});
        QCOMPARE(wanted.size(), std::size_t{64});
        QVERIFY(has_keys(wanted.front(), {"position", "x", "y", "role"}));
        for (const char* threads : {"1", "2", "4"}) QCOMPARE(points({"--threads", threads}), wanted);
        QCOMPARE(points({"--init", "random", "--seed", "42"}), points({"--init", "random", "--seed", "42"}));
        QVERIFY(points({"--init", "random", "--seed", "42"}) != points({"--init", "random", "--seed", "43"}));
        QVERIFY(points({"--perplexity", "5"}) != wanted);
        const json object =
            only_object(run({"map", family("bert"), "--iterations", "60", "--perplexity", "5", "--json"}));
        QCOMPARE(object.at("perplexity").get<double>(), 5.0);
        // Computed rows are as many as asked for.
        QCOMPARE(only_object(run({"map", family("marian"), "--method", "pca", "--length", "20", "--json"}))
                     .at("rows")
                     .get<int>(),
                 20);
    }

    void a_perplexity_too_large_is_capped_and_said()
    {
        const Run result =
            run({"map", family("bert"), "--iterations", "60", "--perplexity", "500", "--json"});
        const json object = only_object(result);
        QVERIFY(object.is_object());
        QCOMPARE(object.at("perplexity").get<double>(), 21.0); // (64 - 1) / 3
        QVERIFY(result.errors.contains(QStringLiteral("warning: ")) && result.errors.contains("21"));
        bool said = false;
        for (const json& warning : object.at("warnings"))
            said = said || warning.get<std::string>().find("21") != std::string::npos;
        QVERIFY(said);
    }

    void map_writes_other_kinds_of_files()
    {
        const TemporaryFolder out;
        QCOMPARE(
            run({"map", family("bert"), "--method", "pca", "--out", text(out.file("points.npy"))}).status, 0);
        const auto array = tests::read_npy(out.file("points.npy"));
        QCOMPARE(array.shape, (Shape{64, 2}));
        QCOMPARE(
            run({"map", family("bert"), "--method", "pca", "--out", text(out.file("points.json"))}).status,
            0);
        const json object = json::parse(content_of(out.file("points.json")), nullptr, false);
        QCOMPARE(object.at("points").size(), std::size_t{64});
        for (std::size_t row = 0; row < 64; ++row)
            QVERIFY(std::abs(object.at("points").at(row).at("x").get<double>() - array.values[2 * row]) <
                    1e-5);
    }

    void bias_by_offset_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("stack");
        QTest::addColumn<QString>("kind");
        QTest::addColumn<int>("heads");
        QTest::addColumn<bool>("causal");
        QTest::addColumn<bool>("buckets");
        const auto row = [](const char* name, const char* stack, const char* kind, int heads, bool causal,
                            bool buckets) {
            QTest::newRow((std::string(name) + " " + stack).c_str())
                << name << stack << kind << heads << causal << buckets;
        };
        row("t5", "encoder", "bias", 4, false, true);
        row("t5", "decoder", "bias", 4, true, true);
        row("t5-v1_1", "encoder", "bias", 4, false, true);
        row("mpnet", "encoder", "bias", 4, false, true);
        row("bloom", "decoder", "bias", 4, true, false);
        row("mpt", "decoder", "bias", 4, true, false);
        row("tupe", "encoder", "bias", 4, false, false);
        row("xlnet", "encoder", "constant_term", 4, false, false);
        row("nezha", "encoder", "constant_term", 4, false, false);
        row("deberta-v2", "encoder", "constant_term", 4, false, false);
        row("bert-relative_key", "encoder", "constant_term", 4, false, false);
        row("llama", "decoder", "rotation", 1, true, false);
        row("roformer", "encoder", "rotation", 1, false, false);
    }
    void bias_by_offset()
    {
        QFETCH(const QString, name);
        QFETCH(const QString, stack);
        QFETCH(const QString, kind);
        QFETCH(const int, heads);
        QFETCH(const bool, causal);
        QFETCH(const bool, buckets);
        constexpr int length = 20, offsets = 2 * length - 1;
        const TemporaryFolder out;
        const json object =
            only_object(run({"bias", family(qPrintable(name)), "--stack", stack, "--length",
                             QString::number(length), "--out", text(out.file("bias.npy")), "--json"}));
        QVERIFY(object.is_object());
        QVERIFY(has_keys(object, origin));
        QVERIFY(has_keys(object, {"offsets", "heads", "mean", "white_band", "buckets", "bytes_read"}));
        QCOMPARE(text(object.at("kind").get<std::string>()), kind);
        QCOMPARE(text(object.at("stack").get<std::string>()), stack);
        QCOMPARE(object.at("causal").get<bool>(), causal);
        QCOMPARE(object.at("offsets").size(), std::size_t{offsets});
        QCOMPARE(object.at("mean").size(), std::size_t{offsets});
        QCOMPARE(object.at("heads").size(), static_cast<std::size_t>(heads));
        QVERIFY(has_keys(object.at("white_band"), {"width", "depth", "first", "last"}));
        QVERIFY(object.at("bytes_read").get<std::uint64_t>() > 0);
        const auto array = tests::read_npy(out.file("bias.npy"));
        QCOMPARE(array.shape, (Shape{heads, length, length}));
        for (int n = 0; n < offsets; ++n) {
            const int offset = n - (length - 1);
            QCOMPARE(object.at("offsets").at(static_cast<std::size_t>(n)).get<int>(), offset);
            const json& mean = object.at("mean").at(static_cast<std::size_t>(n));
            // There is no future; and at TUPE's last offsets only the [CLS] slot's own terms, which are left out.
            const bool only_first = name == "tupe" && std::abs(offset) == length - 1;
            QCOMPARE(mean.is_null(), (causal && offset > 0) || only_first);
            double sum = 0.0;
            for (const json& head : object.at("heads")) {
                QCOMPARE(head.size(), std::size_t{offsets});
                if (!mean.is_null()) sum += head.at(static_cast<std::size_t>(n)).get<double>() / heads;
            }
            if (!mean.is_null()) QVERIFY(std::abs(sum - mean.get<double>()) < 1e-6 * (1.0 + std::abs(sum)));
        }
        if (!buckets) {
            QVERIFY(object.at("buckets").empty());
            return;
        }
        // They follow each other without a gap, and what shares one has one number.
        int next = -(length - 1);
        for (const json& bucket : object.at("buckets")) {
            QCOMPARE(bucket.at("first").get<int>(), next);
            next = bucket.at("last").get<int>() + 1;
            for (int offset = bucket.at("first").get<int>(); offset < next && (!causal || offset <= 0);
                 ++offset)
                QCOMPARE(object.at("mean").at(static_cast<std::size_t>(offset + length - 1)),
                         object.at("mean").at(
                             static_cast<std::size_t>(bucket.at("first").get<int>() + length - 1)));
        }
        QCOMPARE(next, length);
    }

    void the_white_band_of_the_sample()
    {
        const json object = only_object(run({"bias", "sample:mpnet-base-positions", "--json"}));
        QVERIFY(object.is_object());
        const auto at = [&](int offset) {
            return object.at("mean").at(static_cast<std::size_t>(offset + 127)).get<double>();
        };
        // As the specification tells: -6.9 at offset 0, -0.2 and -0.7 beside it.
        QVERIFY(std::abs(at(0) + 6.9) < 0.1);
        const double beside[]{at(-1), at(1)};
        QVERIFY(std::abs(std::max(beside[0], beside[1]) + 0.2) < 0.1);
        QVERIFY(std::abs(std::min(beside[0], beside[1]) + 0.7) < 0.1);
        QVERIFY(object.at("white_band").at("width").get<double>() >= 1.0);
        QVERIFY(object.at("white_band").at("first").get<double>() <= 0.0);
        QVERIFY(object.at("white_band").at("last").get<double>() >= 0.0);
    }

    void similarity_of_position_vectors_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("rows");
        QTest::newRow("a table") << "bert" << 64;
        QTest::newRow("without unused rows") << "roberta" << 64;
        QTest::newRow("without the class token") << "vit" << 36;
        QTest::newRow("sinusoids") << "marian" << 512;
        QTest::newRow("vectors of offsets") << "nezha" << 129;
    }
    void similarity_of_position_vectors()
    {
        QFETCH(const QString, name);
        QFETCH(const int, rows);
        const auto count = static_cast<std::size_t>(rows);
        const TemporaryFolder out;
        for (const bool dot : {false, true}) {
            QStringList arguments{"similarity", family(qPrintable(name)), "--out",
                                  text(out.file("similarity.npy")), "--json"};
            if (dot) arguments += "--dot";
            const json object = only_object(run(arguments));
            QVERIFY(object.is_object());
            QVERIFY(has_keys(object, origin));
            QVERIFY(has_keys(object, {"similarity", "positions", "norms", "singular_values", "dimensions",
                                      "spectrum", "decodability", "metrics", "warnings"}));
            QCOMPARE(object.at("similarity").get<std::string>(), std::string(dot ? "dot" : "cosine"));
            QCOMPARE(object.at("positions").size(), count);
            QCOMPARE(object.at("norms").size(), count);
            QVERIFY(has_keys(object.at("dimensions"), {"90", "95", "99"}));
            QVERIFY(object.at("dimensions").at("90") <= object.at("dimensions").at("99"));
            QCOMPARE(object.contains("mean_cosine_beyond_20"), name == "nezha");
            const auto map = tests::read_npy(out.file("similarity.npy"));
            QCOMPARE(map.shape, (Shape{rows, rows}));
            for (std::size_t i = 0; i < count; ++i) {
                const double norm = object.at("norms").at(i).get<double>();
                const double self = map.values[i * count + i];
                QVERIFY(std::abs(self - (dot ? norm * norm : 1.0)) < 1e-4 * std::max(1.0, norm * norm));
                for (std::size_t j = 0; j < i; ++j)
                    QVERIFY(std::abs(map.values[i * count + j] - map.values[j * count + i]) < 1e-5);
            }
        }
    }

    void similarity_repeats_itself()
    {
        const auto object = [](const QStringList& options) {
            return without_times(
                only_object(run(QStringList{"similarity", family("bert"), "--json"} + options)));
        };
        const json wanted = object({});
        QVERIFY(wanted.is_object());
        for (const char* threads : {"1", "3"}) QCOMPARE(object({"--threads", threads}), wanted);
        QVERIFY(object({"--seed", "5"}).at("decodability") != wanted.at("decodability"));
    }

    void plain_output_is_for_people()
    {
        for (const QStringList& arguments :
             {QStringList{"map", family("bert"), "--iterations", "60"}, QStringList{"bias", family("t5")},
              QStringList{"similarity", family("bert")}}) {
            const Run result = run(arguments);
            QCOMPARE(result.status, 0);
            QVERIFY(result.output.startsWith(arguments[1].section('/', -1) + ", encoder: "));
            QVERIFY(!result.output.contains('{') || arguments[0] == "similarity");
        }
    }

    void refusals_are_one_line_data()
    {
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<QStringList>("named");
        const auto row = [](const QStringList& arguments, const QStringList& named) {
            QStringList title = arguments;
            title[1] = title[1].section('/', -1);
            QTest::newRow(qPrintable(title.join(' '))) << arguments << named;
        };
        for (const char* command : {"map", "bias", "similarity"}) {
            row({command, "/no/such/place"}, {"/no/such/place", "does not exist"});
            row({command, family("t5"), "--stack", "vision"}, {"'t5'", "'vision'", "encoder, decoder"});
        }
        for (const char* command : {"map", "similarity"}) {
            row({command, family("t5")}, {"'t5'", "encoder", "no position vectors", "relative bias"});
            row({command, family("bloom")}, {"'bloom'", "decoder", "no position vectors"});
        }
        row({"map", family("bert"), "--perplexity", "0.5"}, {"perplexity", "0.5"});
        row({"map", family("marian"), "--length", "3"}, {"3", "4"});
        row({"map", family("bert"), "--out", "/no/such/folder/points.csv"}, {"/no/such/folder"});
        row({"bias", family("bert")}, {"'bert'", "no relative scheme", "learned absolute"});
        row({"bias", family("vit")}, {"'vit'", "no relative scheme"});
        row({"bias", family("t5"), "--layer", "7"}, {"'t5'", "layer 7"});
        row({"bias", family("t5"), "--length", "1"}, {"length 1", "2 positions"});
        row({"bias", family("t5"), "--length", "-5"}, {"length -5"});
        row({"bias", family("t5"), "--length", "1000000"}, {"length 1000000", "8192"});
        row({"bias", family("t5"), "--out", "/no/such/folder/bias.npy"}, {"/no/such/folder"});
        row({"similarity", family("marian"), "--length", "1"}, {"2"});
    }
    void refusals_are_one_line()
    {
        QFETCH(const QStringList, arguments);
        QFETCH(const QStringList, named);
        for (const QStringList& more : {QStringList{}, QStringList{"--json"}}) {
            const Run result = run(arguments + more);
            // Where only the file cannot be written, warnings of the model may come first.
            if (arguments.contains("--out")) {
                QCOMPARE(result.status, 1);
                QVERIFY(result.output.isEmpty());
                QVERIFY(result.error_lines().last().startsWith("posiscope-cli: "));
                QVERIFY(result.error_lines().last().contains(named.front()));
            } else {
                QCOMPARE(refusal(result, named), QString());
            }
        }
    }

    void broken_tables_are_named_data()
    {
        QTest::addColumn<QString>("command");
        for (const char* command : {"map", "similarity"}) QTest::newRow(command) << command;
    }
    void broken_tables_are_named()
    {
        QFETCH(const QString, command);
        CheckpointBuilder builder;
        BuiltTensor& table = builder.tensor(tests::position_table_name);
        table.values[static_cast<std::size_t>(7 * table.shape[1] + 3)] = std::nanf("");
        const TemporaryFolder folder;
        builder.write_to(folder);
        QCOMPARE(refusal(run({command, text(folder.path()), "--json"}), {"row 7"}), QString());
        table.values.assign(table.values.size(), 0.25f);
        builder.write_to(folder);
        if (command == "map")
            QCOMPARE(refusal(run({command, text(folder.path()), "--json"}), {"equal"}), QString());
    }

    void wrong_usage_is_status_2_data()
    {
        QTest::addColumn<QStringList>("arguments");
        for (const QStringList& arguments :
             {QStringList{"map"}, QStringList{"bias"}, QStringList{"similarity"},
              QStringList{"map", "x", "--method", "umap"}, QStringList{"map", "x", "--init", "spiral"},
              QStringList{"map", "x", "--length", "-3"}, QStringList{"map", "x", "--perplexity", "many"},
              QStringList{"bias", "x", "--length", "long"}, QStringList{"similarity", "x", "--length", "0"},
              QStringList{"similarity", "x", "--cosine"}})
            QTest::newRow(qPrintable(arguments.join(' '))) << arguments;
    }
    void wrong_usage_is_status_2()
    {
        QFETCH(const QStringList, arguments);
        const Run result = run(arguments);
        QCOMPARE(result.status, 2);
        QVERIFY(result.output.isEmpty() && !result.errors.isEmpty());
    }
};

} // namespace posiscope

QTEST_GUILESS_MAIN(posiscope::TestPositionCommands)
#include "tst_position_commands.moc"
