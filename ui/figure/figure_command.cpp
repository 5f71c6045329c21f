// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/figure/figure_command.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <utility>

#include "core/base/text.h"
#include "core/metrics/metric_table.h"
#include "core/probe/identical_word_probe.h"
#include "ui/convert.h"
#include "ui/figure/figure_writer.h"
#include "ui/figure/view_figures.h"

namespace posiscope::ui {
namespace {

constexpr int exit_done = 0;
constexpr int exit_refused = 1;

using core::Error;
using core::ErrorCode;
using core::Result;

/// What a view draws from.
struct FigureSource {
    std::shared_ptr<const core::OpenModel> model;
    const core::Stack* stack = nullptr;
    core::ProbeOptions options;
    const FigureRequest& request;
    std::vector<std::string>& warnings;
    const core::RunContext& ctx;
    std::optional<core::ReadRecorder> recorder = {}; ///< of a view that reads weights rather than a probe

    /// Of a view that reads weights, after it has read them.
    [[nodiscard]] FigureOrigin origin() const
    {
        return {*model, *stack, options.layer, recorder ? recorder->digests() : TensorDigests{}};
    }
};

Result<core::ProbeResult> probed(FigureSource& source)
{
    auto probe = core::run_identical_word_probe(*source.model, source.options, source.ctx);
    if (!probe) return probe.error();
    source.warnings.insert(source.warnings.end(), probe->warnings.begin(), probe->warnings.end());
    const int head = source.request.display.head;
    if (head != core::mean_of_heads && (head < 0 || head >= probe->heads))
        return Error{ErrorCode::invalid_argument,
                     "there is no head " + std::to_string(head) + ": layer " +
                         std::to_string(probe->options.layer) + " of " + core::in_quotes(probe->model_name) +
                         " has heads 0 to " + std::to_string(probe->heads - 1),
                     "figure"};
    return probe;
}

/// A session as the window has it, with or without the maps of the quantity that is drawn.
Result<core::Session> probed_session(FigureSource& source, bool over_words)
{
    // The softmax is most of the time, and only one quantity needs it.
    source.options.probabilities = source.request.display.quantity == core::Quantity::probabilities;
    source.options.group_spread = over_words;
    auto probe = probed(source);
    if (!probe) return probe.error();
    core::Session session;
    session.model = source.model;
    session.display = source.request.display;
    session.probe = std::make_shared<const core::ProbeResult>(*std::move(probe));
    auto maps = core::compute_display_maps(*session.probe, {session.display, false}, source.ctx);
    if (!maps) return maps.error();
    session.maps = std::make_shared<const core::DisplayMaps>(*std::move(maps));
    if (session.maps->mean.length == 0)
        return Error{ErrorCode::invalid_argument,
                     "the probe of " + core::in_quotes(session.probe->model_name) + " has no " +
                         std::string(core::quantity_id(session.display.quantity)) + " to draw",
                     "figure"};
    return session;
}

Result<FigureSpec> draw_heatmap(FigureSource& source)
{
    const auto session = probed_session(source, false);
    if (!session) return session.error();
    const FigureRequest& request = source.request;
    return attention_heatmap_figure(
        *session, attention_heatmap_content(*session, request.options.color_map, request.scale));
}

Result<FigureSpec> draw_profile(FigureSource& source)
{
    const auto session = probed_session(source, true);
    if (!session) return session.error();
    return offset_profile_figure(*session, offset_profile_content(*session));
}

Result<FigureSpec> draw_metrics(FigureSource& source)
{
    constexpr std::size_t bootstrap_resamples = 1000;
    const std::optional<core::Quantity> only = source.request.table_quantity;
    source.options.probabilities = !only || *only == core::Quantity::probabilities;
    source.options.group_spread = true;
    auto probe = probed(source);
    if (!probe) return probe.error();
    core::Session session;
    session.model = source.model;
    session.display = source.request.display;
    session.probe = std::make_shared<const core::ProbeResult>(*std::move(probe));
    core::MetricOptions options;
    options.heads = {session.display.head};
    if (only) options.quantities = {*only};
    if (session.display.positions == core::PositionChoice::without_first)
        options.positions = {core::PositionChoice::without_first};
    options.resamples = bootstrap_resamples;
    options.seed = source.options.seed;
    const auto rows = core::evaluate_metrics(*session.probe, options, source.ctx);
    if (!rows) return rows.error();
    return metric_table_figure(session, *rows);
}

Result<FigureSpec> draw_map(FigureSource& source)
{
    const auto vectors = core::read_position_vectors(*source.model, *source.stack,
                                                     source.request.vectors.value_or(0), source.ctx);
    if (!vectors) return vectors.error();
    if (source.request.pca) {
        const auto map = core::position_pca(*vectors, source.ctx);
        if (!map) return map.error();
        return position_map_figure(source.origin(), *vectors, *map);
    }
    const auto map = core::tsne(vectors->vectors.matrix(), source.request.tsne, source.ctx);
    if (!map) return map.error();
    source.warnings.insert(source.warnings.end(), map->warnings.begin(), map->warnings.end());
    return position_map_figure(source.origin(), *vectors, *map);
}

Result<FigureSpec> draw_similarity(FigureSource& source)
{
    const auto vectors = core::read_position_vectors(*source.model, *source.stack,
                                                     source.request.vectors.value_or(0), source.ctx);
    if (!vectors) return vectors.error();
    core::SimilarityOptions options;
    options.kind = source.request.similarity;
    options.decodability = false; // none of the figures shows it
    const core::HostTensor used = vectors->used_vectors();
    const auto similar = core::position_similarity(used.matrix(), options, source.ctx);
    if (!similar) return similar.error();
    return position_similarity_figure(source.origin(), *vectors, *similar, source.request.part);
}

Result<FigureSpec> draw_bias(FigureSource& source)
{
    const auto bias = core::read_relative_bias(*source.model, *source.stack, source.options.layer,
                                               source.options.length, source.ctx);
    if (!bias) return bias.error();
    const int head = source.request.display.head, heads = static_cast<int>(bias->heads.size());
    if (head >= heads)
        return Error{ErrorCode::invalid_argument,
                     "there is no head " + std::to_string(head) + ": the bias of " +
                         core::in_quotes(source.model->checkpoint->display_name()) + " has heads 0 to " +
                         std::to_string(heads - 1),
                     "figure"};
    return relative_bias_figure(source.origin(), *bias, source.request.part, head);
}

Result<FigureSpec> draw_grid(FigureSource& source)
{
    const auto grid = core::read_image_grid(*source.model, *source.stack, source.options.layer, source.ctx);
    if (!grid) return grid.error();
    return image_grid_figure(source.origin(), *grid);
}

std::string lacks_nothing(const core::Stack&)
{
    return {};
}

/// One view that can be drawn without a window. To add one: a row.
struct FigureView {
    std::string_view id;
    /// Why it has nothing to show of a stack; empty: it has.
    std::string (*lack)(const core::Stack& stack);
    std::span<const ShownPart> (*parts)(); ///< null: one thing only
    bool has_length;                       ///< the length of the input matters
    Result<FigureSpec> (*draw)(FigureSource& source);
};

std::span<const FigureView> figure_views()
{
    static constexpr std::array rows{
        FigureView{"attention_heatmap", lacks_nothing, nullptr, true, draw_heatmap},
        FigureView{"offset_profile", lacks_nothing, nullptr, true, draw_profile},
        FigureView{"metric_table", lacks_nothing, nullptr, true, draw_metrics},
        FigureView{"position_map", core::lack_of_position_vectors, nullptr, false, draw_map},
        FigureView{"position_similarity", core::lack_of_position_vectors, similarity_parts, false,
                   draw_similarity},
        FigureView{"relative_bias", core::lack_of_relative_bias, relative_bias_parts, true, draw_bias},
        FigureView{"image_grid", core::lack_of_image_grid, nullptr, false, draw_grid},
    };
    return rows;
}

Result<void> check_part(const FigureView& view, const std::string& part)
{
    if (part.empty()) return {};
    std::vector<std::string> known;
    if (view.parts != nullptr)
        for (const ShownPart& row : view.parts()) known.emplace_back(row.id);
    if (std::find(known.begin(), known.end(), part) != known.end()) return {};
    return Error{
        ErrorCode::invalid_argument,
        std::string(view.id) + " does not show " + core::in_quotes(part) +
            (known.empty() ? ": it shows one thing only" : ": it shows " + core::join_for_message(known)),
        "figure"};
}

int refuse(const Error& error)
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

std::vector<std::string> applicable_figure_views(const core::Stack& stack)
{
    std::vector<std::string> ids;
    for (const FigureView& view : figure_views())
        // A file of position tensors alone cannot be probed.
        if (view.lack(stack).empty() && (view.lack != lacks_nothing || stack.layers_present > 0))
            ids.emplace_back(view.id);
    return ids;
}

Result<FigureSpec> make_figure_spec(const std::shared_ptr<const core::OpenModel>& model,
                                    const FigureRequest& request, std::vector<std::string>& warnings,
                                    const core::RunContext& ctx)
{
    const auto views = figure_views();
    const auto view = std::find_if(views.begin(), views.end(),
                                   [&](const FigureView& row) { return row.id == request.view; });
    if (view == views.end())
        return Error{ErrorCode::invalid_argument,
                     "there is no view " + core::in_quotes(request.view) + " to draw: views are " +
                         core::join_for_message(figure_view_ids()),
                     "figure"};
    if (const auto part = check_part(*view, request.part); !part) return part.error();
    std::vector<std::string> about_options;
    Result<core::ProbeOptions> options = request.probe_options(*model, about_options);
    if (!options) return options.error();
    if (view->has_length) warnings.insert(warnings.end(), about_options.begin(), about_options.end());
    FigureSource source{
        model, model->architecture.find_stack(options->stack), *std::move(options), request, warnings, ctx};
    const std::string name = core::in_quotes(model->checkpoint->display_name());
    if (source.stack == nullptr) {
        std::vector<std::string> known;
        for (const core::Stack& stack : model->architecture.stacks) known.push_back(stack.id);
        return Error{ErrorCode::invalid_argument,
                     name + " has no stack " + core::in_quotes(source.options.stack) + "; it has " +
                         core::join_for_message(known),
                     "figure"};
    }
    if (const std::string lack = view->lack(*source.stack); !lack.empty())
        return Error{ErrorCode::unsupported_model,
                     std::string(view->id) + " does not apply to " + name + ": " + lack +
                         "; views that apply are " +
                         core::join_for_message(applicable_figure_views(*source.stack)),
                     "figure"};
    // What a probe reads is told by the probe.
    if (view->lack != lacks_nothing) source.recorder.emplace();
    return view->draw(source);
}

int run_figure_command(const FigureRequest& request)
{
    const core::RunContext ctx;
    const auto model = core::open_model(request.location, ctx);
    if (!model) return refuse(model.error());
    std::vector<std::string> warnings = (*model)->warnings;
    const Result<FigureSpec> spec = make_figure_spec(*model, request, warnings, ctx);
    if (!spec) return refuse(spec.error());
    for (const std::string& warning : warnings)
        std::fprintf(stderr, "warning: %s\n", core::printable(warning, 4000).c_str());
    const Result<void> written = write_figure(*spec, request.options, to_qstring(request.out));
    return written ? exit_done : refuse(written.error());
}

} // namespace posiscope::ui
