// SPDX-License-Identifier: GPL-3.0-or-later
#include <ctime>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <QTest>

#include "core/checkpoint/safetensors_format.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/expected_error.h"

namespace posiscope::core {
namespace {

using tests::refusal;
using tests::safetensors_bytes;
using tests::TemporaryFolder;

/// `bytes` must outlive the source.
std::shared_ptr<const ByteSource> source_of(const std::string& bytes)
{
    return memory_source("bert/model.safetensors", std::as_bytes(std::span(bytes)));
}

Result<TensorFile> opened(const std::string& bytes)
{
    return open_safetensors(source_of(bytes), {});
}

std::string entry(const std::string& name, const std::string& shape, int begin, int end,
                  const std::string& dtype = "F32")
{
    return "\"" + name + "\": {\"dtype\": \"" + dtype + "\", \"shape\": " + shape + ", \"data_offsets\": [" +
           std::to_string(begin) + ", " + std::to_string(end) + "]}";
}

/// The 8 bytes of a header's length, and what follows.
std::string with_length(std::uint64_t length, const std::string& rest)
{
    std::string bytes = safetensors_bytes("", "");
    for (std::size_t n = 0; n < 8; ++n) bytes[n] = static_cast<char>(length >> (8 * n) & 0xFFu);
    return bytes + rest;
}

} // namespace

class TestSafetensorsFormat : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void tensors_are_listed_in_the_order_of_the_file()
    {
        const std::string header = "{\"__metadata__\": {\"format\": \"pt\"}, " + entry("z", "[2, 3]", 0, 24) +
                                   ", " + entry("a", "[2]", 24, 28, "F16") + ", " +
                                   entry("scalar", "[]", 28, 36, "F64") + ", " +
                                   entry("nothing", "[0, 4]", 36, 36) + "}   ";
        const std::string bytes = safetensors_bytes(header, std::string(36, 'x'));
        const auto file = opened(bytes);
        QVERIFY2(file, tests::failure(file).c_str());
        QVERIFY(is_safetensors(*source_of(bytes)));
        QCOMPARE(file->format, std::string("safetensors"));
        QCOMPARE(file->tensors.size(), std::size_t{4});
        QCOMPARE(file->tensors[0].name, std::string("z"));
        QCOMPARE(file->tensors[0].shape, (Shape{2, 3}));
        QCOMPARE(file->tensors[0].begin, std::uint64_t{8 + header.size()});
        QCOMPARE(file->tensors[0].end, std::uint64_t{8 + header.size() + 24});
        QCOMPARE(file->tensors[1].name, std::string("a"));
        QCOMPARE(file->tensors[1].dtype, DType::f16);
        QCOMPARE(file->tensors[2].shape, Shape{});
        QCOMPARE(file->tensors[3].name, std::string("nothing"));
        QVERIFY(file->warnings.empty());
    }

    void metadata_without_tensors_opens_with_a_message()
    {
        for (const char* header :
             {"{}", "{\"__metadata__\": {}}", "{\"__metadata__\": {\"format\": \"pt\"}}"}) {
            const std::string bytes = safetensors_bytes(header, "");
            const auto file = opened(bytes);
            QVERIFY2(file, tests::failure(file).c_str());
            QVERIFY(file->tensors.empty());
            QVERIFY(tests::any_holds(file->warnings, {"model.safetensors", "no tensors"}));
        }
    }

    void bytes_of_no_tensor_are_a_warning_data()
    {
        QTest::addColumn<QByteArray>("header");
        const auto row = [](const char* name, const std::string& header) {
            QTest::newRow(name) << QByteArray::fromStdString(header);
        };
        row("at the beginning", "{" + entry("a", "[2]", 4, 12) + ", " + entry("b", "[1]", 12, 16) + "}");
        row("in the middle", "{" + entry("b", "[1]", 12, 16) + ", " + entry("a", "[2]", 0, 8) + "}");
        row("at the end", "{" + entry("a", "[2]", 0, 8) + ", " + entry("b", "[1]", 8, 12) + "}");
    }
    void bytes_of_no_tensor_are_a_warning()
    {
        QFETCH(const QByteArray, header);
        const std::string bytes = safetensors_bytes(header.toStdString(), std::string(16, 'x'));
        const auto file = opened(bytes);
        QVERIFY2(file, tests::failure(file).c_str());
        QCOMPARE(file->tensors.size(), std::size_t{2});
        QVERIFY(tests::any_holds(file->warnings, {"model.safetensors", "4 bytes", "no tensor"}));
    }

    void faults_are_refused_by_name_data()
    {
        QTest::addColumn<QByteArray>("bytes");
        QTest::addColumn<QByteArray>("named");
        const auto raw = [](const char* name, const std::string& bytes, const char* named) {
            QTest::newRow(name) << QByteArray::fromStdString(bytes) << QByteArray(named);
        };
        const auto row = [&](const char* name, const std::string& header, const char* named) {
            raw(name, safetensors_bytes(header, std::string(64, 'x')), named);
        };
        const auto one = [&](const char* name, const std::string& body, const char* named) {
            row(name, "{" + entry("first", "[2]", 0, 8) + ", \"table\": " + body + "}", named);
        };
        row("a name twice", "{" + entry("table", "[2]", 0, 8) + ", " + entry("table", "[2]", 8, 16) + "}",
            "'table'");
        row("ranges that overlap",
            "{" + entry("table", "[4]", 0, 16) + ", " + entry("other", "[2]", 12, 20) + "}", "'table'");
        row("one range inside another",
            "{" + entry("other", "[8]", 0, 32) + ", " + entry("table", "[1]", 4, 8) + "}", "'table'");
        row("end beyond the file", "{" + entry("table", "[17]", 0, 68) + "}", "'table'");
        row("end before start", "{" + entry("table", "[2]", 16, 8) + "}", "'table'");
        row("too few bytes for the shape", "{" + entry("table", "[3]", 0, 8) + "}", "[3]");
        row("unknown dtype", "{" + entry("table", "[2]", 0, 8, "F99") + "}", "F99");
        row("no object", "[1, 2]", "not a JSON object");
        row("cut JSON", "{\"table\": ", "not valid JSON");
        one("entry is a number", "7", "'table'");
        one("no shape", R"({"dtype": "F32", "data_offsets": [0, 8]})", "'shape'");
        one("no dtype", R"({"shape": [2], "data_offsets": [0, 8]})", "'dtype'");
        one("no offsets", R"({"dtype": "F32", "shape": [2]})", "'data_offsets'");
        one("dtype is a number", R"({"dtype": 32, "shape": [2], "data_offsets": [0, 8]})", "'table'");
        one("shape is a number", R"({"dtype": "F32", "shape": 2, "data_offsets": [0, 8]})", "'table'");
        one("shape is negative", R"({"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]})", "'table'");
        one("shape has a fraction", R"({"dtype": "F32", "shape": [2.0], "data_offsets": [0, 8]})", "'table'");
        one("size above 2^63",
            R"({"dtype": "F32", "shape": [9223372036854775808, 0], "data_offsets": [8, 8]})", "'table'");
        one("count wraps to 0",
            R"({"dtype": "F32", "shape": [4294967296, 4294967296], "data_offsets": [8, 8]})", "'table'");
        one("bytes wrap to 0", R"({"dtype": "F32", "shape": [4611686018427387904], "data_offsets": [8, 8]})",
            "'table'");
        one("three offsets", R"({"dtype": "F32", "shape": [2], "data_offsets": [0, 8, 16]})", "'table'");
        one("one offset", R"({"dtype": "F32", "shape": [2], "data_offsets": [8]})", "'table'");
        one("offsets are texts", R"({"dtype": "F32", "shape": [2], "data_offsets": ["0", "8"]})", "'table'");
        one("offsets are negative", R"({"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]})", "'table'");
        one(
            "33 dimensions",
            R"({"dtype": "F32", "shape": [1)" +
                [] {
                    std::string ones;
                    for (int n = 0; n < 32; ++n) ones += ",1";
                    return ones;
                }() +
                R"(], "data_offsets": [8, 12]})",
            "'table'");
        raw("no bytes", "", "0 bytes");
        raw("7 bytes", "1234567", "7 bytes");
        raw("length of 0", with_length(0, "{}"), "empty");
        raw("length of 2^40", with_length(std::uint64_t{1} << 40, "{}"), "100000000");
        raw("length of 2^63", with_length(std::uint64_t{1} << 63, "{}"), "100000000");
        raw("length of 2^64 - 1", with_length(~std::uint64_t{0}, "{}"), "100000000");
        raw("length beyond the file", with_length(3, "{}"), "cut short");
        raw("no UTF-8", safetensors_bytes("{\"\xFF\": 1}", ""), "UTF-8");
    }
    void faults_are_refused_by_name()
    {
        QFETCH(const QByteArray, bytes);
        QFETCH(const QByteArray, named);
        const std::string content = bytes.toStdString();
        QCOMPARE(refusal(opened(content), ErrorCode::corrupt_file,
                         {"bert/model.safetensors", named.toStdString()}),
                 QString());
    }

    void a_file_cut_anywhere_is_refused()
    {
        const tests::CheckpointBuilder builder;
        const std::string whole = safetensors_bytes(builder.tensors);
        QVERIFY(opened(whole));
        std::size_t tried = 0;
        for (std::size_t size = 0; size < whole.size();
             size += (size < 40 || size + 40 > whole.size()) ? 1 : 97) {
            const std::string cut = whole.substr(0, size);
            QCOMPARE(refusal(opened(cut), ErrorCode::corrupt_file, {"bert/model.safetensors"}), QString());
            ++tried;
        }
        QVERIFY(tried > 100);
    }

    void a_header_of_101_megabytes_costs_nothing()
    {
        const TemporaryFolder folder;
        const std::string path = folder.write("model.safetensors", with_length(101'000'000, "{\"a\""));
        std::filesystem::resize_file(path, 200'000'000); // sparse
        const auto source = open_file(path);
        const std::clock_t before = std::clock(); // processor time: the machine may be busy
        QVERIFY(is_safetensors(**source));
        QCOMPARE(refusal(open_safetensors(*source, {}), ErrorCode::corrupt_file,
                         {"model.safetensors", "101000000", "100000000"}),
                 QString());
        QVERIFY((*source)->bytes_read() < 100);
        QVERIFY(std::clock() - before < CLOCKS_PER_SEC);
    }

    void other_contents_are_not_recognised()
    {
        for (const std::string& bytes :
             {std::string(), std::string("{}"), std::string("PK\x03\x04", 4) + std::string(100, 'x'),
              with_length(2, "[]"), std::string(100, '\0')})
            QVERIFY(!is_safetensors(*source_of(bytes)));
        // A length that no file can have: still told apart by the object, and refused for its length.
        QVERIFY(is_safetensors(*source_of(with_length(std::uint64_t{1} << 40, "{\"a\": 1}"))));
    }

    void opening_can_be_stopped()
    {
        std::stop_source stop;
        stop.request_stop();
        const std::string bytes = safetensors_bytes("{}", "");
        QCOMPARE(
            refusal(open_safetensors(source_of(bytes), {stop.get_token(), {}}), ErrorCode::cancelled, {}),
            QString());
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestSafetensorsFormat)
#include "tst_safetensors_format.moc"
