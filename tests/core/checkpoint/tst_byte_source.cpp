// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include <QTest>

#include "core/checkpoint/byte_source.h"
#include "core/checkpoint/file_store.h"
#include "core/checkpoint/reading_scope.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/expected_error.h"

namespace posiscope::core {
namespace {

using tests::refusal;
using tests::TemporaryFolder;

Result<std::string> read_part(const ByteSource& source, std::uint64_t offset, std::size_t size)
{
    std::string out(size, '?');
    if (auto read = source.read(offset, std::as_writable_bytes(std::span(out))); !read) return read.error();
    return out;
}

/// The file as it was an hour ago: a change now has another time stamp, however coarse the clock.
void make_old(const std::string& path)
{
    std::filesystem::last_write_time(path,
                                     std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
}

} // namespace

class TestByteSource : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void a_run_that_was_stopped_reads_no_more()
    {
        const TemporaryFolder folder;
        const auto source = open_file(folder.write("weights.bin", std::string(10'000'000, 'x')));
        QVERIFY2(source, tests::failure(source).c_str());
        std::stop_source stop;
        RunContext ctx;
        ctx.stop = stop.get_token();
        {
            const ReadingScope scope(ctx);
            QVERIFY(read_part(**source, 0, 10'000'000));
            stop.request_stop();
            QCOMPARE(refusal(read_part(**source, 0, 10), ErrorCode::cancelled, {"weights.bin"}), QString());
        }
        QVERIFY(read_part(**source, 0, 10)); // what was stopped is the run, not the file
    }

    void files_are_read_in_ranges()
    {
        const TemporaryFolder folder;
        const auto source = open_file(folder.write("weights.bin", "0123456789"));
        QVERIFY2(source, tests::failure(source).c_str());
        QCOMPARE((*source)->size(), std::uint64_t{10});
        QCOMPARE((*source)->name(), folder.file("weights.bin"));
        QCOMPARE((*source)->bytes_read(), std::uint64_t{0});
        QCOMPARE(*read_part(**source, 3, 4), std::string("3456"));
        QCOMPARE(*read_part(**source, 9, 1), std::string("9"));
        QCOMPARE(*read_part(**source, 10, 0), std::string());
        QCOMPARE((*source)->bytes_read(), std::uint64_t{5});
        QCOMPARE(*(*source)->read_text(10), std::string("0123456789"));
        QCOMPARE(refusal((*source)->read_text(9), ErrorCode::corrupt_file, {"weights.bin", "10", "9"}),
                 QString());
    }

    void reads_outside_are_refused_data()
    {
        QTest::addColumn<quint64>("offset");
        QTest::addColumn<int>("size");
        QTest::newRow("one beyond") << quint64{10} << 1;
        QTest::newRow("across the end") << quint64{8} << 3;
        QTest::newRow("far away") << quint64{1} << 10;
        QTest::newRow("sum wraps to 0") << ~quint64{0} << 1;
        QTest::newRow("sum wraps into the file") << ~quint64{0} << 5;
    }
    void reads_outside_are_refused()
    {
        QFETCH(const quint64, offset);
        QFETCH(const int, size);
        const TemporaryFolder folder;
        const auto file = open_file(folder.write("weights.bin", "0123456789"));
        const auto memory = memory_source("weights.bin", std::as_bytes(std::span("0123456789", 10)));
        for (const ByteSource* source : {file->get(), memory.get()})
            QCOMPARE(refusal(read_part(*source, offset, static_cast<std::size_t>(size)),
                             ErrorCode::unreadable, {"weights.bin", "10 bytes"}),
                     QString());
    }

    void memory_is_read_in_ranges()
    {
        const auto source = memory_source("sample/vocab.txt", std::as_bytes(std::span("abcdef", 6)));
        QCOMPARE(source->size(), std::uint64_t{6});
        QCOMPARE(source->name(), std::string("sample/vocab.txt"));
        QCOMPARE(*read_part(*source, 2, 3), std::string("cde"));
        QCOMPARE(source->bytes_read(), std::uint64_t{3});
    }

    void large_files_are_read_beyond_4_gigabytes()
    {
        const TemporaryFolder folder;
        const std::string path = folder.write("large", "");
        constexpr std::uint64_t far = (std::uint64_t{1} << 33) + 5;
        {
            std::ofstream out(path, std::ios::binary);
            out.seekp(static_cast<std::streamoff>(far));
            out << "end"; // a sparse file: takes no place on the disk
            if (!out.flush()) QSKIP("this file system has no sparse files");
        }
        const auto source = open_file(path);
        QCOMPARE((*source)->size(), far + 3);
        QCOMPARE(*read_part(**source, far, 3), std::string("end"));
    }

    void what_is_no_file_is_refused()
    {
        const TemporaryFolder folder;
        QCOMPARE(
            refusal(open_file(folder.file("absent")), ErrorCode::not_found, {"absent", "does not exist"}),
            QString());
        folder.write("plain", "x");
        QCOMPARE(refusal(open_file(folder.file("plain/below")), ErrorCode::not_found, {"plain/below"}),
                 QString());
        QCOMPARE(refusal(open_file(folder.path()), ErrorCode::unreadable, {folder.path(), "folder"}),
                 QString());
        QCOMPARE(refusal(open_file("/dev/null"), ErrorCode::unreadable, {"/dev/null", "regular file"}),
                 QString());
        std::filesystem::create_symlink("loop", folder.file("loop"));
        QCOMPARE(refusal(open_file(folder.file("loop")), ErrorCode::unreadable, {"loop"}), QString());
    }

    void a_named_pipe_does_not_hang()
    {
        const TemporaryFolder folder;
        const std::string path = folder.file("model.safetensors");
        QCOMPARE(::mkfifo(path.c_str(), 0600), 0);
        QCOMPARE(refusal(open_file(path), ErrorCode::unreadable, {"model.safetensors", "regular file"}),
                 QString());
    }

    void a_file_without_permission_is_refused()
    {
        if (::geteuid() == 0) QSKIP("the superuser may read everything");
        const TemporaryFolder folder;
        const std::string path = folder.write("secret", "x");
        std::filesystem::permissions(path, std::filesystem::perms::none);
        QCOMPARE(refusal(open_file(path), ErrorCode::unreadable, {"secret", "ermission"}), QString());
    }

    void names_are_shown_on_one_line()
    {
        QCOMPARE(refusal(open_file("/absent\nfolder\x1b[31m"), ErrorCode::not_found, {"\\x0A", "\\x1B"}),
                 QString());
    }

    void a_file_cut_while_it_is_open_is_an_error()
    {
        const TemporaryFolder folder;
        const std::string path = folder.write("weights.bin", std::string(100000, 'x'));
        const auto source = open_file(path);
        QVERIFY(read_part(**source, 0, 10));
        std::filesystem::resize_file(path, 50000);
        QCOMPARE(refusal(read_part(**source, 60000, 10), ErrorCode::unreadable, {"weights.bin", "100000"}),
                 QString());
        QCOMPARE(refusal(read_part(**source, 49999, 10), ErrorCode::unreadable, {"weights.bin", "50000"}),
                 QString());
        // What is still there belongs to another file by now.
        QCOMPARE(refusal(read_part(**source, 0, 10), ErrorCode::unreadable, {"weights.bin", "changed"}),
                 QString());
    }

    void a_file_rewritten_while_it_is_open_is_an_error()
    {
        const TemporaryFolder folder;
        const std::string path = folder.write("weights.bin", "0123456789");
        make_old(path);
        const auto source = open_file(path);
        QVERIFY(read_part(**source, 0, 10));
        folder.write("weights.bin", "9876543210");
        QCOMPARE(refusal(read_part(**source, 0, 10), ErrorCode::unreadable, {"weights.bin", "changed"}),
                 QString());
    }

    void a_file_replaced_while_it_is_open_is_still_the_old_one()
    {
        const TemporaryFolder folder;
        const std::string path = folder.write("weights.bin", "0123456789");
        const auto source = open_file(path);
        std::filesystem::rename(folder.write("new", "9876543210"), path);
        QCOMPARE(*read_part(**source, 0, 10), std::string("0123456789"));
    }

    void several_threads_read_at_once()
    {
        const TemporaryFolder folder;
        std::string bytes(1 << 16, '\0');
        for (std::size_t n = 0; n < bytes.size(); ++n) bytes[n] = static_cast<char>(n * 7 % 251);
        const auto source = open_file(folder.write("weights.bin", bytes));
        std::array<bool, 4> right{};
        {
            std::vector<std::jthread> readers;
            for (std::size_t t = 0; t < right.size(); ++t)
                readers.emplace_back([&, t] {
                    right[t] = true;
                    for (std::size_t at = t; at + 100 < bytes.size(); at += 997) {
                        const auto part = read_part(**source, at, 100);
                        right[t] = right[t] && part && *part == bytes.substr(at, 100);
                    }
                });
        }
        for (const bool one : right) QVERIFY(one);
    }

    void folders_are_stores()
    {
        const TemporaryFolder folder;
        folder.write("b.txt", "two");
        folder.write("a.txt", "one");
        folder.write("below/c.txt", "three");
        std::filesystem::create_symlink(folder.file("a.txt"), folder.file("link.txt"));
        const auto store = folder_store(folder.path());
        QCOMPARE(store->names(), (std::vector<std::string>{"a.txt", "b.txt", "below", "link.txt"}));
        QCOMPARE(store->name(), folder.path());
        QVERIFY(store->contains("b.txt"));
        QVERIFY(!store->contains("c.txt"));
        QCOMPARE(*(*store->open("link.txt"))->read_text(10), std::string("one"));
        QCOMPARE(refusal(store->open("absent"), ErrorCode::not_found, {"absent"}), QString());
        QVERIFY(folder_store(folder.file("nowhere"))->names().empty());
    }

    void the_embedded_sample_is_a_store()
    {
        const auto names = embedded_sample_names();
        QCOMPARE(names.front(),
                 std::string("minilm-l6-first-layer")); // the one that opens at the first start
        const auto store = embedded_sample(names.front());
        QVERIFY2(store, tests::failure(store).c_str());
        for (const char* file :
             {"config.json", "model.safetensors", "vocab.tsv", "vocab.txt", "LICENSE", "MODEL-CARD.md"})
            QVERIFY2((*store)->contains(file), file);
        QCOMPARE((*store)->name(), std::string("sample:minilm-l6-first-layer"));
        // The very bytes that stand in the tree.
        const auto embedded = (*store)->open("vocab.tsv");
        const auto original =
            open_file(POSISCOPE_SOURCE_DIR "/resources/samples/minilm-l6-first-layer/vocab.tsv");
        QVERIFY(embedded && original);
        QCOMPARE(*(*embedded)->read_text(1 << 20), *(*original)->read_text(1 << 20));
        QCOMPARE(refusal((*store)->open("absent"), ErrorCode::not_found, {"absent", "minilm"}), QString());
        QCOMPARE(
            refusal(embedded_sample("no-such"), ErrorCode::not_found, {"no-such", "minilm-l6-first-layer"}),
            QString());
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestByteSource)
#include "tst_byte_source.moc"
