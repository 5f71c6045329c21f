// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QString>

#include <functional>
#include <memory>
#include <utility>

#include "core/base/result.h"
#include "core/base/run_context.h"

namespace posiscope::ui {

/// The only place that moves work off the UI thread. One task runs at a time; the newest request wins: starting
/// another asks the running one to stop and drops its result, however late it comes. Results are delivered on the
/// UI thread by a queued call. The destructor stops the task and waits for it.
class TaskRunner : public QObject {
    Q_OBJECT

public:
    explicit TaskRunner(QObject* parent = nullptr);
    ~TaskRunner() override;

    /// Runs `work(ctx)` on the worker thread, then `done(result)` on the UI thread. `work` touches no QObject and owns
    /// (or shares) all it uses. An exception in it becomes Error out_of_memory or internal. `done` is not called for
    /// a task that a newer one replaced, nor after the runner is gone; after cancel() it gets Error cancelled.
    template <class T>
    void start(std::function<core::Result<T>(const core::RunContext&)> work,
               std::function<void(core::Result<T>)> done)
    {
        startJob([work = std::move(work), done = std::move(done)](const core::RunContext& ctx) -> Delivery {
            auto result = std::make_shared<core::Result<T>>(guarded<T>(work, ctx));
            return [result, done] { done(std::move(*result)); };
        });
    }

    /// Asks the running task to stop; its `done` gets Error cancelled. Nothing happens where none runs.
    void cancel();

    /// Stops the running task and drops its result.
    void abandon();

    [[nodiscard]] bool isRunning() const { return m_running; }

Q_SIGNALS:
    void started();
    /// At most about 30 times a second, never after `finished`. total is 0 where the length is not known.
    void progressed(const QString& stage, qulonglong done, qulonglong total);
    /// The task ended and its result was delivered, or it was abandoned.
    void finished();

private:
    using Delivery = std::function<void()>;
    using Job = std::function<Delivery(const core::RunContext&)>;
    struct Worker;

    template <class T>
    static core::Result<T> guarded(const std::function<core::Result<T>(const core::RunContext&)>& work,
                                   const core::RunContext& ctx)
    {
        try {
            core::Result<T> result = work(ctx);
            if (ctx.cancelled()) return core::cancelled_error("the task");
            return result;
        } catch (...) {
            return error_of_current_exception();
        }
    }
    static core::Error error_of_current_exception();

    void startJob(Job job);
    void deliver(quint64 generation, const Delivery& delivery);

    std::unique_ptr<Worker> m_worker;
    quint64 m_generation = 0;
    bool m_running = false;
};

} // namespace posiscope::ui
