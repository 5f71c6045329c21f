// SPDX-License-Identifier: GPL-3.0-or-later
#include <string>
#include <vector>

#include <QFloat16> // JSON asks what it can become
#include <QTest>

#include <nlohmann/json.hpp>

#include "core/checkpoint/config_json.h"
#include "tests/support/expected_error.h"

namespace posiscope::core {
namespace {

using tests::refusal;

ConfigJson config_of(const std::string& text)
{
    return {*parse_json(text, "config.json"), "bert/config.json"};
}

std::string nested(int depth)
{
    return std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']');
}

} // namespace

class TestConfigJson : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void good_documents_are_read()
    {
        const auto parsed = parse_json(" {\"a\": [1, 2.5, null, true, \"x\"]} \n", "config.json");
        QVERIFY2(parsed, tests::failure(parsed).c_str());
        QCOMPARE(parsed->at("a").size(), std::size_t{5});
        QVERIFY(parse_json("\xEF\xBB\xBF{}", "config.json"));
        QVERIFY(parse_json(nested(64), "config.json"));
    }

    void bad_documents_are_refused_data()
    {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QByteArray>("named");
        const auto row = [](const char* name, const std::string& text, const char* named) {
            QTest::newRow(name) << QByteArray::fromStdString(text) << QByteArray(named);
        };
        row("empty", "", "empty");
        row("blank", " \n\t", "empty");
        row("cut", "{\"a\": 1", "near byte 8");
        row("no JSON", "a: 1", "near byte 1");
        row("something after it", "{} {}", "near byte 4");
        row("NaN", "{\"a\": NaN}", "not valid JSON");
        row("UTF-16", std::string("\xFF\xFE{\0}\0", 6), "not valid JSON");
        row("no UTF-8 in a text", "{\"a\": \"\xFF\"}", "not valid JSON");
        row("number beyond doubles", "{\"a\": 1e400}", "too large");
        row("too deep", nested(65), "64 levels");
        row("far too deep, never closed", std::string(1000000, '['), "64 levels");
        row(
            "deep objects",
            [] {
                std::string text;
                for (int n = 0; n < 100000; ++n) text += "{\"a\":";
                return text;
            }(),
            "64 levels");
    }
    void bad_documents_are_refused()
    {
        QFETCH(const QByteArray, text);
        QFETCH(const QByteArray, named);
        QCOMPARE(refusal(parse_json(text.toStdString(), "'bert/config.json'"), ErrorCode::corrupt_file,
                         {"'bert/config.json'", named.toStdString()}),
                 QString());
    }

    void keys_given_twice_are_reported()
    {
        std::vector<std::string> twice;
        QVERIFY(parse_json(R"({"a": 1, "b": {"a": 2, "c": 3, "c": 4}, "a": 5})", "config.json", &twice));
        QCOMPARE(twice, (std::vector<std::string>{"c", "a"}));
        twice.clear();
        // The same key in neighbouring objects is no fault.
        QVERIFY(parse_json(R"([{"a": 1}, {"a": 2}, {"b": {"a": 3}, "a": 4}])", "config.json", &twice));
        QVERIFY(twice.empty());
    }

    void whole_numbers()
    {
        const ConfigJson config =
            config_of(R"({"heads": 12, "null": null, "half": 2.5, "whole": 8.0, "text": "8",
            "negative": -8, "huge": 18446744073709551615, "flag": true, "list": [8], "object": {}})");
        QCOMPARE(*config.integer("heads", 1, 100), std::int64_t{12});
        QCOMPARE(*config.integer("heads", 12, 12), std::int64_t{12});
        QVERIFY(config.has("heads"));
        QVERIFY(!config.has("null"));
        QCOMPARE(*config.optional_integer("absent", 1, 9), std::optional<std::int64_t>());
        QCOMPARE(*config.optional_integer("null", 1, 9), std::optional<std::int64_t>());
        const auto refused = [&](const char* key, std::vector<std::string> named) {
            named.insert(named.end(), {"'bert/config.json'", "'" + std::string(key) + "'"});
            return refusal(config.integer(key, 1, 100), ErrorCode::corrupt_file, named);
        };
        QCOMPARE(refused("absent", {"missing"}), QString());
        QCOMPARE(refused("null", {"missing"}), QString());
        QCOMPARE(refused("half", {"2.5", "between 1 and 100"}), QString());
        QCOMPARE(refused("whole", {"8.0"}), QString());
        QCOMPARE(refused("text", {"the text '8'"}), QString());
        QCOMPARE(refused("negative", {"-8", "between 1 and 100"}), QString());
        QCOMPARE(refused("huge", {"18446744073709551615"}), QString());
        QCOMPARE(refused("flag", {"true"}), QString());
        QCOMPARE(refused("list", {"a list"}), QString());
        QCOMPARE(refused("object", {"an object"}), QString());
        QCOMPARE(refusal(config.integer("huge", INT64_MIN, INT64_MAX), ErrorCode::corrupt_file, {"'huge'"}),
                 QString());
        QCOMPARE(*config.integer("negative", INT64_MIN, INT64_MAX), std::int64_t{-8});
    }

    void other_values()
    {
        const ConfigJson config = config_of(
            R"({"eps": 1e-12, "one": 1, "name": "gelu", "flag": false, "null": null, "large": 1e300})");
        QCOMPARE(**config.optional_number("eps", 0.0, 1.0), 1e-12);
        QCOMPARE(**config.optional_number("one", 0.0, 1.0), 1.0);
        QCOMPARE(*config.optional_number("null", 0.0, 1.0), std::optional<double>());
        QCOMPARE(refusal(config.optional_number("large", 0.0, 1.0), ErrorCode::corrupt_file,
                         {"'large'", "1e+300"}),
                 QString());
        QCOMPARE(
            refusal(config.optional_number("name", 0.0, 1.0), ErrorCode::corrupt_file, {"'name'", "gelu"}),
            QString());
        QCOMPARE(**config.optional_text("name"), std::string("gelu"));
        QCOMPARE(*config.optional_text("absent"), std::optional<std::string>());
        QCOMPARE(refusal(config.optional_text("one"), ErrorCode::corrupt_file, {"'one'", "a text"}),
                 QString());
        QCOMPARE(**config.optional_flag("flag"), false);
        QCOMPARE(*config.optional_flag("null"), std::optional<bool>());
        QCOMPARE(refusal(config.optional_flag("one"), ErrorCode::corrupt_file, {"'one'", "true or false"}),
                 QString());
    }

    void values_from_files_are_shown_safely()
    {
        const ConfigJson config = config_of(R"({"name": 3, "heads": "a\nb\u202e"})");
        QCOMPARE(refusal(config.integer("heads", 1, 9), ErrorCode::corrupt_file, {"a\\x0Ab\\u{202E}"}),
                 QString());
        QCOMPARE(refusal(ConfigJson(nlohmann::json{{"heads", std::string(100000, 'x')}}, "config.json")
                             .integer("heads", 1, 9),
                         ErrorCode::corrupt_file, {"xxx..."}),
                 QString());
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestConfigJson)
#include "tst_config_json.moc"
