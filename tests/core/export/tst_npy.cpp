// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <QTemporaryDir>
#include <QTest>

#include "core/export/npy.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/expected_error.h"

namespace posiscope::core {
namespace {

/// A .npy file of any kind: `header` is the dictionary, `bytes` what follows it.
std::string npy_file(int version, std::string header, const std::string& bytes)
{
    std::string out("\x93NUMPY", 6);
    out += static_cast<char>(version);
    out += '\0';
    header += '\n';
    out += static_cast<char>(header.size() & 0xffu);
    out += static_cast<char>(header.size() >> 8u);
    if (version > 1) out += std::string(2, '\0');
    return out + header + bytes;
}

std::string header_of(const std::string& type, const std::string& shape, bool fortran = false)
{
    return "{'descr': '" + type + "', 'fortran_order': " + (fortran ? "True" : "False") +
           ", 'shape': " + shape + ", }";
}

template <class T>
std::string raw(const std::vector<T>& values, bool big_endian = false)
{
    std::string out;
    for (const T value : values) {
        char bytes[sizeof(T)];
        std::memcpy(bytes, &value, sizeof(T));
        if (big_endian) std::reverse(bytes, bytes + sizeof(T));
        out.append(bytes, sizeof(T));
    }
    return out;
}

Result<NpyArray> read(const std::string& bytes)
{
    return read_npy(*memory_source("map.npy", std::as_bytes(std::span(bytes))));
}

bool holds(const Result<NpyArray>& found, const Shape& shape, const std::vector<double>& values)
{
    return found.has_value() && found->shape == shape && found->values == values;
}

} // namespace

class Npy : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void every_type()
    {
        const auto reads = [](const std::string& type, const std::string& bytes,
                              const std::vector<double>& wanted) {
            return holds(read(npy_file(1, header_of(type, "(2,)"), bytes)), {2}, wanted);
        };
        QVERIFY(reads("<f8", raw<double>({1.5, -2e300}), {1.5, -2e300}));
        QVERIFY(reads(">f8", raw<double>({1.5, -2e300}, true), {1.5, -2e300}));
        QVERIFY(reads("<f4", raw<float>({1.5f, -0.25f}), {1.5, -0.25}));
        QVERIFY(reads(">f4", raw<float>({1.5f, -0.25f}, true), {1.5, -0.25}));
        QVERIFY(reads("<f2", raw<std::uint16_t>({0x3e00, 0xc400}), {1.5, -4.0}));
        QVERIFY(reads(">f2", raw<std::uint16_t>({0x0001, 0x7bff}, true), {std::ldexp(1.0, -24), 65504.0}));
        QVERIFY(reads("<f2", raw<std::uint16_t>({0x7c00, 0x8000}),
                      {std::numeric_limits<double>::infinity(), 0.0}));
        QVERIFY(reads("|i1", raw<std::int8_t>({-3, 4}), {-3, 4}));
        QVERIFY(reads("|u1", raw<std::uint8_t>({253, 4}), {253, 4}));
        QVERIFY(reads("|b1", raw<std::uint8_t>({0, 1}), {0, 1}));
        QVERIFY(reads("<i2", raw<std::int16_t>({-300, 4}), {-300, 4}));
        QVERIFY(reads(">i4", raw<std::int32_t>({-70000, 4}, true), {-70000, 4}));
        QVERIFY(reads("<i8", raw<std::int64_t>({-(std::int64_t{1} << 40), 4}), {-std::ldexp(1.0, 40), 4}));
        QVERIFY(reads(">u2", raw<std::uint16_t>({65535, 4}, true), {65535, 4}));
        QVERIFY(reads("<u4", raw<std::uint32_t>({4000000000u, 4}), {4e9, 4}));
        QVERIFY(reads("<u8", raw<std::uint64_t>({std::uint64_t{1} << 63u, 4}), {std::ldexp(1.0, 63), 4}));
        QVERIFY(reads("=f8", raw<double>({1, 2}), {1, 2}));
        const auto nan = read(npy_file(1, header_of("<f2", "(1,)"), raw<std::uint16_t>({0x7e00})));
        QVERIFY(nan.has_value() && std::isnan(nan->values[0]));
    }

    void orders_shapes_and_versions()
    {
        const std::string six = raw<double>({1, 2, 3, 4, 5, 6});
        QVERIFY(holds(read(npy_file(1, header_of("<f8", "(2, 3)"), six)), {2, 3}, {1, 2, 3, 4, 5, 6}));
        QVERIFY(holds(read(npy_file(1, header_of("<f8", "(2, 3)", true), six)), {2, 3}, {1, 3, 5, 2, 4, 6}));
        QVERIFY(holds(read(npy_file(2, header_of("<f8", "(3, 2)"), six)), {3, 2}, {1, 2, 3, 4, 5, 6}));
        QVERIFY(holds(read(npy_file(3, header_of("<f8", "(6,)"), six)), {6}, {1, 2, 3, 4, 5, 6}));
        const std::string eight = raw<double>({0, 1, 2, 3, 4, 5, 6, 7});
        QVERIFY(holds(read(npy_file(1, header_of("<f8", "(2, 2, 2)", true), eight)), {2, 2, 2},
                      {0, 4, 2, 6, 1, 5, 3, 7}));
        QVERIFY(holds(read(npy_file(1, header_of("<f8", "()"), raw<double>({7}))), {}, {7}));
        QVERIFY(holds(read(npy_file(1, header_of("<f8", "(0, 3)"), "")), {0, 3}, {}));
        QVERIFY(holds(read(npy_file(1, header_of("<f8", "(0, 3)", true), "")), {0, 3}, {}));
    }

    void headers_of_other_writers()
    {
        const std::string two = raw<double>({1, 2});
        for (const std::string header : {"{\"shape\":(2L,),\"fortran_order\":False,\"descr\":\"<f8\"}",
                                         "{'shape': (2), 'descr': '<f8', 'fortran_order': False}",
                                         "  {'descr' : '<f8' , 'fortran_order' : False,"
                                         "\t'shape' : ( 2 , ) }   "})
            QVERIFY2(holds(read(npy_file(1, header, two)), {2}, {1, 2}), header.c_str());
        QVERIFY(holds(read(npy_file(1, header_of("<f8", "(2,)"), two + "what follows")), {2}, {1, 2}));
    }

    void broken_files_data()
    {
        QTest::addColumn<QByteArray>("bytes");
        QTest::addColumn<int>("code");
        QTest::addColumn<QString>("says");
        const auto row = [](const char* name, const std::string& bytes, ErrorCode code, const char* says) {
            QTest::newRow(name) << QByteArray::fromStdString(bytes) << static_cast<int>(code)
                                << QString(says);
        };
        const std::string two = raw<double>({1, 2});
        const std::string good = npy_file(1, header_of("<f8", "(2,)"), two);
        const ErrorCode corrupt = ErrorCode::corrupt_file;
        const ErrorCode unsupported = ErrorCode::unsupported_format;
        row("empty", "", unsupported, "is not a .npy file");
        row("zip", "PK\x03\x04" + two, unsupported, "is not a .npy file");
        row("mark only", good.substr(0, 6), corrupt, "ends within its header");
        row("cut in the length", good.substr(0, 9), corrupt, "ends within its header");
        row("cut in the header", good.substr(0, 40), corrupt, "claims a header of");
        row("cut in a long length", npy_file(2, "", "").substr(0, 11), corrupt, "ends within its header");
        row("cut in the data", good.substr(0, good.size() - 1), corrupt, "16 bytes, but only 15 follow");
        row("version 4", npy_file(4, header_of("<f8", "(2,)"), two), unsupported, "version 4");
        row("version 0", npy_file(0, header_of("<f8", "(2,)"), two), unsupported, "version 0");
        row("huge header", std::string("\x93NUMPY\x02\x00\xff\xff\xff\x7f", 12) + two, corrupt,
            "claims a header of");
        row("objects", npy_file(1, header_of("|O", "(2,)"), two), unsupported, "Python objects");
        row("complex", npy_file(1, header_of("<c16", "(1,)"), two), unsupported, "complex");
        row("text", npy_file(1, header_of("<U2", "(2,)"), two), unsupported, "text");
        row("long double", npy_file(1, header_of("<f16", "(1,)"), two), unsupported, "'<f16'");
        row("dates", npy_file(1, header_of("<M8[s]", "(2,)"), two), unsupported, "'<M8[s]'");
        row("no type", npy_file(1, header_of("", "(2,)"), two), unsupported, "type ''");
        row("no byte order", npy_file(1, header_of("f8", "(2,)"), two), unsupported, "'f8'");
        row("open byte order", npy_file(1, header_of("|f8", "(2,)"), two), corrupt, "byte order");
        row("fields", npy_file(1, "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (2,)}", two),
            unsupported, "structures");
        row("shape too large", npy_file(1, header_of("<f8", "(3,)"), two), corrupt,
            "24 bytes, but only 16 follow");
        row("shape far too large", npy_file(1, header_of("<f8", "(1000000000000,)"), two), corrupt,
            "[1000000000000]");
        row("size beyond 64 bits", npy_file(1, header_of("<f8", "(99999999999, 99999999999)"), two), corrupt,
            "more than 2^64");
        row("bytes beyond 64 bits", npy_file(1, header_of("<f8", "(4000000000, 1000000000)"), two), corrupt,
            "more than 2^64");
        row("too many digits", npy_file(1, header_of("<f8", "(9999999999999999999,)"), two), corrupt,
            "header");
        row("negative", npy_file(1, header_of("<f8", "(-2,)"), two), corrupt, "header");
        row("an expression", npy_file(1, header_of("<f8", "(1+1,)"), two), corrupt, "header");
        row("a call", npy_file(1, "{'descr': __import__('os'), 'fortran_order': False, 'shape': (2,)}", two),
            corrupt, "header");
        row("no shape", npy_file(1, "{'descr': '<f8', 'fortran_order': False}", two), corrupt, "header");
        row("twice",
            npy_file(1, "{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (2,)}", two),
            corrupt, "header");
        row("another key",
            npy_file(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), 'x': 1}", two), corrupt,
            "header");
        row("more behind", npy_file(1, header_of("<f8", "(2,)") + " x", two), corrupt, "header");
        row("unclosed", npy_file(1, "{'descr': '<f8", two), corrupt, "header");
        row("empty dictionary text", npy_file(1, "", two), corrupt, "header");
    }

    void broken_files()
    {
        QFETCH(QByteArray, bytes);
        QFETCH(int, code);
        QFETCH(QString, says);
        const auto found = read(bytes.toStdString());
        QVERIFY(!found.has_value());
        QCOMPARE(static_cast<int>(found.error().code), code);
        const QString message = QString::fromStdString(found.error().message);
        QVERIFY2(message.contains(says), qPrintable(message));
        QVERIFY2(message.contains("map.npy"), qPrintable(message));
    }

    /// Every beginning of a good file, and every single byte changed: an answer, whatever it is.
    void no_file_does_harm()
    {
        const std::string good =
            npy_file(1, header_of("<f4", "(2, 3)", true), raw<float>({1, 2, 3, 4, 5, 6}));
        for (std::size_t size = 0; size < good.size(); ++size)
            QVERIFY(!read(good.substr(0, size)).has_value());
        std::size_t refused = 0;
        for (std::size_t n = 0; n < good.size(); ++n)
            for (const char byte : {'\0', '\xff', '9', '(', '\'', ' '}) {
                std::string changed = good;
                changed[n] = byte;
                const auto found = read(changed);
                if (!found)
                    ++refused;
                else
                    QCOMPARE(std::optional<std::uint64_t>(found->values.size()), element_count(found->shape));
            }
        QVERIFY(refused > 100);
    }

    void written_and_read()
    {
        QTemporaryDir folder;
        const std::string path = folder.filePath("map.npy").toStdString();
        const HostTensor tensor({2, 1, 3}, {1.0f, 2.0f, 3.0f, -4.0f, 0.1f, 6.0f});
        QVERIFY(write_npy(path, tensor).has_value());
        const auto source = open_file(path);
        QVERIFY(source.has_value());
        QVERIFY(holds(read_npy(**source), {2, 1, 3}, {1.0, 2.0, 3.0, -4.0, static_cast<double>(0.1f), 6.0}));
        QVERIFY(!write_npy(folder.filePath("none/map.npy").toStdString(), tensor).has_value());
    }

    /// Part by part, and yet the same bytes as at once.
    void a_tensor_of_a_checkpoint_is_written_as_it_is()
    {
        std::vector<float> values(3 * 900'000);
        for (std::size_t n = 0; n < values.size(); ++n) values[n] = static_cast<float>(n) - 0.5f;
        const tests::TemporaryFolder folder;
        folder.write("config.json", "{}");
        folder.write("model.safetensors",
                     tests::safetensors_bytes(
                         {{"m", {3, 1, 900'000}, values}, {"s", {}, {0.25f}}, {"e", {0, 4}, {}}}));
        const auto opened = open_checkpoint(folder.path(), {});
        QVERIFY(opened.has_value());
        const auto bytes_of = [](const std::string& path) {
            std::ifstream in(path, std::ios::binary);
            return std::string(std::istreambuf_iterator<char>(in), {});
        };
        const std::string path = folder.file("m.npy");
        QVERIFY(write_tensor_npy(path, **opened, "m", {}).has_value());
        QVERIFY(bytes_of(path) ==
                npy_bytes(std::vector<std::int64_t>{3, 1, 900'000}, std::span<const float>(values)));
        QVERIFY(write_tensor_npy(folder.file("s.npy"), **opened, "s", {}).has_value());
        QVERIFY(bytes_of(folder.file("s.npy")) ==
                npy_bytes(std::vector<std::int64_t>{}, std::span<const float>(std::vector<float>{0.25f})));
        QVERIFY(write_tensor_npy(folder.file("e.npy"), **opened, "e", {}).has_value());
        QCOMPARE(bytes_of(folder.file("e.npy")).size() % 64, std::size_t{0});
        QCOMPARE(tests::refusal(write_tensor_npy(path, **opened, "x", {}), ErrorCode::not_found, {"'x'"}),
                 QString());

        // Stopped in the middle: the old file stays, and nothing lies beside it.
        const std::string before = bytes_of(path);
        std::stop_source stop;
        RunContext ctx;
        ctx.stop = stop.get_token();
        ctx.progress = [&](const Progress&) { stop.request_stop(); };
        QCOMPARE(tests::refusal(write_tensor_npy(path, **opened, "m", ctx), ErrorCode::cancelled, {}),
                 QString());
        QVERIFY(bytes_of(path) == before);
        QCOMPARE(std::distance(std::filesystem::directory_iterator(folder.path()), {}), std::ptrdiff_t{5});
    }

    /// Byte for byte what NumPy writes.
    void bytes_of_numpy()
    {
        const std::string wanted = std::string("\x93NUMPY\x01\x00v\x00", 10) +
                                   "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }" +
                                   std::string(60, ' ') + "\n" + raw<double>({2.5});
        const std::vector<std::int64_t> one{1};
        QCOMPARE(npy_bytes(one, std::span<const double>(std::vector<double>{2.5})), wanted);
        const std::string scalar =
            npy_bytes(std::vector<std::int64_t>{}, std::span<const float>(std::vector<float>{1}));
        QVERIFY(scalar.find("'shape': (), }") != std::string::npos);
        QVERIFY(scalar.find("'<f4'") != std::string::npos);
        QCOMPARE((scalar.size() - 4) % 64, std::size_t{0});
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::Npy)
#include "tst_npy.moc"
