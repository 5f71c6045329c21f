// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <QFloat16> // JSON asks what it can become
#include <QTest>

#include <nlohmann/json.hpp>

#include "core/probe/identical_word_probe.h"
#include "tests/support/expected_error.h"

namespace posiscope::core {
namespace {

const std::string hostile_folder = std::string(POSISCOPE_TEST_DATA) + "/hostile/";

/// What came of opening a folder and running the probe on it.
struct Outcome {
    std::optional<Error> error;
    std::vector<std::string> warnings;
};

Outcome run(const std::string& location)
{
    const auto model = open_model(location, {});
    if (!model) return {model.error(), {}};
    ProbeOptions options;
    options.length = 6;
    options.words.count = 5;
    const auto probe = run_identical_word_probe(**model, options, {});
    if (!probe) return {probe.error(), (*model)->warnings};
    Outcome outcome{std::nullopt, (*model)->warnings};
    outcome.warnings.insert(outcome.warnings.end(), probe->warnings.begin(), probe->warnings.end());
    return outcome;
}

} // namespace

/// Every broken or hostile folder of tests/data/hostile against its manifest: "error" stops at the latest when the
/// probe runs, "warning" loads with a warning, "ok" loads, and the mixed ones may do either.
class TestHostileFiles : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void folders_end_as_the_manifest_says_data()
    {
        QTest::addColumn<QString>("path");
        QTest::addColumn<QString>("expect");
        std::ifstream file(hostile_folder + "manifest.json");
        const auto manifest = nlohmann::json::parse(file);
        for (const auto& entry : manifest.at("entries")) {
            const auto path = entry.at("path").get<std::string>();
            QTest::newRow(path.c_str()) << QString::fromStdString(path)
                                        << QString::fromStdString(entry.at("expect").get<std::string>());
        }
    }

    void folders_end_as_the_manifest_says()
    {
        QFETCH(const QString, path);
        QFETCH(const QString, expect);
        const std::clock_t before = std::clock(); // processor time: the machine may be busy
        const Outcome outcome = run(hostile_folder + path.toStdString());
        QVERIFY2(std::clock() - before < CLOCKS_PER_SEC, "it took longer than a second");
        for (const std::string& warning : outcome.warnings)
            QVERIFY2(warning.find('\n') == std::string::npos && !warning.empty(), warning.c_str());
        if (outcome.error) {
            const std::string& message = outcome.error->message;
            QVERIFY2(expect == "error" || expect == "error-or-warning" || expect == "ok-or-error",
                     message.c_str());
            QVERIFY2(message.find('\n') == std::string::npos, message.c_str());
            // It names the folder or a file in it.
            const std::string folder = path.section(QLatin1Char('/'), 0, 0).toStdString();
            QVERIFY2(message.find(folder) != std::string::npos, message.c_str());
            QVERIFY2(outcome.error->code != ErrorCode::internal &&
                         outcome.error->code != ErrorCode::out_of_memory,
                     message.c_str());
            return;
        }
        QVERIFY2(expect != "error", "it was accepted");
        if (expect == "warning" || expect == "error-or-warning")
            QVERIFY2(!outcome.warnings.empty(), "nothing was said");
    }

    void the_manifest_names_every_folder()
    {
        std::ifstream file(hostile_folder + "manifest.json");
        const auto manifest = nlohmann::json::parse(file);
        std::set<std::string> listed, found;
        for (const auto& entry : manifest.at("entries")) {
            const auto path = entry.at("path").get<std::string>();
            listed.insert(path.substr(0, path.find('/')));
        }
        for (const auto& entry : std::filesystem::directory_iterator(hostile_folder))
            if (entry.is_directory()) found.insert(entry.path().filename().string());
        QCOMPARE(listed, found);
    }

    void some_faults_are_said_in_particular()
    {
        const auto message = [](const char* path) {
            const Outcome outcome = run(hostile_folder + path);
            return QString::fromStdString(outcome.error ? outcome.error->message : "accepted");
        };
        QVERIFY(message("st-duplicate-key").contains("embeddings.position_embeddings.weight"));
        QVERIFY(message("st-no-position-table").contains("embeddings.position_embeddings.weight"));
        QVERIFY(message("st-no-key-weight").contains("encoder.layer.0.attention.self.key.weight"));
        QVERIFY(message("st-weights-nan").contains("1 value"));
        QVERIFY(message("st-weights-inf").contains("embeddings.position_embeddings.weight"));
        QVERIFY(message("config-unknown-type").contains("no_such_model"));
        QVERIFY(message("config-unknown-activation").contains("no_such_act"));
        QVERIFY(message("config-unknown-pe").contains("no_such_scheme"));
        QVERIFY(message("config-heads-3").contains("num_attention_heads"));
        QVERIFY(message("config-no-num_attention_heads").contains("num_attention_heads"));
    }

    void words_with_markup_are_shown_as_plain_short_text()
    {
        const auto model = open_model(hostile_folder + "vocab-markup", {});
        QVERIFY2(model, tests::failure(model).c_str());
        for (const Vocabulary::Entry& entry : (*model)->vocabulary.entries()) {
            const std::string shown = (*model)->vocabulary.shown(entry.id);
            QVERIFY(shown.size() < 100);
            for (const char c : shown) QVERIFY(static_cast<unsigned char>(c) >= 0x20);
            QVERIFY(shown.find("\xE2\x80\xAE") == std::string::npos);
        }
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestHostileFiles)
#include "tst_hostile_files.moc"
