// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/metrics/metric_table.h"
#include "core/model/open_model.h"
#include "core/probe/probe_result.h"
#include "core/session/display_maps.h"
#include "core/session/session.h"
#include "ui/analysis_settings.h"
#include "ui/task_runner.h"

class QUndoStack;

namespace posiscope::ui {

/// Property rows of one head, and whether their standard errors have been computed yet.
struct HeadRows {
    std::vector<core::MetricRow> rows;
    bool with_errors = false;
};

/// One open model and the property rows of its last probe.
struct OpenEntry {
    int id = 0;
    QString location;
    std::shared_ptr<const core::OpenModel> model;
    std::optional<core::ProbeOptions> metrics_probe; ///< the settings that `metrics` belongs to
    std::map<int, HeadRows> metrics;                 ///< by head
    std::vector<core::MetricRow> shown_rows;         ///< what the table shows until newer rows are there
    std::optional<core::Error> refusal;              ///< why there are no rows for the present settings
};

/// What the window does, without the window: open models, one set of settings with undo, and the background work
/// that follows from them. Whatever changes, advance() looks at what is missing for the present settings and starts
/// it; a newer wish replaces an older one. Results arrive as immutable sessions.
class AnalysisController : public QObject {
    Q_OBJECT

public:
    explicit AnalysisController(QObject* parent = nullptr);
    ~AnalysisController() override;

    /// Opens checkpoints in the background, one after the other; each becomes the current model.
    void open(const QString& location);
    void close(int id);
    void makeCurrent(int id);
    [[nodiscard]] const std::vector<OpenEntry>& models() const { return m_models; }
    [[nodiscard]] const OpenEntry* current() const { return entry(m_current); }
    [[nodiscard]] bool isOpening() const { return m_opener.isRunning(); }
    /// What is being opened; empty: nothing.
    [[nodiscard]] QString openingLocation() const { return isOpening() ? m_opening : QString(); }

    /// The stack of the current model that the settings choose; null where nothing is open.
    [[nodiscard]] const core::Stack* stack() const;

    [[nodiscard]] const AnalysisSettings& settings() const { return m_settings; }
    /// Takes the settings over, as a step that undo takes back. Steps of one field in quick succession are one.
    void change(const AnalysisSettings& settings, SettingField field);
    [[nodiscard]] QUndoStack* undoStack() const { return m_undo; }

    void setNeeds(const ViewNeeds& needs);

    /// What is on screen. Never null; empty at first.
    [[nodiscard]] const std::shared_ptr<const core::Session>& session() const { return m_session; }

    /// Stops all background work; what is on screen stays.
    void cancel();
    /// Does what was stopped or refused once more.
    void runAgain();
    [[nodiscard]] bool isStopped() const { return m_stopped; }

    /// Whether a newer picture is being computed than the one on screen.
    [[nodiscard]] bool isPictureBusy() const { return m_picture.isRunning(); }
    /// Whether the property table on screen belongs to older settings.
    [[nodiscard]] bool areMetricsStale() const;
    [[nodiscard]] bool isBusy() const;

Q_SIGNALS:
    void modelsChanged();
    void settingsChanged();
    void sessionChanged();
    /// One of the is...() answers may have changed.
    void workChanged();
    void progressed(const QString& stage, qulonglong done, qulonglong total);

    void opened(const QString& location); ///< it is about to become the current model
    void openFailed(const QString& location, const posiscope::core::Error& error);
    /// A probe or its metrics failed; the old results stay.
    void failed(const posiscope::core::Error& error);
    /// Work began that makes the last failure a thing of the past.
    void failureCleared();
    /// Something people should know that is no failure.
    void noticed(const QString& sentence);

private:
    friend class SettingsCommand;

    /// A probe with the maps that were taken from it.
    struct Picture {
        std::shared_ptr<const core::ProbeResult> probe;
        std::shared_ptr<const core::DisplayMaps> maps;
    };
    struct PictureKey {
        int model = 0;
        core::ProbeOptions probe;
        core::MapRequest maps;
        bool operator==(const PictureKey&) const = default;
    };
    struct MetricsKey {
        int model = 0;
        core::ProbeOptions probe;
        int head = 0;
        bool with_errors = false;
        bool operator==(const MetricsKey&) const = default;
    };

    [[nodiscard]] const OpenEntry* entry(int id) const;
    OpenEntry* entry(int id);
    void openNext();
    void addModel(const QString& location, std::shared_ptr<const core::OpenModel> model);
    void applySettings(const AnalysisSettings& settings);

    [[nodiscard]] PictureKey wantedPicture() const;
    [[nodiscard]] bool hasProbeFor(const PictureKey& wanted) const;
    [[nodiscard]] std::optional<MetricsKey> nextMetrics() const;
    [[nodiscard]] core::ProbeOptions metricsProbe() const;
    void advance();
    void startPicture(const PictureKey& wanted);
    void startMetrics(const MetricsKey& wanted);
    void takePicture(const PictureKey& key, core::Result<Picture> result);
    void takeMetrics(const MetricsKey& key, core::Result<core::MetricTable> result);
    void publish();

    std::vector<OpenEntry> m_models;
    int m_current = 0;
    int m_next_id = 1;
    QStringList m_to_open;
    QString m_opening;             ///< the one that m_opener opens
    QStringList m_stopped_opening; ///< were to be opened when the work was stopped

    AnalysisSettings m_settings;
    ViewNeeds m_needs;
    QUndoStack* m_undo = nullptr;

    std::optional<PictureKey> m_shown;   ///< what m_session's probe and maps are
    std::optional<PictureKey> m_running; ///< what m_picture computes
    std::optional<PictureKey> m_refused; ///< failed or stopped: not tried again by itself
    std::optional<MetricsKey> m_running_metrics;
    bool m_stopped = false;
    std::shared_ptr<const core::Session> m_session;

    // Last members: they stop and wait before anything else goes.
    TaskRunner m_opener;
    TaskRunner m_picture;
    TaskRunner m_metrics;
};

} // namespace posiscope::ui
