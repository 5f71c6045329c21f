// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/task_runner.h"

#include <QMetaObject>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <stop_token>
#include <thread>

#include "core/checkpoint/reading_scope.h"

namespace posiscope::ui {
namespace {

constexpr std::chrono::milliseconds progress_interval{33};

/// Lets about 30 calls a second through; any thread may ask.
class RateLimit {
public:
    bool passes()
    {
        const auto now = std::chrono::steady_clock::now().time_since_epoch();
        const auto now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
        auto last = m_last_ms.load(std::memory_order_relaxed);
        if (last != 0 && now_ms - last < progress_interval.count()) return false;
        return m_last_ms.compare_exchange_strong(last, now_ms, std::memory_order_relaxed);
    }

private:
    std::atomic<std::int64_t> m_last_ms{0};
};

} // namespace

/// The thread and the one request that waits for it.
struct TaskRunner::Worker {
    struct Request {
        Job job;
        quint64 generation = 0;
        std::stop_source stop;
    };

    std::mutex mutex;
    std::condition_variable_any wake;
    std::optional<Request> waiting;
    std::stop_source newest; ///< of the request that counts
    std::jthread thread;     ///< last member: it ends before the others go
};

TaskRunner::TaskRunner(QObject* parent) : QObject(parent), m_worker(std::make_unique<Worker>())
{
    m_worker->thread = std::jthread([this, worker = m_worker.get()](const std::stop_token& quit) {
        while (true) {
            Worker::Request request;
            {
                std::unique_lock lock(worker->mutex);
                if (!worker->wake.wait(lock, quit, [&] { return worker->waiting.has_value(); })) return;
                request = std::move(*worker->waiting);
                worker->waiting.reset();
            }
            const quint64 generation = request.generation;
            RateLimit limit;
            core::RunContext ctx;
            ctx.stop = request.stop.get_token();
            ctx.progress = [this, generation, &limit, &ctx](const core::Progress& now) {
                if (ctx.cancelled() || !limit.passes()) return;
                QMetaObject::invokeMethod(
                    this,
                    [this, generation,
                     stage = QString::fromUtf8(now.stage.data(), static_cast<qsizetype>(now.stage.size())),
                     done = static_cast<qulonglong>(now.done), total = static_cast<qulonglong>(now.total)] {
                        if (m_running && generation == m_generation) Q_EMIT progressed(stage, done, total);
                    },
                    Qt::QueuedConnection);
            };
            // Whatever the job reads, however deep below it, can be stopped and tells how far it is.
            const core::ReadingScope reading(ctx);
            Delivery delivery = request.job(ctx);
            QMetaObject::invokeMethod(
                this, [this, generation, delivery = std::move(delivery)] { deliver(generation, delivery); },
                Qt::QueuedConnection);
        }
    });
}

TaskRunner::~TaskRunner()
{
    {
        const std::scoped_lock lock(m_worker->mutex);
        m_worker->newest.request_stop();
        m_worker->waiting.reset();
    }
    m_worker->thread.request_stop();
    m_worker->thread.join();
}

void TaskRunner::startJob(Job job)
{
    const bool was_running = m_running;
    ++m_generation;
    m_running = true;
    {
        const std::scoped_lock lock(m_worker->mutex);
        m_worker->newest.request_stop();
        m_worker->newest = std::stop_source();
        m_worker->waiting = Worker::Request{std::move(job), m_generation, m_worker->newest};
    }
    m_worker->wake.notify_all();
    if (!was_running) Q_EMIT started();
}

void TaskRunner::cancel()
{
    const std::scoped_lock lock(m_worker->mutex);
    m_worker->newest.request_stop();
}

void TaskRunner::abandon()
{
    if (!m_running) return;
    ++m_generation;
    m_running = false;
    {
        const std::scoped_lock lock(m_worker->mutex);
        m_worker->newest.request_stop();
        m_worker->waiting.reset();
    }
    Q_EMIT finished();
}

void TaskRunner::deliver(quint64 generation, const Delivery& delivery)
{
    if (generation != m_generation) return;
    m_running = false;
    delivery(); // may start the next task
    if (!m_running) Q_EMIT finished();
}

core::Error TaskRunner::error_of_current_exception()
{
    try {
        throw;
    } catch (const std::bad_alloc&) {
        return core::Error{core::ErrorCode::out_of_memory, "there is not enough memory for this",
                           "background task"};
    } catch (const std::exception& exception) {
        return core::Error{core::ErrorCode::internal, std::string("unexpected failure: ") + exception.what(),
                           "background task"};
    } catch (...) {
        return core::Error{core::ErrorCode::internal, "unexpected failure of unknown kind",
                           "background task"};
    }
}

} // namespace posiscope::ui
