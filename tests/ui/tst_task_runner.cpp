// SPDX-License-Identifier: GPL-3.0-or-later
#include <QSignalSpy>
#include <QTest>
#include <QThread>

#include <atomic>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <thread>

#include "ui/task_runner.h"

using posiscope::core::Error;
using posiscope::core::ErrorCode;
using posiscope::core::Result;
using posiscope::core::RunContext;
using posiscope::ui::TaskRunner;

namespace {

/// Works until it is asked to stop.
Result<int> endless(const RunContext& ctx)
{
    while (!ctx.cancelled()) {
        ctx.report({"probe", 1, 2});
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return posiscope::core::cancelled_error("endless work");
}

} // namespace

class TestTaskRunner : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void delivers_on_the_ui_thread()
    {
        TaskRunner runner;
        std::optional<int> value;
        QThread* worker_thread = nullptr;
        QThread* done_thread = nullptr;
        runner.start<int>(
            [&](const RunContext&) -> Result<int> {
                worker_thread = QThread::currentThread();
                return 7;
            },
            [&](Result<int> result) {
                done_thread = QThread::currentThread();
                if (result) value = *result;
            });
        QVERIFY(!value); // never before the caller is back in its event loop
        QTRY_VERIFY(value.has_value());
        QCOMPARE(*value, 7);
        QCOMPARE(done_thread, QThread::currentThread());
        QVERIFY(worker_thread != done_thread);
        QVERIFY(!runner.isRunning());
    }

    void newest_wins()
    {
        TaskRunner runner;
        std::vector<int> delivered;
        std::atomic<int> ran{0};
        for (int request = 0; request < 20; ++request) {
            runner.start<int>(
                [request, &ran](const RunContext& ctx) -> Result<int> {
                    ++ran;
                    if (request < 19) return endless(ctx);
                    return request;
                },
                [&](Result<int> result) { delivered.push_back(result ? *result : -1); });
        }
        QTRY_VERIFY(!delivered.empty());
        QTest::qWait(50);
        QCOMPARE(delivered, std::vector<int>{19});
        QVERIFY(ran.load() <= 20);
    }

    void late_result_of_an_older_request_is_dropped()
    {
        TaskRunner runner;
        std::vector<int> delivered;
        std::atomic<bool> first_is_running{false};
        std::atomic<bool> release{false};
        runner.start<int>(
            [&](const RunContext&) -> Result<int> { // deaf to stop
                first_is_running = true;
                while (!release) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                return 1;
            },
            [&](Result<int> result) { delivered.push_back(*result); });
        QTRY_VERIFY(first_is_running);
        runner.start<int>([](const RunContext&) -> Result<int> { return 2; },
                          [&](Result<int> result) { delivered.push_back(*result); });
        release = true;
        QTRY_COMPARE(delivered, std::vector<int>{2});
        QTest::qWait(20);
        QCOMPARE(delivered, std::vector<int>{2});
    }

    void cancel_gives_cancelled()
    {
        TaskRunner runner;
        std::optional<ErrorCode> code;
        int late_progress = 0;
        connect(&runner, &TaskRunner::progressed, this, [&] {
            if (code) ++late_progress;
        });
        runner.start<int>(
            endless, [&](Result<int> result) { code = result ? ErrorCode::internal : result.error().code; });
        QSignalSpy progress(&runner, &TaskRunner::progressed);
        QTRY_VERIFY(!progress.isEmpty());
        runner.cancel();
        QTRY_VERIFY(code.has_value());
        QCOMPARE(*code, ErrorCode::cancelled);
        QTest::qWait(50);
        QCOMPARE(late_progress, 0);
    }

    void cancelled_work_that_finishes_all_the_same_is_not_shown()
    {
        TaskRunner runner;
        std::optional<ErrorCode> code;
        std::atomic<bool> running{false};
        runner.start<int>(
            [&](const RunContext& ctx) -> Result<int> {
                running = true;
                while (!ctx.cancelled()) std::this_thread::yield();
                return 3;
            },
            [&](Result<int> result) { code = result ? ErrorCode::internal : result.error().code; });
        QTRY_VERIFY(running);
        runner.cancel();
        QTRY_VERIFY(code.has_value());
        QCOMPARE(*code, ErrorCode::cancelled);
    }

    void abandon_delivers_nothing()
    {
        TaskRunner runner;
        bool delivered = false;
        runner.start<int>(endless, [&](Result<int>) { delivered = true; });
        QSignalSpy finished(&runner, &TaskRunner::finished);
        runner.abandon();
        QCOMPARE(finished.size(), 1);
        QVERIFY(!runner.isRunning());
        QTest::qWait(50);
        QVERIFY(!delivered);
    }

    void destructor_stops_and_waits()
    {
        std::atomic<bool> started{false};
        std::atomic<bool> ended{false};
        bool delivered = false;
        auto runner = std::make_unique<TaskRunner>();
        runner->start<int>(
            [&](const RunContext& ctx) -> Result<int> {
                started = true;
                auto result = endless(ctx);
                ended = true;
                return result;
            },
            [&](Result<int>) { delivered = true; });
        QTRY_VERIFY(started);
        runner.reset();
        QVERIFY(ended);
        QTest::qWait(20);
        QVERIFY(!delivered);
    }

    void exceptions_become_errors()
    {
        TaskRunner runner;
        std::optional<Error> error;
        const auto keep = [&](Result<int> result) {
            if (!result) error = result.error();
        };
        runner.start<int>([](const RunContext&) -> Result<int> { throw std::runtime_error("boom"); }, keep);
        QTRY_VERIFY(error.has_value());
        QCOMPARE(error->code, ErrorCode::internal);
        QVERIFY(error->message.find("boom") != std::string::npos);

        error.reset();
        runner.start<int>([](const RunContext&) -> Result<int> { throw std::bad_alloc(); }, keep);
        QTRY_VERIFY(error.has_value());
        QCOMPARE(error->code, ErrorCode::out_of_memory);

        error.reset();
        runner.start<int>([](const RunContext&) -> Result<int> { throw 3; }, keep);
        QTRY_VERIFY(error.has_value());
        QCOMPARE(error->code, ErrorCode::internal);
    }

    void progress_is_limited()
    {
        TaskRunner runner;
        QSignalSpy progress(&runner, &TaskRunner::progressed);
        bool done = false;
        runner.start<int>(
            [](const RunContext& ctx) -> Result<int> {
                const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
                std::size_t n = 0;
                while (std::chrono::steady_clock::now() < end) ctx.report({"probe", ++n, 1'000'000'000});
                return 0;
            },
            [&](Result<int>) { done = true; });
        QTRY_VERIFY(done);
        QVERIFY(progress.size() >= 1);
        QVERIFY(progress.size() <= 8);
        QCOMPARE(progress.first().first().toString(), QStringLiteral("probe"));
    }

    void done_may_start_the_next_task()
    {
        TaskRunner runner;
        int second = 0;
        QSignalSpy started(&runner, &TaskRunner::started);
        QSignalSpy finished(&runner, &TaskRunner::finished);
        runner.start<int>([](const RunContext&) -> Result<int> { return 1; },
                          [&](Result<int> first) {
                              runner.start<int>(
                                  [value = *first](const RunContext&) -> Result<int> { return value + 1; },
                                  [&](Result<int> result) { second = *result; });
                          });
        QTRY_COMPARE(second, 2);
        QTRY_COMPARE(finished.size(), 1);
        QVERIFY(started.size() <= 2);
    }
};

QTEST_GUILESS_MAIN(TestTaskRunner)
#include "tst_task_runner.moc"
