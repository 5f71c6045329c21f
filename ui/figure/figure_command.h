// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/model/open_model.h"
#include "core/probe/probe_result.h"
#include "core/session/session.h"
#include "ui/figure/figure_spec.h"

namespace posiscope::ui {

/// What `posiscope figure` is asked to draw.
struct FigureRequest {
    std::string location; ///< checkpoint, as core::open_model takes it
    std::string view = "attention_heatmap";
    std::string out; ///< path; the extension says the format
    /// The probe's options for the model that was opened, which decides what a default length can be.
    std::function<core::Result<core::ProbeOptions>(const core::OpenModel&,
                                                   std::vector<std::string>& warnings)>
        probe_options;
    core::DisplayOptions display;
    std::optional<ScaleKind> scale; ///< nothing: linear
    FigureOptions options;
};

/// Ids of the views that can be drawn without a window.
std::vector<std::string> figure_view_ids();

/// Opens the checkpoint, probes it, draws the view and writes the file, without a window. Warnings go to standard
/// error, and one line where the input is refused. Needs a QGuiApplication, for fonts.
/// @return exit status: 0 done, 1 refused
int run_figure_command(const FigureRequest& request);

/// The figure of one view of a probe, as the window draws it.
/// @error invalid_argument (unknown view, no such head, a quantity that the probe lacks)
core::Result<FigureSpec> make_figure_spec(const core::OpenModel& model, const core::ProbeResult& probe,
                                          const FigureRequest& request);

} // namespace posiscope::ui
