// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <QFloat16> // JSON asks what it can become
#include <QFile>
#include <QProcess>
#include <QIODevice>
#include <QProcessEnvironment>
#include <QTest>

#include <nlohmann/json.hpp>

#include "core/base/version.h"
#include "core/kernels/kernel_set.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/npy_file.h"

namespace posiscope {
namespace {

using nlohmann::json;
using tests::CheckpointBuilder;
using tests::TemporaryFolder;

/// What a run of posiscope-cli left behind.
struct Run {
    int status = -1;
    QString output, errors;

    [[nodiscard]] json object() const { return json::parse(output.toStdString(), nullptr, false); }
    [[nodiscard]] QStringList error_lines() const
    {
        return errors.split(QLatin1Char('\n'), Qt::SkipEmptyParts);
    }
};

Run run(const QStringList& arguments, const QStringList& environment = {})
{
    QProcess process;
    QProcessEnvironment variables = QProcessEnvironment::systemEnvironment();
    for (const QString& one : environment)
        variables.insert(one.section(QLatin1Char('='), 0, 0), one.section(QLatin1Char('='), 1));
    process.setProcessEnvironment(variables);
    process.start(QStringLiteral(POSISCOPE_CLI), arguments);
    process.closeWriteChannel();
    Run result;
    if (!process.waitForFinished(60000)) return result;
    if (process.exitStatus() == QProcess::NormalExit) result.status = process.exitCode();
    result.output = QString::fromUtf8(process.readAllStandardOutput());
    result.errors = QString::fromUtf8(process.readAllStandardError());
    return result;
}

QString text(const std::string& from)
{
    return QString::fromStdString(from);
}

/// A good folder on disk.
class GoodFolder {
public:
    explicit GoodFolder(const CheckpointBuilder& builder = CheckpointBuilder()) { builder.write_to(folder); }
    [[nodiscard]] QString path() const { return text(folder.path()); }
    TemporaryFolder folder;
};

/// Empty where the run ended as a refusal must: status 1, nothing on standard output, one line on standard error
/// that holds every one of `named`. Else what is wrong.
QString refusal(const Run& result, const QStringList& named)
{
    if (result.status != 1) return QStringLiteral("status %1: %2").arg(result.status).arg(result.errors);
    if (!result.output.isEmpty()) return QStringLiteral("standard output holds ") + result.output;
    if (result.error_lines().size() != 1 || !result.errors.startsWith(QStringLiteral("posiscope-cli: ")))
        return QStringLiteral("not one line: ") + result.errors;
    for (const QString& name : named)
        if (!result.errors.contains(name))
            return QStringLiteral("'%1' is not named: %2").arg(name, result.errors);
    return {};
}

std::vector<std::int64_t> shape_of(const TemporaryFolder& folder, const std::string& file)
{
    return tests::read_npy(folder.file(file)).shape;
}

bool exists(const TemporaryFolder& folder, const std::string& file)
{
    return std::filesystem::exists(folder.file(file));
}

using Shape = std::vector<std::int64_t>;

} // namespace

class TestCli : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void help_and_version()
    {
        const Run version = run({"--version"});
        QCOMPARE(version.status, 0);
        QCOMPARE(version.output.trimmed(),
                 QStringLiteral("posiscope-cli ") + text(std::string(core::version)));
        const Run help = run({"--help"});
        QCOMPARE(help.status, 0);
        for (const char* command : {"info", "probe", "metrics"}) {
            QVERIFY(help.output.contains(QLatin1String(command)));
            const Run own = run({command, "--help"});
            QCOMPARE(own.status, 0);
            QVERIFY(own.output.contains(QStringLiteral("--json")));
            QVERIFY(own.output.contains(QStringLiteral("--threads")));
        }
    }

    void wrong_usage_is_status_2_data()
    {
        QTest::addColumn<QStringList>("arguments");
        const auto row = [](const QStringList& arguments) {
            QTest::newRow(qPrintable(arguments.join(' '))) << arguments;
        };
        row({});
        row({"no-such-command"});
        row({"probe"});
        row({"info"});
        row({"metrics"});
        row({"probe", "x", "--no-such-option"});
        row({"probe", "x", "--length", "long"});
        row({"probe", "x", "--device", "abacus"});
        row({"probe", "x", "--threads", "0"});
        row({"probe", "x", "--all-words", "--word-ids", "5"});
        row({"probe", "x", "--words", "5", "--word-ids", "5"});
        row({"metrics", "x.npy", "--grid", "14"});
    }
    void wrong_usage_is_status_2()
    {
        QFETCH(const QStringList, arguments);
        const Run result = run(arguments);
        QCOMPARE(result.status, 2);
        QVERIFY(result.output.isEmpty());
        QVERIFY(!result.errors.isEmpty());
    }

    void info_says_what_a_checkpoint_holds()
    {
        const GoodFolder good;
        const Run result = run({"info", good.path(), "--json"});
        QCOMPARE(result.status, 0);
        QVERIFY2(result.errors.isEmpty(), qPrintable(result.errors));
        const json object = result.object();
        QVERIFY(object.is_object());
        QCOMPARE(object.at("family").get<std::string>(), std::string("bert"));
        QCOMPARE(object.at("format").get<std::string>(), std::string("safetensors"));
        QCOMPARE(object.at("stacks").size(), std::size_t{1});
        const json& stack = object.at("stacks").at(0);
        QCOMPARE(stack.at("stack").get<std::string>(), std::string("encoder"));
        QCOMPARE(stack.at("scheme").get<std::string>(), std::string("absolute_learned"));
        QCOMPARE(stack.at("heads").get<int>(), 2);
        QCOMPARE(stack.at("positions").get<int>(), 40);
        QCOMPARE(object.at("vocabulary").at("words_that_may_be_drawn").get<int>(), 32);
        QCOMPARE(object.at("tensors").size(), CheckpointBuilder().tensors.size());
        QVERIFY(object.at("bytes_read").get<int>() < 8000);
        const Run plain = run({"info", good.path()});
        QCOMPARE(plain.status, 0);
        QVERIFY(plain.output.contains(QStringLiteral("embeddings.position_embeddings.weight")));
        QVERIFY(plain.output.contains(QStringLiteral("[40, 16]")));
    }

    void the_sample_needs_no_file()
    {
        const Run result = run({"info", "sample:minilm-l6-first-layer", "--json"});
        QCOMPARE(result.status, 0);
        QCOMPARE(result.object().at("stacks").at(0).at("hidden_size").get<int>(), 384);
    }

    void probe_prints_one_object()
    {
        const GoodFolder good;
        const Run result =
            run({"probe", good.path(), "--length", "9", "--words", "12", "--seed", "4", "--json"});
        QCOMPARE(result.status, 0);
        QVERIFY2(result.errors.isEmpty(), qPrintable(result.errors));
        const json object = result.object();
        QVERIFY(object.is_object());
        QCOMPARE(object.at("family").get<std::string>(), std::string("bert"));
        QCOMPARE(object.at("stack").get<std::string>(), std::string("encoder"));
        QCOMPARE(object.at("layer").get<int>(), 0);
        QCOMPARE(object.at("length").get<int>(), 9);
        QCOMPARE(object.at("words").size(), std::size_t{12});
        QCOMPARE(object.at("causal").get<bool>(), false);
        QCOMPARE(object.at("way").get<std::string>(), std::string("closed_form"));
        QCOMPARE(object.at("device").get<std::string>(), std::string("cpu"));
        QVERIFY(object.at("warnings").empty());
        QVERIFY(object.at("timing").at("open_s").get<double>() > 0.0);
        QVERIFY(object.at("timing").contains("probe_s") && object.at("timing").contains("metrics_s"));
        QVERIFY(object.at("bytes_read").get<int>() > 0);
        const json& metrics = object.at("metrics");
        QVERIFY(metrics.at("quantities").contains("logits") &&
                metrics.at("quantities").contains("probabilities"));
        QCOMPARE(metrics.at("quantities").at("logits").at("heads").size(), std::size_t{2});
        // Printed for people: the same, in words.
        const Run plain = run({"probe", good.path(), "--length", "9", "--words", "12", "--seed", "4"});
        QCOMPARE(plain.status, 0);
        QVERIFY(plain.output.contains(QStringLiteral("L = 9")));
        QVERIFY(plain.output.contains(QStringLiteral("12 words")));
    }

    void probe_writes_maps_of_the_right_shapes()
    {
        const GoodFolder good;
        const TemporaryFolder out;
        const Run result = run({"probe", good.path(), "--length", "9", "--words", "12", "--terms", "--groups",
                                "--out", text(out.file("new/results")), "--json"});
        QCOMPARE(result.status, 0);
        const std::string at = "new/results/";
        QCOMPARE(shape_of(out, at + "attention_logits.npy"), (Shape{2, 9, 9}));
        QCOMPARE(shape_of(out, at + "attention_probabilities.npy"), (Shape{2, 9, 9}));
        QCOMPARE(shape_of(out, at + "groups_logits.npy"), (Shape{12, 2, 9, 9}));
        QCOMPARE(shape_of(out, at + "groups_probabilities.npy"), (Shape{12, 2, 9, 9}));
        for (const char* term : {"word_word", "word_position", "position_word", "position_position"})
            QCOMPARE(shape_of(out, at + "terms_" + term + ".npy"), (Shape{2, 9, 9}));
        std::ifstream metrics_file(out.file(at + "metrics.json")),
            provenance_file(out.file(at + "provenance.json"));
        QVERIFY(json::parse(metrics_file, nullptr, false) == result.object().at("metrics"));
        const json provenance = json::parse(provenance_file, nullptr, false);
        QCOMPARE(provenance.at("settings").at("length").get<int>(), 9);
        QCOMPARE(provenance.at("word_ids"), result.object().at("words"));
        // No half-written files are left beside them.
        std::size_t files = 0;
        for (const auto& file : std::filesystem::directory_iterator(out.file(at)))
            files += file.exists() ? 1 : 0;
        QCOMPARE(files, std::size_t{10});
    }

    void probe_leaves_out_what_is_not_wanted()
    {
        const GoodFolder good;
        const TemporaryFolder out;
        const Run result = run({"probe", good.path(), "--length", "9", "--words", "5", "--logits-only",
                                "--no-errors", "--out", text(out.path()), "--json"});
        QCOMPARE(result.status, 0);
        QVERIFY(exists(out, "attention_logits.npy"));
        QVERIFY(!exists(out, "attention_probabilities.npy"));
        QVERIFY(!exists(out, "groups_logits.npy"));
        QVERIFY(!exists(out, "terms_word_word.npy"));
        QVERIFY(!result.object().at("metrics").at("quantities").contains("probabilities"));
    }

    void words_are_chosen_in_every_way()
    {
        const GoodFolder good;
        const auto words = [&](const QStringList& options) {
            const Run result =
                run(QStringList{"probe", good.path(), "--length", "5", "--no-errors", "--json"} + options);
            return result.status == 0 ? result.object().at("words").get<std::vector<int>>()
                                      : std::vector<int>{-1};
        };
        QCOMPARE(words({"--word-ids", "30,9"}), (std::vector<int>{30, 9}));
        QCOMPARE(words({"--words", "w30, w9,w8"}), (std::vector<int>{30, 9, 8}));
        QCOMPARE(words({"--words", "w11"}), std::vector<int>{11});
        QCOMPARE(words({"--all-words"}).size(), std::size_t{32});
        QCOMPARE(words({"--words", "7"}).size(), std::size_t{7});
        QCOMPARE(words({"--words", "7", "--seed", "1"}), words({"--words", "7", "--seed", "1"}));
        QVERIFY(words({"--words", "7", "--seed", "1"}) != words({"--words", "7", "--seed", "2"}));
        QCOMPARE(words({}).size(), std::size_t{32}); // 300 were wanted: all there are
    }

    void options_reach_the_probe()
    {
        const GoodFolder good;
        const TemporaryFolder out;
        const Run flat = run({"probe", good.path(), "--length", "6", "--words", "5", "--no-positions",
                              "--no-errors", "--out", text(out.path()), "--json"});
        QCOMPARE(flat.status, 0);
        for (const double value : tests::read_npy(out.file("attention_probabilities.npy")).values)
            QVERIFY(std::abs(value - 1.0 / 6.0) < 1e-6);
        const Run special = run(
            {"probe", good.path(), "--length", "6", "--words", "5", "--special", "--no-errors", "--json"});
        QCOMPARE(special.object().at("special").get<bool>(), true);
        const Run threads =
            run({"probe", good.path(), "--length", "6", "--threads", "3", "--no-errors", "--json"});
        QCOMPARE(threads.object().at("threads").get<int>(), 3);
        const Run environment =
            run({"probe", good.path(), "--length", "6", "--no-errors", "--json"}, {"OMP_NUM_THREADS=2"});
        QCOMPARE(environment.object().at("threads").get<int>(), 2);
    }

    void every_kernel_set_can_be_asked_for()
    {
        const GoodFolder good;
        std::vector<double> first;
        for (const core::KernelSet* set : core::available_kernels()) {
            const TemporaryFolder out;
            const Run result = run(
                {"probe", good.path(), "--length", "20", "--no-errors", "--out", text(out.path()), "--json"},
                {"POSISCOPE_KERNELS=" + text(std::string(set->name))});
            QCOMPARE(text(result.object().at("kernels").get<std::string>()), text(std::string(set->name)));
            const auto map = tests::read_npy(out.file("attention_logits.npy")).values;
            if (first.empty()) first = map;
            QCOMPARE(map.size(), first.size());
            for (std::size_t n = 0; n < map.size(); ++n) QVERIFY(std::abs(map[n] - first[n]) < 1e-5);
        }
    }

    void the_default_length_fits_the_table_with_a_warning()
    {
        const GoodFolder good; // 40 positions
        const Run result = run({"probe", good.path(), "--no-errors", "--json"});
        QCOMPARE(result.status, 0);
        QCOMPARE(result.object().at("length").get<int>(), 40);
        QVERIFY(result.errors.contains(QStringLiteral("warning: ")));
        QVERIFY(result.errors.contains(QStringLiteral("40")));
        QVERIFY(!result.object().at("warnings").empty());
    }

    void several_checkpoints_make_a_folder_each()
    {
        const TemporaryFolder folder, out;
        for (const char* name : {"one", "two", "other/one"}) {
            tests::TinyBert sizes;
            sizes.seed = std::string(name).size();
            const CheckpointBuilder builder(sizes);
            folder.write(std::string(name) + "/config.json", builder.config.dump());
            folder.write(std::string(name) + "/model.safetensors", tests::safetensors_bytes(builder.tensors));
        }
        const Run result =
            run({"probe", text(folder.file("one")), text(folder.file("two")), text(folder.file("other/one")),
                 "--length", "7", "--words", "3", "--no-errors", "--out", text(out.path()), "--json"});
        QCOMPARE(result.status, 0);
        for (const char* name : {"one", "two", "one-2"})
            QCOMPARE(shape_of(out, std::string(name) + "/attention_logits.npy"), (Shape{2, 7, 7}));
        QVERIFY(result.object().is_object());
        QCOMPARE(result.object().at("results").size(), std::size_t{3});
        QCOMPARE(result.object().at("results").at(1).at("model").get<std::string>(), std::string("two"));
    }

    void metrics_of_a_map_in_a_file()
    {
        const std::string maps = std::string(POSISCOPE_TEST_DATA) + "/reference/maps/";
        std::ifstream cases_file(std::string(POSISCOPE_TEST_DATA) + "/reference/cases.json");
        const json cases = json::parse(cases_file);
        const Run logits = run({"metrics", text(maps + "decay_with_noise.npy"), "--json"});
        QCOMPARE(logits.status, 0);
        QVERIFY2(logits.errors.isEmpty(), qPrintable(logits.errors));
        const json report = logits.object();
        QCOMPARE(report.at("probabilities").get<bool>(), false);
        QVERIFY(report.contains("all") && report.contains("without_first"));
        const double violation = report.at("all").at("translation_invariance_violation").get<double>();
        const double expected =
            cases.at("decay_with_noise").at("all").at("translation_invariance_violation").get<double>();
        QVERIFY(std::abs(violation - expected) <= 1e-9 * expected);
        const Run causal = run(
            {"metrics", text(maps + "causal_probabilities.npy"), "--probabilities", "--causal", "--json"});
        QCOMPARE(causal.object().at("probabilities").get<bool>(), true);
        QCOMPARE(causal.object().at("causal").get<bool>(), true);
        const Run grid = run({"metrics", text(maps + "grid_5x7.npy"), "--grid", "5x7", "--json"});
        QCOMPARE(grid.status, 0);
        const Run plain = run({"metrics", text(maps + "flat.npy")});
        QVERIFY(plain.output.contains(QStringLiteral("translation_invariance_violation")));
    }

    void what_probe_writes_metrics_reads()
    {
        const GoodFolder good;
        const TemporaryFolder out;
        const Run probe = run({"probe", good.path(), "--length", "15", "--words", "9", "--no-errors", "--out",
                               text(out.path()), "--json"});
        const Run metrics =
            run({"metrics", text(out.file("attention_probabilities.npy")), "--probabilities", "--json"});
        const auto value = [](const json& report) {
            return report.at("without_first").at("translation_invariance_violation").get<double>();
        };
        const double own =
            value(probe.object().at("metrics").at("quantities").at("probabilities").at("head_mean"));
        QVERIFY(std::abs(value(metrics.object()) - own) < 1e-9);
    }

    void bad_input_is_one_line_data()
    {
        QTest::addColumn<QString>("fault");
        QTest::addColumn<QStringList>("options");
        QTest::addColumn<QStringList>("named");
        const auto row = [](const char* fault, const QStringList& options, const QStringList& named) {
            QTest::newRow(options.isEmpty() ? fault : qPrintable(options.join(' ')))
                << QString::fromLatin1(fault) << options << named;
        };
        row("missing", {}, {"missing", "does not exist"});
        row("no config", {}, {"config.json"});
        row("no weights", {}, {"model.safetensors"});
        row("truncated", {}, {"model.safetensors"});
        row("hidden size", {}, {"config.json", "hidden_size", "8"});
        row("", {"--length", "41"}, {"41", "40"});
        row("", {"--length", "0"}, {"0"});
        row("", {"--word-ids", "0"}, {"padding"});
        row("", {"--words", "[PAD]"}, {"[PAD]", "padding"});
        row("", {"--words", "nowhere"}, {"nowhere"});
        row("", {"--word-ids", "9,4000"}, {"4000"});
        row("", {"--words", "0"}, {"0 words"});
        row("", {"--words", "99999999999999999999999"}, {"99999999999999999999999"});
        row("", {"--words", ","}, {"no word"});
        row("", {"--stack", "vision"}, {"vision", "encoder"});
        row("", {"--layer", "3"}, {"layer 3"});
        row("", {"--length", "2", "--special"}, {"2"});
    }
    void bad_input_is_one_line()
    {
        QFETCH(const QString, fault);
        QFETCH(const QStringList, options);
        QFETCH(const QStringList, named);
        CheckpointBuilder builder;
        if (fault == "hidden size") builder.config["hidden_size"] = 8;
        GoodFolder made(builder);
        QString path = made.path();
        if (fault == "missing") path += "/missing";
        if (fault == "no config") std::filesystem::remove(made.folder.file("config.json"));
        if (fault == "no weights") std::filesystem::remove(made.folder.file("model.safetensors"));
        if (fault == "truncated") std::filesystem::resize_file(made.folder.file("model.safetensors"), 5000);
        QCOMPARE(refusal(run(QStringList{"probe", path} + options), named), QString());
        QCOMPARE(refusal(run(QStringList{"probe", path, "--json"} + options), named), QString());
        if (options.isEmpty()) QCOMPARE(refusal(run({"info", path, "--json"}), named), QString());
    }

    void bad_maps_are_one_line()
    {
        const TemporaryFolder folder;
        QCOMPARE(refusal(run({"metrics", text(folder.file("absent.npy"))}), {"absent.npy", "does not exist"}),
                 QString());
        QCOMPARE(refusal(run({"metrics", text(folder.write("a.npy", "no map"))}), {"a.npy"}), QString());
        QCOMPARE(refusal(run({"metrics", text(folder.path())}), {text(folder.path())}), QString());
        const QString map = text(std::string(POSISCOPE_TEST_DATA) + "/reference/maps/grid_5x7.npy");
        QCOMPARE(refusal(run({"metrics", map, "--grid", "6x6"}), {"6x6", "36", "35"}), QString());
    }

    void a_folder_that_cannot_be_written_is_one_line()
    {
        const GoodFolder good;
        const QString file = text(good.folder.write("a-file", "x"));
        const Run result = run({"probe", good.path(), "--length", "5", "--words", "3", "--no-errors", "--out",
                                file + "/results"});
        QCOMPARE(refusal(result, {"a-file/results"}), QString());
    }

    void warnings_go_to_standard_error()
    {
        CheckpointBuilder builder;
        builder.config.erase("layer_norm_eps");
        builder.words.clear();
        const GoodFolder good(builder);
        const Run result =
            run({"probe", good.path(), "--length", "5", "--words", "3", "--no-errors", "--json"});
        QCOMPARE(result.status, 0);
        QCOMPARE(result.error_lines().size(), qsizetype(result.object().at("warnings").size()));
        for (const QString& line : result.error_lines())
            QVERIFY(line.startsWith(QStringLiteral("warning: ")));
        QVERIFY(result.errors.contains(QStringLiteral("layer_norm_eps")));
    }

    void an_interrupt_ends_with_status_130()
    {
#ifndef __linux__
        QSKIP("looks into /proc");
#endif
        QProcess process;
        const TemporaryFolder out;
        // Minutes of work on one thread, were it not interrupted.
        process.start(QStringLiteral(POSISCOPE_CLI),
                      {"probe", "sample:minilm-l6-first-layer", "--length", "512", "--all-words",
                       "--no-errors", "--threads", "1", "--out", text(out.file("results"))});
        QVERIFY(process.waitForStarted());
        const QString own = QStringLiteral("/proc/%1/").arg(process.processId());
        // The program is ready for signals when it has blocked SIGINT, so that its own thread takes it.
        const auto ready = [&] {
            QFile status(own + "status");
            if (!status.open(QIODevice::ReadOnly)) return false;
            for (const QByteArray& line : status.readAll().split('\n'))
                if (line.startsWith("SigBlk:"))
                    return (line.mid(7).trimmed().toULongLong(nullptr, 16) & 2u) != 0;
            return false;
        };
        QTRY_VERIFY_WITH_TIMEOUT(ready(), 10000);
        QTest::qWait(100);
        ::kill(static_cast<pid_t>(process.processId()), SIGINT);
        QVERIFY(process.waitForFinished(20000));
        QCOMPARE(process.exitStatus(), QProcess::NormalExit);
        QCOMPARE(process.exitCode(), 130);
        QVERIFY(process.readAllStandardOutput().isEmpty());
        QVERIFY(!exists(out, "results"));
    }
};

} // namespace posiscope

QTEST_GUILESS_MAIN(posiscope::TestCli)
#include "tst_cli.moc"
