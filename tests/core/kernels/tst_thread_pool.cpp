// SPDX-License-Identifier: GPL-3.0-or-later
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <QTest>

#include "core/kernels/thread_pool.h"

namespace posiscope::core {

class TestThreadPool : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void cleanup() { set_thread_count(default_thread_count()); }

    void every_block_runs_once_data()
    {
        QTest::addColumn<int>("threads");
        for (const int threads : {1, 2, 4, 9}) QTest::addRow("%d threads", threads) << threads;
    }
    void every_block_runs_once()
    {
        QFETCH(const int, threads);
        set_thread_count(static_cast<std::size_t>(threads));
        QCOMPARE(thread_count(), static_cast<std::size_t>(threads));
        for (const std::size_t blocks : {0, 1, 2, 3, 7, 64, 1000}) {
            // Plain integers: a block that ran on two threads would also be a data race.
            std::vector<int> ran(blocks, 0);
            parallel_blocks(blocks, [&](std::size_t block) { ++ran[block]; });
            for (const int times : ran) QCOMPARE(times, 1);
        }
    }

    void several_threads_take_part()
    {
        set_thread_count(4);
        std::mutex mutex;
        std::set<std::thread::id> seen;
        std::atomic<int> inside{0};
        // Each block waits until another is inside as well: only several threads get through.
        parallel_blocks(4, [&](std::size_t) {
            ++inside;
            while (inside.load() < 2) std::this_thread::yield();
            const std::lock_guard lock(mutex);
            seen.insert(std::this_thread::get_id());
        });
        QVERIFY(seen.size() >= 2);
    }

    void one_thread_is_the_caller()
    {
        set_thread_count(1);
        const auto caller = std::this_thread::get_id();
        bool elsewhere = false;
        parallel_blocks(20,
                        [&](std::size_t) { elsewhere = elsewhere || std::this_thread::get_id() != caller; });
        QVERIFY(!elsewhere);
    }

    void calls_may_be_nested()
    {
        set_thread_count(4);
        std::vector<std::vector<int>> ran(12, std::vector<int>(30, 0));
        parallel_blocks(ran.size(), [&](std::size_t outer) {
            const auto thread = std::this_thread::get_id();
            parallel_blocks(ran[outer].size(), [&, thread](std::size_t inner) {
                ran[outer][inner] += std::this_thread::get_id() == thread ? 1 : 100;
            });
        });
        for (const auto& row : ran)
            for (const int times : row) QCOMPARE(times, 1);
    }

    void several_callers_at_once()
    {
        set_thread_count(3);
        std::vector<std::vector<int>> ran(4, std::vector<int>(200, 0));
        {
            std::vector<std::jthread> callers;
            for (auto& mine : ran)
                callers.emplace_back([&mine] {
                    for (int round = 0; round < 20; ++round)
                        parallel_blocks(mine.size(), [&mine](std::size_t block) { ++mine[block]; });
                });
        }
        for (const auto& mine : ran)
            for (const int times : mine) QCOMPARE(times, 20);
    }

    void what_a_block_throws_reaches_the_caller_data()
    {
        QTest::addColumn<int>("threads");
        for (const int threads : {1, 2, 4}) QTest::addRow("%d threads", threads) << threads;
    }
    void what_a_block_throws_reaches_the_caller()
    {
        QFETCH(const int, threads);
        set_thread_count(static_cast<std::size_t>(threads));
        for (int round = 0; round < 20; ++round) {
            const auto work = [](std::size_t block) {
                if (block % 5 == 3) throw std::bad_alloc();
            };
            QVERIFY_EXCEPTION_THROWN(parallel_blocks(40, work), std::bad_alloc);
        }
        // And the pool is as good as before, on as many threads.
        std::vector<int> ran(50, 0);
        parallel_blocks(ran.size(), [&](std::size_t block) { ++ran[block]; });
        for (const int times : ran) QCOMPARE(times, 1);
        if (threads > 1) several_threads_take_part();
    }

    void the_environment_sets_the_number_of_threads()
    {
        const QByteArray before = qgetenv("OMP_NUM_THREADS");
        qunsetenv("OMP_NUM_THREADS");
        const std::size_t cores = default_thread_count();
        QVERIFY(cores >= 1);
        qputenv("OMP_NUM_THREADS", "3");
        QCOMPARE(default_thread_count(), std::size_t{3});
        for (const char* senseless : {"0", "-2", "many", "", "100000000"}) {
            qputenv("OMP_NUM_THREADS", senseless);
            QCOMPARE(default_thread_count(), cores);
        }
        if (before.isEmpty())
            qunsetenv("OMP_NUM_THREADS");
        else
            qputenv("OMP_NUM_THREADS", before);
        set_thread_count(0);
        QCOMPARE(thread_count(), std::size_t{1});
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestThreadPool)
#include "tst_thread_pool.moc"
