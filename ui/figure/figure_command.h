// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/metrics/position_similarity.h"
#include "core/model/open_model.h"
#include "core/probe/probe_result.h"
#include "core/projection/tsne.h"
#include "core/session/session.h"
#include "ui/figure/figure_spec.h"

namespace posiscope::ui {

/// What `posiscope figure` is asked to draw.
struct FigureRequest {
    std::string location; ///< checkpoint, as core::open_model takes it
    std::string view = "attention_heatmap";
    std::string out; ///< path; the extension says the format
    /// The probe's options for the model that was opened, which decides what a default length can be. Views without a
    /// probe take stack, layer and length from here.
    std::function<core::Result<core::ProbeOptions>(const core::OpenModel&,
                                                   std::vector<std::string>& warnings)>
        probe_options;
    core::DisplayOptions display;
    std::optional<core::Quantity> table_quantity; ///< of the rows of a metric table; nothing: all
    std::optional<ScaleKind> scale;               ///< nothing: what the window shows at first
    bool pca = false;                             ///< position map: principal components instead of t-SNE
    core::TsneOptions tsne;
    core::SimilarityKind similarity = core::SimilarityKind::cosine;
    std::optional<std::int64_t>
        vectors;      ///< rows of computed position vectors; nothing: as the window has them
    std::string part; ///< similarity_parts() or relative_bias_parts(); empty: the first
    FigureOptions options;
};

/// Ids of the views that can be drawn without a window: all of them.
std::vector<std::string> figure_view_ids();
/// Those that have something to show of a stack.
std::vector<std::string> applicable_figure_views(const core::Stack& stack);

/// Opens the checkpoint, probes it, draws the view and writes the file, without a window. Warnings go to standard
/// error, and one line where the input is refused. Needs a QGuiApplication, for fonts.
/// @return exit status: 0 done, 1 refused
int run_figure_command(const FigureRequest& request);

/// The figure of one view of a model, as the window draws it.
/// @error invalid_argument (unknown view or part, no such stack, layer or head, a quantity that the probe lacks),
///        unsupported_model (a view that does not apply; the sentence names those that do), and what core gives
core::Result<FigureSpec> make_figure_spec(const std::shared_ptr<const core::OpenModel>& model,
                                          const FigureRequest& request, std::vector<std::string>& warnings,
                                          const core::RunContext& ctx);

} // namespace posiscope::ui
