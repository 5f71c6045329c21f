// SPDX-License-Identifier: GPL-3.0-or-later
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <QElapsedTimer>
#include <QTest>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/reading_scope.h"
#include "core/checkpoint/remote_store.h"
#include "core/model/open_model.h"
#include "core/probe/identical_word_probe.h"
#include "core/projection/position_vectors.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/expected_error.h"
#include "tests/support/range_server.h"

namespace posiscope::core {
namespace {

using tests::failure;
using tests::RangeServer;
using tests::refusal;
using tests::ServedFile;
using tests::TemporaryFolder;

/// Bytes in which every place can be told from every other.
std::string numbered_bytes(std::size_t size)
{
    std::string out(size, '\0');
    for (std::size_t n = 0; n < size; ++n) out[n] = static_cast<char>((n * 2654435761u) >> 13u);
    return out;
}

RemoteSettings quick_settings()
{
    RemoteSettings settings;
    settings.http.attempts = 3;
    settings.http.first_pause = std::chrono::milliseconds(5);
    settings.http.longest_pause = std::chrono::milliseconds(50);
    return settings;
}

Result<std::shared_ptr<const ByteSource>> open_one(const RangeServer& server, const std::string& name,
                                                   const RemoteSettings& settings = quick_settings())
{
    const auto store = remote_store(server.url() + "/", server.url(), settings);
    if (!store) return store.error();
    return (*store)->open(name);
}

Result<std::string> read_text(const ByteSource& source, std::uint64_t offset, std::size_t size)
{
    std::string out(size, '\0');
    if (auto read = source.read(offset, std::as_writable_bytes(std::span(out))); !read) return read.error();
    return out;
}

} // namespace

class TestRemoteStore : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void only_what_is_read_is_fetched()
    {
        RangeServer server;
        const std::string content = numbered_bytes(3'000'000);
        server.serve("/big", {content});
        const auto source = open_one(server, "big");
        QVERIFY2(source, failure(source).c_str());
        QCOMPARE((*source)->size(), std::uint64_t{3'000'000});
        const auto piece = read_text(**source, 2'000'000, 1'000);
        QVERIFY2(piece, failure(piece).c_str());
        QVERIFY(*piece == content.substr(2'000'000, 1'000));
        QVERIFY(server.bytes_sent() < 100'000);
        const auto before = server.requests().size();
        QVERIFY(*read_text(**source, 2'000'500, 300) == content.substr(2'000'500, 300)); // kept
        QCOMPARE(server.requests().size(), before);
    }

    void near_stretches_are_joined_and_far_ones_are_not()
    {
        RangeServer server;
        const std::string content = numbered_bytes(4'000'000);
        server.serve("/big", {content});
        const auto source = open_one(server, "big");
        QVERIFY(source);
        std::string a(100, '\0'), b(100, '\0'), c(100, '\0');
        const auto bytes = [](std::string& text) { return std::as_writable_bytes(std::span(text)); };
        const std::vector<ByteRange> ranges{
            {1'000'000, bytes(a)}, {3'000'000, bytes(c)}, {1'010'000, bytes(b)}};
        const auto before = server.requests().size();
        const auto done = (*source)->read_ranges(ranges);
        QVERIFY2(done, failure(done).c_str());
        QVERIFY(a == content.substr(1'000'000, 100) && b == content.substr(1'010'000, 100) &&
                c == content.substr(3'000'000, 100));
        QCOMPARE(server.requests().size() - before, std::size_t{2});
    }

    void a_checkpoint_on_the_hub_opens_and_its_rows_cost_little()
    {
        const TemporaryFolder folder;
        tests::TinyBert sizes;
        sizes.vocabulary = 20'000;
        const tests::CheckpointBuilder builder(sizes);
        builder.write_to(folder);
        RangeServer server;
        const auto file = [&](const std::string& name) {
            std::ifstream in(folder.file(name), std::ios::binary);
            return std::string(std::istreambuf_iterator<char>(in), {});
        };
        const std::string weights = file("model.safetensors");
        QVERIFY(weights.size() > 1'200'000);
        ServedFile served{weights};
        served.needs_token = "secret-token";
        server.serve("/org/tiny/resolve/main/model.safetensors", served);
        served.content = file("config.json");
        server.serve("/org/tiny/resolve/main/config.json", served);
        const TemporaryFolder cache;
        qputenv("HF_ENDPOINT", QByteArray::fromStdString(server.url()));
        qputenv("HF_TOKEN", "secret-token");
        qputenv("XDG_CACHE_HOME", QByteArray::fromStdString(cache.path()));
        qunsetenv("HF_HUB_OFFLINE");
        {
            const auto checkpoint = open_checkpoint("hf://org/tiny", {});
            QVERIFY2(checkpoint, failure(checkpoint).c_str());
            QCOMPARE((*checkpoint)->display_name(), std::string("org/tiny"));
            const auto& table = builder.tensor(tests::word_table_name);
            const auto row = (*checkpoint)->read_rows(table.name, std::vector<std::int64_t>{19'999, 7});
            QVERIFY2(row, failure(row).c_str());
            for (std::size_t f = 0; f < 16; ++f) {
                QCOMPARE(row->values()[f], table.values[19'999 * 16 + f]);
                QCOMPARE(row->values()[16 + f], table.values[7 * 16 + f]);
            }
            QVERIFY(server.bytes_sent() < 150'000);
        }
        // Again, without a network: from the cache, as far as it was read.
        qputenv("HF_HUB_OFFLINE", "1");
        const auto before = server.requests().size();
        {
            const auto checkpoint = open_checkpoint("hf://org/tiny", {});
            QVERIFY2(checkpoint, failure(checkpoint).c_str());
            QVERIFY((*checkpoint)->read_rows(tests::word_table_name, std::vector<std::int64_t>{19'999}));
            QCOMPARE(
                refusal((*checkpoint)->read_rows(tests::word_table_name, std::vector<std::int64_t>{9'000}),
                        ErrorCode::unreadable, {"HF_HUB_OFFLINE", "hf://org/tiny"}),
                QString());
            QCOMPARE(refusal(open_checkpoint("hf://org/other", {}), ErrorCode::not_found, {"hf://org/other"}),
                     QString());
        }
        QCOMPARE(server.requests().size(), before);
        qunsetenv("HF_HUB_OFFLINE");
        qunsetenv("HF_TOKEN");
        // Nothing of the token is on the disk.
        for (const auto& entry : std::filesystem::recursive_directory_iterator(cache.path())) {
            if (!entry.is_regular_file()) continue;
            std::ifstream in(entry.path(), std::ios::binary);
            const std::string bytes(std::istreambuf_iterator<char>(in), {});
            QVERIFY(bytes.find("secret-token") == std::string::npos);
        }
        QCOMPARE(refusal(open_checkpoint("hf://org/tiny", {}), ErrorCode::unreadable, {"401", "HF_TOKEN"}),
                 QString());
        QCOMPARE(refusal(open_checkpoint("hf://org/absent", {}), ErrorCode::not_found,
                         {"hf://org/absent", "model.safetensors"}),
                 QString());
        QCOMPARE(refusal(open_checkpoint("hf://../etc", {}), ErrorCode::invalid_argument, {"hf://org/name"}),
                 QString());
    }

    void each_answer_has_its_own_sentence_data()
    {
        QTest::addColumn<int>("status");
        QTest::addColumn<QString>("word");
        QTest::newRow("401") << 401 << "login";
        QTest::newRow("403") << 403 << "gated";
        QTest::newRow("404") << 404 << "does not exist";
        QTest::newRow("416") << 416 << "empty or shorter";
        QTest::newRow("429") << 429 << "too often";
        QTest::newRow("503") << 503 << "trouble of its own";
        QTest::newRow("418") << 418 << "206 was expected";
    }
    void each_answer_has_its_own_sentence()
    {
        QFETCH(const int, status);
        QFETCH(const QString, word);
        RangeServer server;
        ServedFile file{"content"};
        file.status = status;
        server.serve("/file", file);
        const auto source = open_one(server, "file");
        QVERIFY(!source);
        const QString message = QString::fromStdString(source.error().message);
        QVERIFY2(message.contains(word) && message.contains(QString::number(status)), qPrintable(message));
        QVERIFY2(message.contains(QStringLiteral("/file")), qPrintable(message));
        const bool retried = status == 429 || status >= 500;
        QCOMPARE(server.requests().size(), std::size_t{retried ? 3u : 1u});
    }

    void trouble_that_passes_is_waited_for()
    {
        RangeServer server;
        const std::string content = numbered_bytes(200'000);
        ServedFile busy{content};
        busy.status = 503;
        busy.status_times = 2;
        server.serve("/busy", busy);
        QVERIFY(open_one(server, "busy"));
        ServedFile often{content};
        often.status = 429;
        often.status_times = 1;
        often.retry_after = "0";
        server.serve("/often", often);
        QVERIFY(open_one(server, "often"));
        ServedFile reset{content};
        reset.reset_times = 2;
        server.serve("/reset", reset);
        const auto source = open_one(server, "reset");
        QVERIFY2(source, failure(source).c_str());
    }

    void a_body_that_breaks_off_is_resumed()
    {
        RangeServer server;
        const std::string content = numbered_bytes(900'000);
        server.serve("/file", {content});
        const auto source = open_one(server, "file");
        QVERIFY(source);
        ServedFile cut{content};
        cut.cut_times = 2;
        server.serve("/file", cut);
        const auto before = server.bytes_sent();
        const auto piece = read_text(**source, 100'000, 400'000);
        QVERIFY2(piece, failure(piece).c_str());
        QVERIFY(*piece == content.substr(100'000, 400'000));
        QCOMPARE(server.bytes_sent() - before, std::uint64_t{400'000}); // nothing was sent twice
        cut.cut_times = 1'000;
        server.serve("/file", cut);
        QCOMPARE(refusal(read_text(**source, 600'000, 200'000), ErrorCode::unreadable, {"/file"}), QString());
    }

    void a_file_that_changes_is_an_error()
    {
        RangeServer server;
        const std::string content = numbered_bytes(500'000);
        server.serve("/file", {content});
        const auto source = open_one(server, "file");
        QVERIFY(source);
        ServedFile other{content};
        other.etag = "\"two\"";
        server.serve("/file", other);
        QCOMPARE(refusal(read_text(**source, 300'000, 1'000), ErrorCode::unreadable, {"/file", "changed"}),
                 QString());
        ServedFile shorter{content.substr(0, 400'000)};
        server.serve("/file", shorter);
        QCOMPARE(refusal(read_text(**source, 300'000, 1'000), ErrorCode::unreadable, {"/file", "changed"}),
                 QString());
    }

    void other_ranges_than_asked_for_are_refused()
    {
        RangeServer server;
        ServedFile file{numbered_bytes(500'000)};
        server.serve("/file", file);
        const auto source = open_one(server, "file");
        QVERIFY(source);
        file.range_shift = 100;
        server.serve("/file", file);
        QCOMPARE(
            refusal(read_text(**source, 200'000, 1'000), ErrorCode::unreadable, {"/file", "another range"}),
            QString());
    }

    void servers_without_ranges_serve_small_files_only()
    {
        RangeServer server;
        ServedFile file{numbered_bytes(500'000)};
        file.ranges = false;
        server.serve("/small", file);
        const auto small = open_one(server, "small");
        QVERIFY2(small, failure(small).c_str());
        QVERIFY(*read_text(**small, 400'000, 500) == file.content.substr(400'000, 500));
        file.content = std::string(33'000'000, 'x');
        server.serve("/large", file);
        QCOMPARE(refusal(open_one(server, "large"), ErrorCode::unreadable, {"/large", "whole files only"}),
                 QString());
    }

    void the_token_stays_with_its_host()
    {
        RangeServer hub, elsewhere;
        const std::string content = numbered_bytes(300'000);
        elsewhere.serve("/blob", {content});
        ServedFile file{""};
        file.status = 302;
        file.location = elsewhere.url() + "/blob";
        hub.serve("/file", file);
        RemoteSettings settings = quick_settings();
        settings.token = "secret-token";
        const auto source = open_one(hub, "file", settings);
        QVERIFY2(source, failure(source).c_str());
        QVERIFY(*read_text(**source, 200'000, 500) == content.substr(200'000, 500));
        QCOMPARE(hub.requests().front().authorization, std::string("Bearer secret-token"));
        QVERIFY(elsewhere.requests().size() >= 2);
        for (const auto& request : elsewhere.requests()) QVERIFY(request.authorization.empty());
        // Not to plain HTTP on other machines, nor without end.
        file.location = "http://192.0.2.1/blob";
        hub.serve("/out", file);
        QCOMPARE(refusal(open_one(hub, "out"), ErrorCode::unreadable, {"not HTTPS"}), QString());
        file.location = "/round";
        hub.serve("/round", file);
        QCOMPARE(refusal(open_one(hub, "round"), ErrorCode::unreadable, {"redirects more than"}), QString());
    }

    void plain_http_is_for_this_machine_only()
    {
        QCOMPARE(refusal(remote_store("http://192.0.2.1/", "x", quick_settings()),
                         ErrorCode::invalid_argument, {"HTTPS"}),
                 QString());
        QVERIFY(!is_allowed_url("http://127.0.0.1.example.org/"));
        QVERIFY(!is_allowed_url("http://localhost@example.org/"));
        QVERIFY(!is_allowed_url("ftp://localhost/"));
        QVERIFY(is_allowed_url("https://example.org/"));
    }

    void a_silent_server_ends_in_time_and_can_be_left()
    {
        RangeServer server;
        ServedFile file{"content"};
        file.silent = true;
        server.serve("/file", file);
        RemoteSettings settings = quick_settings();
        settings.http.attempts = 1;
        settings.http.stall_timeout = std::chrono::milliseconds(1'000);
        QCOMPARE(refusal(open_one(server, "file", settings), ErrorCode::unreadable, {"/file", "in time"}),
                 QString());
        settings.http.stall_timeout = std::chrono::milliseconds(60'000);
        std::stop_source stop;
        RunContext ctx;
        ctx.stop = stop.get_token();
        const ReadingScope scope(ctx);
        std::thread later([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            stop.request_stop();
        });
        QElapsedTimer clock;
        clock.start();
        const auto source = open_one(server, "file", settings);
        later.join();
        QVERIFY(!source);
        QCOMPARE(source.error().code, ErrorCode::cancelled);
        QVERIFY(clock.elapsed() < 5'000);
    }

    void a_slow_download_tells_how_far_it_is_and_can_be_left()
    {
        RangeServer server;
        ServedFile file{numbered_bytes(3'000'000)};
        file.slow_bytes = 1'000; // a minute for all of it
        file.slow_from = 32'768;
        server.serve("/file", file);
        const auto source = open_one(server, "file");
        QVERIFY2(source, failure(source).c_str());
        std::stop_source stop;
        std::vector<Progress> told;
        bool told_after_stop = false;
        RunContext ctx;
        ctx.stop = stop.get_token();
        ctx.progress = [&](const Progress& now) {
            told_after_stop = told_after_stop || stop.stop_requested();
            told.push_back(now);
            if (now.done > 0) stop.request_stop();
        };
        const ReadingScope scope(ctx);
        QCOMPARE(refusal(read_text(**source, 100'000, 2'000'000), ErrorCode::cancelled, {"stopped"}),
                 QString());
        QVERIFY(!told.empty());
        QVERIFY(told.front().stage == "download");
        QCOMPARE(told.back().total, std::size_t{2'000'000});
        QVERIFY(told.back().done > 0 && told.back().done < 2'000'000);
        QVERIFY(!told_after_stop);
        QVERIFY(server.bytes_sent() < 2'000'000);
    }

    void what_waits_for_the_download_of_another_thread_can_be_left()
    {
        RangeServer server;
        ServedFile file{numbered_bytes(3'000'000)};
        file.slow_bytes = 1'000;
        file.slow_from = 32'768;
        server.serve("/file", file);
        const auto source = open_one(server, "file");
        QVERIFY2(source, failure(source).c_str());
        std::stop_source stop_first, stop_second;
        std::atomic<bool> first_reads{false}, first_is_done{false};
        std::thread first([&] {
            RunContext ctx;
            ctx.stop = stop_first.get_token();
            ctx.progress = [&](const Progress& now) { first_reads = first_reads || now.done > 0; };
            const ReadingScope scope(ctx);
            const auto text = read_text(**source, 100'000, 2'000'000);
            first_is_done = true;
        });
        while (!first_reads) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        RunContext ctx;
        ctx.stop = stop_second.get_token();
        const ReadingScope scope(ctx);
        std::thread later([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            stop_second.request_stop();
        });
        const auto text = read_text(**source, 2'500'000, 100);
        const bool was_waiting = !first_is_done;
        stop_first.request_stop();
        later.join();
        first.join();
        QCOMPARE(refusal(text, ErrorCode::cancelled, {"stopped"}), QString());
        QVERIFY(was_waiting);
    }

    /// Opening a model, a probe, position vectors and a relative bias: each stops in the middle of a file that never ends.
    void every_reading_of_a_model_can_be_stopped()
    {
        const TemporaryFolder folder;
        tests::TinyBert sizes;
        sizes.positions = 4'000;
        sizes.vocabulary = 2'000;
        const tests::CheckpointBuilder builder(sizes);
        builder.write_to(folder);
        RangeServer server;
        const auto content = [&](const std::string& name) {
            std::ifstream in(folder.file(name), std::ios::binary);
            return std::string(std::istreambuf_iterator<char>(in), {});
        };
        ServedFile weights{content("model.safetensors")};
        weights.slow_bytes = 100;
        weights.slow_from = 32'768;
        server.serve("/org/tiny/resolve/main/model.safetensors", weights);
        server.serve("/org/tiny/resolve/main/config.json", {content("config.json")});
        ServedFile words{content("vocab.txt")};
        words.slow_bytes = 1;
        server.serve("/org/tiny/resolve/main/vocab.txt", words);
        const TemporaryFolder cache;
        qputenv("HF_ENDPOINT", QByteArray::fromStdString(server.url()));
        qputenv("XDG_CACHE_HOME", QByteArray::fromStdString(cache.path()));
        const auto stopped_at_first_byte = [](const auto& run) {
            std::stop_source stop;
            RunContext ctx;
            ctx.stop = stop.get_token();
            bool was_told = false;
            ctx.progress = [&](const Progress& now) {
                was_told = was_told || (now.stage == "download" && now.done > 0 && now.done < now.total);
                if (was_told) stop.request_stop();
            };
            const auto result = run(ctx);
            if (!was_told) return QStringLiteral("no progress was told");
            return refusal(result, ErrorCode::cancelled, {});
        };
        QCOMPARE(
            stopped_at_first_byte([](const RunContext& ctx) { return open_model("hf://org/tiny", ctx); }),
            QString());
        words.slow_bytes = 0;
        server.serve("/org/tiny/resolve/main/vocab.txt", words);
        const auto model = open_model("hf://org/tiny", {});
        QVERIFY2(model, failure(model).c_str());
        const Stack& stack = (*model)->architecture.stacks.front();
        QCOMPARE(stopped_at_first_byte([&](const RunContext& ctx) {
                     return run_identical_word_probe(**model, ProbeOptions{}, ctx);
                 }),
                 QString());
        QCOMPARE(stopped_at_first_byte(
                     [&](const RunContext& ctx) { return read_position_vectors(**model, stack, 0, ctx); }),
                 QString());
        qunsetenv("HF_ENDPOINT");
    }

    void locations_on_the_hub_are_read_strictly()
    {
        const auto plain = parse_hub_location("hf://org/name");
        QVERIFY(plain && plain->model == "org/name" && plain->revision == "main" && plain->file.empty());
        const auto revision = parse_hub_location("hf://bert-base-uncased@v1.0/sub/model.safetensors");
        QVERIFY(revision && revision->model == "bert-base-uncased" && revision->revision == "v1.0" &&
                revision->file == "sub/model.safetensors");
        for (const char* wrong : {"hf://", "hf:///", "hf://a/../b", "hf://a/b@", "hf://a b/c",
                                  "hf://a/b@../x", "hf://a/b?x=1", "hf://a/b#c"})
            QVERIFY2(!parse_hub_location(wrong), wrong);
    }
};

} // namespace posiscope::core

QTEST_GUILESS_MAIN(posiscope::core::TestRemoteStore)
#include "tst_remote_store.moc"
