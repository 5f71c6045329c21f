// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/analysis_controller.h"

#include <QElapsedTimer>
#include <QUndoCommand>
#include <QUndoStack>

#include <algorithm>
#include <utility>

#include "core/probe/identical_word_probe.h"
#include "ui/convert.h"

namespace posiscope::ui {
namespace {

constexpr std::size_t bootstrap_resamples = 1000;
constexpr qint64 merge_window_ms = 1000; ///< changes of one field closer than this are one step of undo

qint64 now_ms()
{
    static const QElapsedTimer timer = [] {
        QElapsedTimer started;
        started.start();
        return started;
    }();
    return timer.elapsed();
}

} // namespace

/// One step of undo.
class SettingsCommand : public QUndoCommand {
public:
    SettingsCommand(AnalysisController* controller, AnalysisSettings before, AnalysisSettings after,
                    SettingField field)
        : m_controller(controller), m_before(std::move(before)), m_after(std::move(after)), m_field(field),
          m_time_ms(now_ms())
    {
        setText(setting_label(field));
    }

    void undo() override { m_controller->applySettings(m_before); }
    void redo() override { m_controller->applySettings(m_after); }
    [[nodiscard]] int id() const override { return static_cast<int>(m_field); }

    bool mergeWith(const QUndoCommand* other) override
    {
        const auto* newer = static_cast<const SettingsCommand*>(other); // QUndoStack compares the ids
        if (newer->m_time_ms - m_time_ms > merge_window_ms) return false;
        m_after = newer->m_after;
        m_time_ms = newer->m_time_ms;
        setObsolete(m_before == m_after);
        return true;
    }

private:
    AnalysisController* m_controller;
    AnalysisSettings m_before;
    AnalysisSettings m_after;
    SettingField m_field;
    qint64 m_time_ms;
};

AnalysisController::AnalysisController(QObject* parent)
    : QObject(parent), m_undo(new QUndoStack(this)), m_session(std::make_shared<const core::Session>())
{
    constexpr int most_steps = 500;
    m_undo->setUndoLimit(most_steps);
    for (TaskRunner* runner : {&m_opener, &m_picture, &m_metrics}) {
        connect(runner, &TaskRunner::started, this, &AnalysisController::workChanged);
        connect(runner, &TaskRunner::finished, this, &AnalysisController::workChanged);
    }
    connect(&m_opener, &TaskRunner::progressed, this, &AnalysisController::progressed);
    connect(&m_picture, &TaskRunner::progressed, this, &AnalysisController::progressed);
    connect(&m_metrics, &TaskRunner::progressed, this,
            [this](const QString& stage, qulonglong done, qulonglong total) {
                if (!m_picture.isRunning()) Q_EMIT progressed(stage, done, total);
            });
}

AnalysisController::~AnalysisController() = default;

void AnalysisController::open(const QString& location)
{
    m_stopped_opening.clear(); // another wish: what was stopped is not wanted any more
    m_to_open.append(location);
    if (!m_opener.isRunning()) openNext();
}

void AnalysisController::openNext()
{
    if (m_to_open.isEmpty()) return;
    const QString location = m_to_open.takeFirst();
    m_opening = location;
    using Opened = std::shared_ptr<const core::OpenModel>;
    m_opener.start<Opened>(
        [path = to_std(location)](const core::RunContext& ctx) { return core::open_model(path, ctx); },
        [this, location](core::Result<Opened> result) {
            if (result) {
                Q_EMIT opened(location);
                addModel(location, std::move(*result));
            } else if (result.error().code != core::ErrorCode::cancelled) {
                Q_EMIT openFailed(location, result.error());
            }
            if (!m_opener.isRunning()) openNext();
        });
}

void AnalysisController::addModel(const QString& location, std::shared_ptr<const core::OpenModel> model)
{
    // Opening a place again reads it afresh instead of listing it twice.
    const auto same = std::find_if(m_models.begin(), m_models.end(),
                                   [&](const OpenEntry& open) { return open.location == location; });
    OpenEntry fresh;
    fresh.id = m_next_id++;
    fresh.location = location;
    fresh.model = std::move(model);
    const int id = fresh.id;
    if (same != m_models.end())
        *same = std::move(fresh);
    else
        m_models.push_back(std::move(fresh));
    m_current = 0; // the entry that was current may be gone
    Q_EMIT modelsChanged();
    makeCurrent(id);
}

void AnalysisController::close(int id)
{
    const auto position =
        std::find_if(m_models.begin(), m_models.end(), [&](const OpenEntry& open) { return open.id == id; });
    if (position == m_models.end()) return;
    const auto index = position - m_models.begin();
    m_models.erase(position);
    if (m_running_metrics && m_running_metrics->model == id) m_metrics.abandon();
    if (id != m_current) {
        Q_EMIT modelsChanged();
        publish();
        advance();
        return;
    }
    m_current = 0;
    Q_EMIT modelsChanged();
    if (!m_models.empty()) {
        const auto next = std::min(index, static_cast<std::ptrdiff_t>(m_models.size()) - 1);
        makeCurrent(m_models[static_cast<std::size_t>(next)].id);
        return;
    }
    m_picture.abandon();
    m_metrics.abandon();
    m_shown.reset();
    m_refused.reset();
    m_session = std::make_shared<const core::Session>();
    Q_EMIT settingsChanged(); // limits and choices are those of the model
    Q_EMIT sessionChanged();
    Q_EMIT workChanged();
}

void AnalysisController::makeCurrent(int id)
{
    const OpenEntry* chosen = entry(id);
    if (chosen == nullptr || id == m_current) return;
    m_current = id;
    m_stopped = false;
    m_refused.reset();
    Q_EMIT failureCleared();
    Q_EMIT modelsChanged();
    const AnalysisSettings fitted = fitted_settings(m_settings, *chosen->model);
    const std::int64_t length_before = m_settings.probe.length;
    if (fitted != m_settings) {
        change(fitted, SettingField::model_fit);
        if (fitted.probe.length != length_before)
            Q_EMIT noticed(tr("Length set to %1: %2 has no more positions.")
                               .arg(fitted.probe.length)
                               .arg(to_qstring(chosen->model->checkpoint->display_name())));
    } else {
        Q_EMIT settingsChanged(); // limits and choices are those of the model
        advance();
    }
}

const OpenEntry* AnalysisController::entry(int id) const
{
    const auto position =
        std::find_if(m_models.begin(), m_models.end(), [&](const OpenEntry& open) { return open.id == id; });
    return position == m_models.end() ? nullptr : &*position;
}

OpenEntry* AnalysisController::entry(int id)
{
    return const_cast<OpenEntry*>(std::as_const(*this).entry(id));
}

const core::Stack* AnalysisController::stack() const
{
    const OpenEntry* open = current();
    return open == nullptr ? nullptr : open->model->architecture.find_stack(m_settings.probe.stack);
}

void AnalysisController::change(const AnalysisSettings& settings, SettingField field)
{
    if (settings == m_settings) return;
    m_undo->push(new SettingsCommand(this, m_settings, settings, field));
}

void AnalysisController::applySettings(const AnalysisSettings& settings)
{
    if (settings == m_settings) return;
    m_settings = settings;
    m_stopped = false;
    m_refused.reset();
    Q_EMIT failureCleared();
    Q_EMIT settingsChanged();
    advance();
}

void AnalysisController::setNeeds(const ViewNeeds& needs)
{
    if (needs == m_needs) return;
    m_needs = needs;
    advance();
}

void AnalysisController::cancel()
{
    if (!isBusy()) return;
    m_stopped = true;
    if (m_picture.isRunning()) m_refused = m_running;
    if (m_opener.isRunning()) m_stopped_opening = QStringList(m_opening) + m_to_open;
    m_to_open.clear();
    m_opener.cancel();
    m_picture.cancel();
    m_metrics.cancel();
    Q_EMIT workChanged();
}

void AnalysisController::runAgain()
{
    m_stopped = false;
    m_refused.reset();
    for (OpenEntry& open : m_models)
        if (open.refusal) open.metrics_probe.reset();
    Q_EMIT failureCleared();
    for (const QString& location : std::exchange(m_stopped_opening, {})) open(location);
    advance();
    Q_EMIT workChanged(); // without a model advance() has nothing to tell
}

bool AnalysisController::isBusy() const
{
    return m_opener.isRunning() || m_picture.isRunning() || m_metrics.isRunning();
}

bool AnalysisController::areMetricsStale() const
{
    const OpenEntry* open = current();
    if (open == nullptr || m_stopped || m_refused) return false;
    if (open->metrics_probe != metricsProbe()) return true;
    return !open->refusal && !open->metrics.contains(m_settings.display.head);
}

AnalysisController::PictureKey AnalysisController::wantedPicture() const
{
    PictureKey key{m_current, m_settings.probe, {m_settings.display, m_needs.every_head}};
    key.probe.terms = m_needs.terms;
    return key;
}

bool AnalysisController::hasProbeFor(const PictureKey& wanted) const
{
    return m_session->probe && m_shown && m_shown->model == wanted.model &&
           probe_satisfies(m_shown->probe, wanted.probe);
}

/// Property rows do not depend on terms: with or without, they belong to the same settings.
core::ProbeOptions AnalysisController::metricsProbe() const
{
    core::ProbeOptions options = m_settings.probe;
    options.terms = false;
    return options;
}

/// The rows that are missing most: first the current model's values, then their standard errors, then other models.
std::optional<AnalysisController::MetricsKey> AnalysisController::nextMetrics() const
{
    const core::ProbeOptions probe = metricsProbe();
    const auto missing = [&](const OpenEntry& open, bool with_errors) -> std::optional<MetricsKey> {
        if (open.refusal && open.metrics_probe == probe) return std::nullopt;
        const core::Stack* its_stack = open.model->architecture.find_stack(probe.stack);
        std::vector<int> heads{core::mean_of_heads};
        const int head = m_settings.display.head;
        if (head != core::mean_of_heads && its_stack != nullptr &&
            head < static_cast<int>(its_stack->heads_of(probe.layer)))
            heads.push_back(head);
        for (const int one : heads) {
            const auto rows = open.metrics.find(one);
            const bool there = open.metrics_probe == probe && rows != open.metrics.end();
            if (!there || (with_errors && !rows->second.with_errors))
                return MetricsKey{open.id, probe, one, with_errors};
        }
        return std::nullopt;
    };
    const OpenEntry* first = current();
    if (first == nullptr) return std::nullopt;
    if (auto key = missing(*first, false)) return key;
    if (auto key = missing(*first, true)) return key;
    for (const OpenEntry& open : m_models)
        if (open.id != m_current)
            if (auto key = missing(open, true)) return key;
    return std::nullopt;
}

void AnalysisController::advance()
{
    if (current() == nullptr) return;
    const PictureKey wanted = wantedPicture();
    const bool has_probe = hasProbeFor(wanted);
    if (!has_probe || m_shown->maps != wanted.maps) {
        if (!has_probe)
            m_metrics.abandon(); // the old probe's rows are of no use; the new probe gets the cores
        if (m_refused == wanted) {
            m_picture.abandon();
        } else if (!m_picture.isRunning() || m_running != wanted) {
            startPicture(wanted);
        }
        if (!has_probe) {
            Q_EMIT workChanged();
            return;
        }
    } else {
        m_picture.abandon(); // the settings went back to what is on screen
    }

    const std::optional<MetricsKey> next = m_stopped ? std::nullopt : nextMetrics();
    if (!next) {
        m_metrics.abandon();
        publish(); // another head's rows may be there already
    } else if (!m_metrics.isRunning() || m_running_metrics != next) {
        startMetrics(*next);
    }
    Q_EMIT workChanged();
}

void AnalysisController::startPicture(const PictureKey& wanted)
{
    m_running = wanted;
    std::shared_ptr<const core::ProbeResult> probe = hasProbeFor(wanted) ? m_session->probe : nullptr;
    m_picture.start<Picture>(
        [model = current()->model, probe, wanted](const core::RunContext& ctx) -> core::Result<Picture> {
            Picture picture;
            picture.probe = probe;
            if (!picture.probe) {
                core::Result<core::ProbeResult> fresh =
                    core::run_identical_word_probe(*model, wanted.probe, ctx);
                if (!fresh) return fresh.error();
                picture.probe = std::make_shared<const core::ProbeResult>(std::move(*fresh));
            }
            core::Result<core::DisplayMaps> maps =
                core::compute_display_maps(*picture.probe, wanted.maps, ctx);
            if (!maps) return maps.error();
            picture.maps = std::make_shared<const core::DisplayMaps>(std::move(*maps));
            return picture;
        },
        [this, wanted](core::Result<Picture> result) { takePicture(wanted, std::move(result)); });
}

void AnalysisController::takePicture(const PictureKey& key, core::Result<Picture> result)
{
    m_running.reset();
    if (!result) {
        m_refused = key;
        if (result.error().code == core::ErrorCode::cancelled)
            m_stopped = true;
        else
            Q_EMIT failed(result.error());
        // A model that cannot be probed, or whose probe was stopped, may still have vectors, biases and tensors to show:
        // old pictures are another model's.
        const OpenEntry* refused = entry(key.model);
        if (refused != nullptr && key.model == m_current && refused->model != m_session->model) {
            auto bare = std::make_shared<core::Session>();
            bare->model = refused->model;
            bare->display = key.maps.display;
            bare->metrics = m_session->metrics;
            m_shown.reset();
            m_session = std::move(bare);
            Q_EMIT sessionChanged();
        }
        Q_EMIT workChanged();
        return;
    }
    const OpenEntry* open = entry(key.model);
    if (open == nullptr) return;
    auto next = std::make_shared<core::Session>(*m_session);
    next->model = open->model;
    next->probe = std::move(result->probe);
    next->maps = std::move(result->maps);
    next->display = key.maps.display;
    // A probe that was kept for other maps may hold more than was asked for.
    core::ProbeOptions probe = hasProbeFor(key) ? m_shown->probe : key.probe;
    m_shown = key;
    m_shown->probe = std::move(probe);
    m_session = std::move(next);
    Q_EMIT sessionChanged();
    advance();
}

void AnalysisController::startMetrics(const MetricsKey& wanted)
{
    m_running_metrics = wanted;
    const OpenEntry* open = entry(wanted.model);
    std::shared_ptr<const core::ProbeResult> probe = wanted.model == m_current ? m_session->probe : nullptr;
    m_metrics.start<core::MetricTable>(
        [model = open->model, probe, wanted](const core::RunContext& ctx) -> core::Result<core::MetricTable> {
            std::shared_ptr<const core::ProbeResult> source = probe;
            if (!source) {
                core::Result<core::ProbeResult> fresh =
                    core::run_identical_word_probe(*model, wanted.probe, ctx);
                if (!fresh) return fresh.error();
                source = std::make_shared<const core::ProbeResult>(std::move(*fresh));
            }
            core::MetricOptions options;
            options.heads = {wanted.head};
            options.resamples = wanted.with_errors ? bootstrap_resamples : 0;
            options.seed = wanted.probe.seed;
            return core::evaluate_metrics(*source, options, ctx);
        },
        [this, wanted](core::Result<core::MetricTable> result) { takeMetrics(wanted, std::move(result)); });
}

void AnalysisController::takeMetrics(const MetricsKey& key, core::Result<core::MetricTable> result)
{
    m_running_metrics.reset();
    OpenEntry* open = entry(key.model);
    if (open == nullptr) return;
    if (!result && result.error().code == core::ErrorCode::cancelled) {
        m_stopped = true;
        Q_EMIT workChanged();
        return;
    }
    if (open->metrics_probe != key.probe) {
        open->metrics_probe = key.probe;
        open->metrics.clear();
        open->refusal.reset();
    }
    if (result) {
        open->metrics[key.head] = HeadRows{std::move(result->rows), key.with_errors};
    } else {
        open->refusal = result.error();
        if (key.model == m_current) Q_EMIT failed(result.error());
    }
    publish();
    advance();
}

/// Puts the rows of every open model into the session, where they changed.
void AnalysisController::publish()
{
    auto table = std::make_shared<core::MetricTable>();
    for (OpenEntry& open : m_models) {
        const bool is_present = open.metrics_probe == metricsProbe();
        if (is_present) {
            open.shown_rows.clear();
            for (const int head : {core::mean_of_heads, m_settings.display.head}) {
                const auto rows = open.metrics.find(head);
                if (rows != open.metrics.end())
                    open.shown_rows.insert(open.shown_rows.end(), rows->second.rows.begin(),
                                           rows->second.rows.end());
                if (m_settings.display.head == core::mean_of_heads) break;
            }
        }
        table->rows.insert(table->rows.end(), open.shown_rows.begin(), open.shown_rows.end());
    }
    auto next = std::make_shared<core::Session>(*m_session);
    next->metrics = std::move(table);
    m_session = std::move(next);
    Q_EMIT sessionChanged();
}

} // namespace posiscope::ui
