// SPDX-License-Identifier: GPL-3.0-or-later
// The commands that read position vectors and biases and need no probe: map, bias, similarity.
#include <nlohmann/json.hpp>

#include "app/position_commands.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "app/cli_output.h"
#include "core/export/atomic_file.h"
#include "core/export/npy.h"
#include "core/kernels/thread_pool.h"
#include "core/metrics/metric_list.h"
#include "core/metrics/position_similarity.h"
#include "core/metrics/relative_bias.h"
#include "core/model/open_model.h"
#include "core/projection/pca.h"
#include "core/projection/position_vectors.h"
#include "core/projection/tsne.h"

namespace posiscope::app {
namespace {

using core::Error;
using core::ErrorCode;
using core::Result;
using json = nlohmann::ordered_json;

json number(double value)
{
    return std::isfinite(value) ? json(value) : json();
}

json numbers(const std::vector<double>& values)
{
    json list = json::array();
    for (const double value : values) list.push_back(number(value));
    return list;
}

struct Opened {
    std::shared_ptr<const core::OpenModel> model;
    const core::Stack* stack = nullptr;
};

Result<Opened> open_stack(const std::string& checkpoint, const std::string& stack,
                          const core::RunContext& ctx)
{
    auto model = core::open_model(checkpoint, ctx);
    if (!model) return model.error();
    Opened out{*std::move(model), nullptr};
    out.stack = out.model->architecture.find_stack(stack);
    if (out.stack != nullptr) return out;
    std::string known;
    for (const core::Stack& one : out.model->architecture.stacks)
        known += (known.empty() ? "" : ", ") + one.id;
    return Error{ErrorCode::invalid_argument,
                 core::in_quotes(out.model->checkpoint->display_name()) + " has no stack " +
                     core::in_quotes(stack) + "; it has " + known,
                 "options"};
}

json origin(const Opened& opened)
{
    return {{"model", opened.model->checkpoint->display_name()},
            {"family", opened.model->architecture.family_id},
            {"stack", opened.stack->id},
            {"scheme", opened.stack->scheme_id}};
}

/// What `map` writes and prints.
struct Mapped {
    core::PositionVectors vectors;
    core::PointMap2D points;
    json report;
    std::vector<std::string> warnings;
};

std::string digits(double value)
{
    char text[40];
    std::snprintf(text, sizeof text, "%.9g", value);
    return text;
}

Result<Mapped> map_vectors(const Opened& opened, const MapArguments& arguments, const core::RunContext& ctx)
{
    auto vectors = core::read_position_vectors(*opened.model, *opened.stack, arguments.length, ctx);
    if (!vectors) return vectors.error();
    Mapped out;
    out.vectors = *std::move(vectors);
    out.report = origin(opened);
    out.report["vectors"] = core::position_vector_kind_name(out.vectors.kind);
    out.report["source"] = out.vectors.source;
    out.report["rows"] = out.vectors.count();
    out.report["method"] = arguments.method;
    if (arguments.method == "pca") {
        auto map = core::position_pca(out.vectors, ctx);
        if (!map) return map.error();
        out.report["variance_share"] = map->variance_share;
        out.report["seconds"] = map->seconds;
        out.points = std::move(map->points);
        return out;
    }
    core::TsneOptions options;
    options.perplexity = arguments.perplexity;
    options.seed = arguments.seed;
    options.iterations = arguments.iterations;
    options.start = arguments.start == "random" ? core::TsneStart::random : core::TsneStart::pca;
    auto map = core::tsne(std::as_const(out.vectors.vectors).matrix(), options, ctx);
    if (!map) return map.error();
    out.warnings = map->warnings;
    out.report["kl"] = map->divergence;
    out.report["perplexity"] = map->perplexity;
    out.report["iterations"] = map->iterations;
    out.report["seed"] = options.seed;
    out.report["init"] = core::tsne_start_name(options.start);
    out.report["gradient_norm"] = map->gradient_norm;
    out.report["seconds"] = map->seconds;
    out.points = std::move(map->points);
    return out;
}

json points_json(const Mapped& mapped)
{
    json list = json::array();
    for (std::size_t i = 0; i < mapped.points.size(); ++i)
        list.push_back({{"position", mapped.vectors.positions[i]},
                        {"x", mapped.points.x[i]},
                        {"y", mapped.points.y[i]},
                        {"role", core::row_role_name(mapped.vectors.roles[i])}});
    return list;
}

Result<void> write_points(const Mapped& mapped, const std::filesystem::path& path)
{
    if (path.extension() == ".npy") {
        core::HostTensor points({static_cast<std::int64_t>(mapped.points.size()), 2});
        for (std::size_t i = 0; i < mapped.points.size(); ++i) {
            points.data()[2 * i] = static_cast<float>(mapped.points.x[i]);
            points.data()[2 * i + 1] = static_cast<float>(mapped.points.y[i]);
        }
        return core::write_npy(path, points);
    }
    if (path.extension() == ".json") {
        json object = mapped.report;
        object["points"] = points_json(mapped);
        return core::write_atomically(path, object.dump(1) + "\n");
    }
    std::string text = "position,x,y\n";
    for (std::size_t i = 0; i < mapped.points.size(); ++i)
        text += std::to_string(mapped.vectors.positions[i]) + "," + digits(mapped.points.x[i]) + "," +
                digits(mapped.points.y[i]) + "\n";
    return core::write_atomically(path, text);
}

json white_band_json(const core::WhiteBand& band)
{
    return {{"width", number(band.width)},
            {"depth", number(band.depth)},
            {"depth_sd", number(band.depth_sd)},
            {"first", number(band.first)},
            {"last", number(band.last)}};
}

json bias_report(const Opened& opened, const core::RelativeBias& bias)
{
    json object = origin(opened);
    object["kind"] = core::relative_bias_kind_name(bias.kind);
    object["description"] = bias.scheme;
    object["layer"] = bias.layer;
    object["length"] = bias.length;
    object["causal"] = bias.causal;
    object["varies_within_offset"] = bias.varies_within_offset;
    object["offsets"] = bias.profile.offsets;
    object["heads"] = json::array();
    for (const core::OffsetProfile& head : bias.head_profiles) object["heads"].push_back(numbers(head.mean));
    object["mean"] = numbers(bias.profile.mean);
    object["white_band"] = white_band_json(bias.white_band);
    object["head_white_bands"] = json::array();
    for (const core::WhiteBand& band : bias.head_white_bands)
        object["head_white_bands"].push_back(white_band_json(band));
    object["buckets"] = json::array();
    for (const core::OffsetBucket& bucket : bias.buckets)
        object["buckets"].push_back(
            {{"bucket", bucket.bucket}, {"first", bucket.first}, {"last", bucket.last}});
    object["warnings"] = as_json(opened.model->warnings);
    object["bytes_read"] = opened.model->checkpoint->bytes_read();
    return object;
}

Result<void> write_bias(const core::RelativeBias& bias, const std::string& path)
{
    core::HostTensor maps({static_cast<std::int64_t>(bias.heads.size()), bias.length, bias.length});
    std::size_t at = 0;
    for (const core::PositionMap& head : bias.heads)
        for (const double value : head.values) maps.data()[at++] = static_cast<float>(value);
    return core::write_npy(path, maps);
}

} // namespace

int run_map(const MapArguments& arguments, const core::RunContext& ctx)
{
    const auto opened = open_stack(arguments.checkpoint, arguments.stack, ctx);
    if (!opened) return fail(opened.error());
    auto mapped = map_vectors(*opened, arguments, ctx);
    if (!mapped) return fail(mapped.error());
    warn(opened->model->warnings);
    warn(mapped->warnings);
    std::vector<std::string> warnings = opened->model->warnings;
    warnings.insert(warnings.end(), mapped->warnings.begin(), mapped->warnings.end());
    mapped->report["threads"] = core::thread_count();
    mapped->report["warnings"] = as_json(warnings);
    if (!arguments.out.empty())
        if (const auto written = write_points(*mapped, arguments.out); !written) return fail(written.error());
    if (arguments.json) {
        if (arguments.out.empty()) mapped->report["points"] = points_json(*mapped);
        print(mapped->report);
        return exit_done;
    }
    print_line(opened->model->checkpoint->display_name() + ", " + opened->stack->id + ": " +
               mapped->vectors.source);
    for (const auto& [key, value] : mapped->report.items())
        if (value.is_number())
            print_line("  " + key + std::string(16 - std::min<std::size_t>(15, key.size()), ' ') +
                       value.dump());
    return exit_done;
}

int run_bias(const BiasArguments& arguments, const core::RunContext& ctx)
{
    const auto opened = open_stack(arguments.checkpoint, arguments.stack, ctx);
    if (!opened) return fail(opened.error());
    const auto bias =
        core::read_relative_bias(*opened->model, *opened->stack, arguments.layer, arguments.length, ctx);
    if (!bias) return fail(bias.error());
    warn(opened->model->warnings);
    if (!arguments.out.empty())
        if (const auto written = write_bias(*bias, arguments.out); !written) return fail(written.error());
    if (arguments.json) {
        print(bias_report(*opened, *bias));
        return exit_done;
    }
    print_line(opened->model->checkpoint->display_name() + ", " + opened->stack->id + ": " + bias->scheme);
    if (bias->white_band.width > 0.0)
        print_line("  white band of the mean: offsets " + digits(bias->white_band.first) + " to " +
                   digits(bias->white_band.last) + ", depth " + digits(bias->white_band.depth));
    else
        print_line("  no white band");
    char line[80];
    for (std::size_t k = 0; k < bias->profile.offsets.size(); ++k) {
        std::snprintf(line, sizeof line, "  %6d %12.6f", bias->profile.offsets[k], bias->profile.mean[k]);
        print_line(line);
    }
    return exit_done;
}

int run_similarity(const SimilarityArguments& arguments, const core::RunContext& ctx)
{
    const auto opened = open_stack(arguments.checkpoint, arguments.stack, ctx);
    if (!opened) return fail(opened.error());
    const auto vectors = core::read_position_vectors(*opened->model, *opened->stack, arguments.length, ctx);
    if (!vectors) return fail(vectors.error());
    core::SimilarityOptions options;
    options.kind = arguments.dot ? core::SimilarityKind::dot : core::SimilarityKind::cosine;
    options.seed = arguments.seed;
    const core::HostTensor used = vectors->used_vectors();
    const auto found = core::position_similarity(used.matrix(), options, ctx);
    if (!found) return fail(found.error());
    warn(opened->model->warnings);
    if (!arguments.out.empty()) {
        const auto n = static_cast<std::int64_t>(found->map.length);
        core::HostTensor map({n, n}, {found->map.values.begin(), found->map.values.end()});
        if (const auto written = core::write_npy(arguments.out, map); !written) return fail(written.error());
    }
    json object = origin(*opened);
    object["vectors"] = core::position_vector_kind_name(vectors->kind);
    object["source"] = vectors->source;
    object["similarity"] = arguments.dot ? "dot" : "cosine";
    object["positions"] = vectors->used_positions();
    object["norms"] = numbers(found->norms);
    object["singular_values"] = numbers(found->singular_values);
    object["dimensions"] = {
        {"90", found->dimensions[0]}, {"95", found->dimensions[1]}, {"99", found->dimensions[2]}};
    object["spectrum"] = {{"cycles_per_position", numbers(found->frequencies)},
                          {"power", numbers(found->power)}};
    object["decodability"] = {{"position_error", number(found->decodability.position_error)},
                              {"position_r2", number(found->decodability.position_r2)},
                              {"order_accuracy", number(found->decodability.order_accuracy)},
                              {"seed", options.seed}};
    for (std::size_t m = 0; m < found->metrics.size(); ++m)
        object["metrics"][std::string(core::metric_list()[m].id)] = number(found->metrics[m]);
    if (vectors->kind == core::PositionVectorKind::offset_vectors) {
        const auto far = core::far_offset_cosine(used.matrix(), vectors->used_positions());
        object["mean_cosine_beyond_20"] = {{"before", number(far[0])}, {"after", number(far[1])}};
    }
    object["seconds"] = found->seconds;
    object["warnings"] = as_json(opened->model->warnings);
    if (arguments.json) {
        print(object);
        return exit_done;
    }
    print_line(opened->model->checkpoint->display_name() + ", " + opened->stack->id + ": " + vectors->source);
    for (const char* key : {"dimensions", "decodability", "mean_cosine_beyond_20"})
        if (object.contains(key)) print_line("  " + std::string(key) + "  " + object[key].dump());
    for (const auto& [key, value] : object["metrics"].items())
        if (!value.is_null()) print_line("  " + key + "  " + value.dump());
    return exit_done;
}

} // namespace posiscope::app
