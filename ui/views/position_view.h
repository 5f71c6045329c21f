// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/checkpoint/read_recorder.h"
#include "core/model/open_model.h"
#include "ui/figure/figure_spec.h"
#include "ui/figure/view_figures.h"
#include "ui/task_runner.h"
#include "ui/views/analysis_view.h"

class QBoxLayout;
class QLabel;
class QPushButton;
class QStackedWidget;
class QVBoxLayout;

namespace posiscope::ui {

class FlowLayout;

/// What the views have in common that look at a model's weights rather than at a probe: they follow the model, stack and
/// layer of the session, compute in the background (the newest wish wins), and say in a sentence why they cannot.
class PositionView : public AnalysisView {
    Q_OBJECT

public:
    explicit PositionView(QWidget* parent);

    void setSession(std::shared_ptr<const core::Session> session) override;
    [[nodiscard]] QString contextLine() const override;
    void setSharedCursor(SharedCursor* cursor) override;
    [[nodiscard]] bool canExport() const override { return m_has_picture; }
    void exportShown() override;

    /// What "Export" would write; canExport() must hold.
    [[nodiscard]] virtual FigureSpec figure() const = 0;
    /// Why nothing is shown; empty where something is.
    [[nodiscard]] QString message() const;
    /// Under the message: goes to a view that has something to show. Hidden where none is proposed.
    [[nodiscard]] QPushButton* messageButton() const { return m_go; }
    [[nodiscard]] bool isBusy() const { return m_runner.isRunning(); }
    [[nodiscard]] bool isWorking() const override { return m_runner.isRunning(); }
    [[nodiscard]] bool hasWork() const override { return m_runner.isRunning(); }
    void stopWork() override { m_runner.cancel(); }
    [[nodiscard]] bool isStopped() const override { return m_is_stopped && !m_runner.isRunning(); }
    void runAgain() override;

protected:
    void resizeEvent(QResizeEvent* event) override;

    /// Starts what is missing for the present model and choices; called when either changes.
    virtual void compute() = 0;
    /// Lets compute() start once more what it has started already.
    virtual void forgetWish() {}
    /// Runs `work` on m_runner. The digests of the tensors that it reads go into the record of the picture that `done`
    /// shows.
    template <class T>
    void startReading(std::function<core::Result<T>(const core::RunContext&)> work,
                      std::function<void(core::Result<T>)> done)
    {
        auto read = std::make_shared<TensorDigests>();
        m_runner.start<T>(
            [work = std::move(work), read](const core::RunContext& ctx) {
                const core::ReadRecorder recorder;
                core::Result<T> result = work(ctx);
                *read = recorder.digests();
                return result;
            },
            [this, done = std::move(done), read](core::Result<T> result) {
                m_is_stopped = !result && result.error().code == core::ErrorCode::cancelled;
                if (result) m_read = std::move(*read);
                done(std::move(result));
            });
    }
    /// Shows the place that is marked in any view.
    virtual void showCursor() = 0;
    /// The part of the context line behind model and stack.
    [[nodiscard]] virtual QString pictureLine() const = 0;

    /// Of what was read for it: m_read.
    void showPicture();
    /// @param view_id  of the view that is proposed instead; empty: none
    void showMessage(const QString& sentence, std::string_view view_id = {});
    void showError(const core::Error& error);
    /// Says why this view has nothing to show of the stack, and proposes the first of the views that do.
    void showLack(const std::string& lack, std::initializer_list<std::string_view> instead);
    /// The spec's provenance, title and name.
    void describe(FigureSpec& spec, std::string_view view_id, const std::string& settings_json) const;
    /// Of the picture, which may belong to an older session while a newer one is worked on; canExport() must hold.
    [[nodiscard]] FigureOrigin origin() const;
    [[nodiscard]] bool hasPicture() const { return m_has_picture; }

    [[nodiscard]] const std::shared_ptr<const core::OpenModel>& model() const { return m_model; }
    [[nodiscard]] const core::Stack* stack() const;
    [[nodiscard]] int layer() const { return m_layer; }
    [[nodiscard]] std::int64_t length() const { return m_length; }

    FlowLayout* m_tools; ///< choices above the picture
    QVBoxLayout* m_body; ///< the picture
    QBoxLayout*
        m_parts; ///< in m_body: two pictures, side by side where the view is wide, else one above the other
    SharedCursor* m_cursor = nullptr;
    TensorDigests m_read;      ///< of the numbers that showPicture() is called for
    bool m_is_stopped = false; ///< the work that was started last, by a person
    TaskRunner m_runner;

private:
    std::shared_ptr<const core::OpenModel> m_model;
    std::string m_stack;
    int m_layer = 0;
    std::int64_t m_length = 128;
    std::shared_ptr<const core::OpenModel> m_shown_model; ///< the picture's, as the two below
    std::string m_shown_stack;
    int m_shown_layer = 0;
    TensorDigests m_shown_read;
    bool m_has_picture = false;
    QStackedWidget* m_pages;
    QLabel* m_message;
    QPushButton* m_go;
    QString m_go_to;
};

} // namespace posiscope::ui
