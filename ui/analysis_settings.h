// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

#include "core/model/open_model.h"
#include "core/probe/probe_result.h"
#include "core/session/session.h"

namespace posiscope::ui {

/// Everything a person sets: what the probe does, and what of it is looked at. One set for the whole window.
struct AnalysisSettings {
    core::ProbeOptions probe;
    core::DisplayOptions display;

    bool operator==(const AnalysisSettings&) const = default;
};

/// What a change is about: names the step of undo, and decides which steps merge.
enum class SettingField { stack, layer, head, quantity, words, length, variant, positions, seed, model_fit };

/// "length", "head": how undo calls the change.
QString setting_label(SettingField field);

/// What the views ask to be computed besides the map, its spread and its profile.
struct ViewNeeds {
    bool every_head = false;
    bool terms = false;

    bool operator==(const ViewNeeds&) const = default;
};

/// The settings with a layer, head, stack, length and variant that `model` has.
AnalysisSettings fitted_settings(AnalysisSettings settings, const core::OpenModel& model);

/// Whether a probe that was run as `have` shows what `wanted` asks for.
bool probe_satisfies(const core::ProbeOptions& have, const core::ProbeOptions& wanted);

} // namespace posiscope::ui
