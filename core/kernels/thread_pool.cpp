// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#ifdef __linux__
#include <sched.h>
#endif

namespace posiscope::core {
namespace {

/// One call of parallel_blocks: blocks are taken by whichever thread is free.
struct Job {
    const std::function<void(std::size_t)>* work = nullptr;
    std::size_t blocks = 0;
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::condition_variable finished;
    std::size_t done = 0;
    std::exception_ptr thrown; ///< by the first block that threw

    void run()
    {
        for (;;) {
            const std::size_t block = next.fetch_add(1);
            if (block >= blocks) return;
            std::exception_ptr fault;
            // A worker has nobody above it to catch std::bad_alloc: the caller gets it when all blocks are done.
            try {
                (*work)(block);
            } catch (...) {
                fault = std::current_exception();
            }
            const std::lock_guard lock(mutex);
            if (fault && !thrown) thrown = fault;
            if (++done == blocks) finished.notify_all();
        }
    }
};

thread_local bool inside_block = false;

class Pool {
public:
    ~Pool()
    {
        {
            const std::lock_guard lock(m_mutex);
            m_stopping = true;
        }
        m_wake.notify_all();
    }

    void set_threads(std::size_t threads)
    {
        const std::lock_guard lock(m_mutex);
        m_threads = std::max<std::size_t>(1, threads);
    }

    std::size_t threads()
    {
        const std::lock_guard lock(m_mutex);
        return m_threads;
    }

    void run(std::size_t blocks, const std::function<void(std::size_t)>& work)
    {
        const auto job = std::make_shared<Job>();
        job->work = &work;
        job->blocks = blocks;
        {
            const std::lock_guard lock(m_mutex);
            const std::size_t helpers = std::min(blocks, m_threads) - 1;
            while (m_workers.size() < helpers) m_workers.emplace_back([this] { serve(); });
            for (std::size_t n = 0; n < helpers; ++n) m_queue.push_back(job);
        }
        m_wake.notify_all();
        inside_block = true;
        job->run();
        inside_block = false;
        std::unique_lock lock(job->mutex);
        job->finished.wait(lock, [&] { return job->done == job->blocks; });
        if (job->thrown) std::rethrow_exception(job->thrown);
    }

private:
    void serve()
    {
        inside_block = true;
        for (;;) {
            std::shared_ptr<Job> job;
            {
                std::unique_lock lock(m_mutex);
                m_wake.wait(lock, [this] { return m_stopping || !m_queue.empty(); });
                if (m_stopping) return;
                job = std::move(m_queue.front());
                m_queue.pop_front();
            }
            job->run();
        }
    }

    std::mutex m_mutex;
    std::condition_variable m_wake;
    std::deque<std::shared_ptr<Job>> m_queue;
    std::size_t m_threads = default_thread_count();
    bool m_stopping = false;
    std::vector<std::jthread> m_workers; // last: joined before the rest goes away
};

Pool& pool()
{
    static Pool the_pool;
    return the_pool;
}

} // namespace

std::size_t default_thread_count()
{
    if (const char* wanted = std::getenv("OMP_NUM_THREADS")) {
        const long threads = std::strtol(wanted, nullptr, 10);
        if (threads >= 1 && threads <= 4096) return static_cast<std::size_t>(threads);
    }
#ifdef __linux__
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
        const int cores = CPU_COUNT(&set);
        if (cores >= 1) return static_cast<std::size_t>(cores);
    }
#endif
    return std::max(1u, std::thread::hardware_concurrency());
}

void set_thread_count(std::size_t threads)
{
    pool().set_threads(threads);
}

std::size_t thread_count()
{
    return pool().threads();
}

void parallel_blocks(std::size_t blocks, const std::function<void(std::size_t block)>& work)
{
    if (blocks == 0) return;
    if (inside_block || blocks == 1 || thread_count() == 1) {
        for (std::size_t block = 0; block < blocks; ++block) work(block);
        return;
    }
    pool().run(blocks, work);
}

} // namespace posiscope::core
