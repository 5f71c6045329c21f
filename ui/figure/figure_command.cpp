// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/figure/figure_command.h"

#include <array>
#include <cstdio>
#include <span>

#include <QCoreApplication>

#include "core/base/text.h"
#include "core/metrics/offset_profile.h"
#include "core/metrics/white_band.h"
#include "core/probe/identical_word_probe.h"
#include "ui/convert.h"
#include "ui/figure/figure_provenance.h"
#include "ui/figure/figure_writer.h"
#include "ui/session_text.h"

namespace posiscope::ui {
namespace {

constexpr int exit_done = 0;
constexpr int exit_refused = 1;

HeatmapContent heatmap_content(const core::PositionMap& map, const FigureRequest& request)
{
    const ColorDefaults defaults = default_colors(MapMeaning::magnitude);
    HeatmapContent content;
    content.map = map;
    content.scale = make_color_scale(map, request.options.color_map.value_or(defaults.map),
                                     request.scale.value_or(defaults.kind));
    content.quantity_label = quantity_axis_label(request.display.quantity);
    return content;
}

ProfileContent profile_content(const core::ProbeResult& probe, const core::PositionMap& map,
                               const core::DisplayOptions& display)
{
    const core::OffsetProfileOverWords profile =
        core::offset_profile_over_words(probe, display.quantity, display.head, display.positions);
    ProfileContent content;
    content.curve = make_profile_curve(profile, core::white_band(map));
    content.quantity_label = quantity_axis_label(display.quantity);
    return content;
}

/// One view that can be drawn without a window. To add one: a row.
struct FigureView {
    std::string_view id;
    bool over_words; ///< wants the spread over groups of words
    void (*fill)(FigureSpec& spec, const core::ProbeResult& probe, const core::PositionMap& map,
                 const FigureRequest& request);
};

std::span<const FigureView> figure_views()
{
    static constexpr std::array rows{
        FigureView{"attention_heatmap", false,
                   [](FigureSpec& spec, const core::ProbeResult&, const core::PositionMap& map,
                      const FigureRequest& request) { spec.content = heatmap_content(map, request); }},
        FigureView{"offset_profile", true,
                   [](FigureSpec& spec, const core::ProbeResult& probe, const core::PositionMap& map,
                      const FigureRequest& request) {
                       spec.content = profile_content(probe, map, request.display);
                   }},
    };
    return rows;
}

int refuse(const core::Error& error)
{
    std::fprintf(stderr, "posiscope: %s\n", core::printable(error.message, 4000).c_str());
    return exit_refused;
}

} // namespace

std::vector<std::string> figure_view_ids()
{
    std::vector<std::string> ids;
    for (const FigureView& view : figure_views()) ids.emplace_back(view.id);
    return ids;
}

core::Result<FigureSpec> make_figure_spec(const core::OpenModel& model, const core::ProbeResult& probe,
                                          const FigureRequest& request)
{
    const core::DisplayOptions& display = request.display;
    if (display.head != core::mean_of_heads && (display.head < 0 || display.head >= probe.heads))
        return core::Error{core::ErrorCode::invalid_argument,
                           "there is no head " + std::to_string(display.head) + ": layer " +
                               std::to_string(probe.options.layer) + " of " +
                               core::in_quotes(probe.model_name) + " has heads 0 to " +
                               std::to_string(probe.heads - 1),
                           "figure"};
    const core::PositionMap map =
        core::quantity_map(probe, display.quantity, display.head, display.positions);
    if (map.length == 0)
        return core::Error{core::ErrorCode::invalid_argument,
                           "the probe of " + core::in_quotes(probe.model_name) + " has no " +
                               std::string(core::quantity_id(display.quantity)) + " to draw",
                           "figure"};
    FigureSpec spec;
    spec.title = QCoreApplication::translate("posiscope", "%1, layer %2, %3")
                     .arg(to_qstring(probe.model_name))
                     .arg(probe.options.layer)
                     .arg(head_label(display.head, probe.heads));
    spec.suggested_name = to_qstring(request.view);
    spec.provenance_json = figure_provenance(model, probe, display, request.view);
    for (const FigureView& view : figure_views()) {
        if (view.id != request.view) continue;
        view.fill(spec, probe, map, request);
        return spec;
    }
    return core::Error{core::ErrorCode::invalid_argument,
                       "there is no view " + core::in_quotes(request.view) + " to draw: views are " +
                           core::join_for_message(figure_view_ids()),
                       "figure"};
}

int run_figure_command(const FigureRequest& request)
{
    const core::RunContext ctx;
    const auto model = core::open_model(request.location, ctx);
    if (!model) return refuse(model.error());
    std::vector<std::string> warnings = (*model)->warnings;
    core::Result<core::ProbeOptions> options = request.probe_options(**model, warnings);
    if (!options) return refuse(options.error());
    // The softmax is most of the time, and only one quantity needs it.
    options->probabilities = request.display.quantity == core::Quantity::probabilities;
    for (const FigureView& view : figure_views())
        if (view.id == request.view) options->group_spread = view.over_words;
    const core::Result<core::ProbeResult> probe = core::run_identical_word_probe(**model, *options, ctx);
    if (!probe) return refuse(probe.error());
    warnings.insert(warnings.end(), probe->warnings.begin(), probe->warnings.end());
    const core::Result<FigureSpec> spec = make_figure_spec(**model, *probe, request);
    if (!spec) return refuse(spec.error());
    for (const std::string& warning : warnings)
        std::fprintf(stderr, "warning: %s\n", core::printable(warning, 4000).c_str());
    const core::Result<void> written = write_figure(*spec, request.options, to_qstring(request.out));
    return written ? exit_done : refuse(written.error());
}

} // namespace posiscope::ui
