// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <QTest>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/base/text.h"

namespace posiscope::core {
namespace {

std::string bytes_of(const QByteArray& bytes)
{
    return bytes.toStdString();
}

} // namespace

class TestText : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void printable_escapes_what_is_unsafe_on_one_line_data()
    {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QByteArray>("shown");
        const auto row = [](const char* name, const std::string& text, const char* shown) {
            QTest::newRow(name) << QByteArray::fromStdString(text) << QByteArray(shown);
        };
        row("plain", "the cat", "the cat");
        row("empty", "", "");
        row("letters of other scripts", "caf\xC3\xA9 \xE8\xAF\x8D \xF0\x9F\x99\x82",
            "caf\xC3\xA9 \xE8\xAF\x8D \xF0\x9F\x99\x82");
        row("line end, tab, bell, delete",
            "a\nb\tc\x07"
            "d\x7F",
            "a\\x0Ab\\x09c\\x07d\\x7F");
        row("NUL", std::string("a\0b", 3), "a\\x00b");
        row("C1 control", "a\xC2\x85z", "a\\u{0085}z");
        row("right-to-left override",
            "a\xE2\x80\xAE"
            "b",
            "a\\u{202E}b");
        row("isolate", "\xE2\x81\xA6x", "\\u{2066}x");
        row("Arabic letter mark",
            "a\xD8\x9C"
            "b",
            "a\\u{061C}b");
        row("zero width space",
            "a\xE2\x80\x8B"
            "b",
            "a\\u{200B}b");
        row("line separator",
            "a\xE2\x80\xA8"
            "b",
            "a\\u{2028}b");
        row("byte order mark", "\xEF\xBB\xBFz", "\\u{FEFF}z");
        row("no UTF-8", "a\xFF\xFE", "a\\xFF\\xFE");
        row("cut sequence", "a\xE8\xAF", "a\\xE8\\xAF");
        row("overlong slash", "\xC0\xAF", "\\xC0\\xAF");
        row("overlong of three bytes", "\xE0\x80\xAF", "\\xE0\\x80\\xAF");
        row("surrogate", "\xED\xA0\x80", "\\xED\\xA0\\x80");
        row("above U+10FFFF", "\xF4\x90\x80\x80", "\\xF4\\x90\\x80\\x80");
    }

    void printable_escapes_what_is_unsafe_on_one_line()
    {
        QFETCH(const QByteArray, text);
        QFETCH(const QByteArray, shown);
        QCOMPARE(QByteArray::fromStdString(printable(bytes_of(text))), shown);
        QCOMPARE(QByteArray::fromStdString(in_quotes(bytes_of(text))), "'" + shown + "'");
        QVERIFY(is_utf8(printable(bytes_of(text))));
    }

    void long_texts_are_cut()
    {
        QCOMPARE(printable(std::string(1000, 'x'), 10), std::string(10, 'x') + "...");
        QCOMPARE(printable(std::string(10, 'x'), 10), std::string(10, 'x'));
        // Never in the middle of a character.
        QCOMPARE(printable("\xE8\xAF\x8D\xE8\xAF\x8D\xE8\xAF\x8D", 4),
                 std::string("\xE8\xAF\x8D\xE8\xAF\x8D..."));
    }

    void utf8_is_told_from_other_bytes()
    {
        QVERIFY(is_utf8(""));
        QVERIFY(is_utf8("\xF4\x8F\xBF\xBF"));
        QVERIFY(!is_utf8("\x80"));
        QVERIFY(!is_utf8("a\xC3"));
        // Wherever it stands in a longer text.
        for (std::size_t at = 0; at < 40; ++at) {
            std::string text(40, 'a');
            QVERIFY(is_utf8(text));
            text[at] = '\xC3';
            QVERIFY(!is_utf8(text));
            if (at + 1 < text.size()) {
                text[at + 1] = '\xA9';
                QVERIFY(is_utf8(text));
            }
        }
        QVERIFY(!is_utf8("\xED\xBF\xBF"));
    }

    void texts_are_split_and_trimmed()
    {
        using Parts = std::vector<std::string_view>;
        QCOMPARE(split("a,,b", ','), (Parts{"a", "", "b"}));
        QCOMPARE(split("", ','), Parts{""});
        QCOMPARE(split(",", ','), (Parts{"", ""}));
        QCOMPARE(trimmed(" \t a b\r\n"), std::string_view("a b"));
        QCOMPARE(trimmed(" \n"), std::string_view());
    }

    void lists_are_joined_for_messages()
    {
        using Items = std::vector<std::string>;
        QCOMPARE(join_for_message(Items{}), std::string());
        QCOMPARE(join_for_message(Items{"a"}), std::string("a"));
        QCOMPARE(join_for_message(Items{"a", "b"}), std::string("a and b"));
        QCOMPARE(join_for_message(Items{"a", "b", "c"}), std::string("a, b and c"));
        QCOMPARE(join_for_message(Items{"a", "b", "c", "d"}, 2), std::string("a, b and 2 more"));
        QCOMPARE(counted(1, "word", "words"), std::string("1 word"));
        QCOMPARE(counted(0, "word", "words"), std::string("0 words"));
    }

    void results_hold_a_value_or_an_error()
    {
        Result<std::string> value(std::string("map"));
        QVERIFY(value);
        QCOMPARE(*value, std::string("map"));
        QCOMPARE(value->size(), std::size_t{3});
        const std::string moved = *std::move(value);
        QCOMPARE(moved, std::string("map"));

        const Result<std::string> error(
            Error{ErrorCode::corrupt_file, "the header\nis cut", "safetensors header"});
        QVERIFY(!error);
        QCOMPARE(describe(error.error()), std::string("the header\\x0Ais cut (safetensors header)"));

        QVERIFY(Result<void>());
        QVERIFY(!Result<void>(Error{ErrorCode::cancelled, "stopped", {}}));
    }

    void every_error_code_has_a_name_of_its_own()
    {
        std::vector<std::string_view> names;
        for (int code = 0; code <= static_cast<int>(ErrorCode::internal); ++code)
            names.push_back(error_code_name(static_cast<ErrorCode>(code)));
        QCOMPARE(names.front(), std::string_view("not_found"));
        QCOMPARE(names.back(), std::string_view("internal"));
        std::sort(names.begin(), names.end());
        QVERIFY(std::adjacent_find(names.begin(), names.end()) == names.end());
    }

    void run_context_reports_and_stops()
    {
        const RunContext idle;
        QVERIFY(!idle.cancelled());
        idle.report({"probe", 1, 2}); // nowhere to report to: nothing happens

        std::stop_source source;
        std::size_t done = 0;
        const RunContext ctx{source.get_token(), [&done](const Progress& now) { done = now.done; }};
        ctx.report({"probe", 3, 7});
        QCOMPARE(done, std::size_t{3});
        QVERIFY(!ctx.cancelled());
        source.request_stop();
        QVERIFY(ctx.cancelled());
        QCOMPARE(cancelled_error("the probe").code, ErrorCode::cancelled);
        QCOMPARE(cancelled_error("the probe").message, std::string("the probe was stopped"));
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestText)
#include "tst_text.moc"
