// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/session/image_grid.h"

#include <algorithm>
#include <utility>

#include "core/base/text.h"
#include "core/metrics/monotonicity.h"
#include "core/metrics/position_similarity.h"
#include "core/metrics/relative_bias.h"
#include "core/metrics/translation_invariance.h"
#include "core/projection/position_vectors.h"

namespace posiscope::core {
namespace {

GridMetrics metrics_of(const PositionMap& map, Grid grid)
{
    return {translation_invariance_violation_2d(map, grid), monotonicity_violation_2d(map, grid)};
}

/// The rows before the patches, by the names that families give their tensors.
std::string prefix_name(const Stack& stack, std::size_t row)
{
    if (row < stack.prefix_rows.size()) {
        const std::string& tensor = stack.prefix_rows[row];
        if (tensor.find("distill") != std::string::npos) return "distillation token";
        if (tensor.find("mask") == std::string::npos && row == 0) return "class token";
    }
    return row == 0 ? "class token" : "token " + std::to_string(row);
}

/// The last rows and columns of a map.
PositionMap last_of(const PositionMap& map, std::size_t count)
{
    PositionMap out;
    out.length = count;
    out.values.resize(count * count);
    const std::size_t before = map.length - count;
    for (std::size_t i = 0; i < count; ++i)
        for (std::size_t j = 0; j < count; ++j) out(i, j) = map(before + i, before + j);
    return out;
}

Error wrong_count(const OpenModel& model, std::size_t count, const char* what, Grid grid)
{
    return Error{ErrorCode::shape_mismatch,
                 in_quotes(model.checkpoint->display_name()) + " has " + std::to_string(count) + " " + what +
                     " for " + std::to_string(grid.rows) + " x " + std::to_string(grid.cols) + " patches",
                 "image grid"};
}

Result<ImageGrid> from_vectors(const OpenModel& model, const Stack& stack, const RunContext& ctx)
{
    const auto vectors = read_position_vectors(model, stack, 0, ctx);
    if (!vectors) return vectors.error();
    ImageGrid out;
    out.grid = {static_cast<std::size_t>(stack.grid_rows), static_cast<std::size_t>(stack.grid_columns)};
    out.source = vectors->source;
    const std::size_t patches = out.grid.rows * out.grid.cols;

    // Special rows first, then those of the patches.
    std::vector<std::size_t> rows;
    for (const RowRole role : {RowRole::special, RowRole::used})
        for (std::size_t row = 0; row < vectors->count(); ++row)
            if (vectors->roles[row] == role) rows.push_back(row);
    const auto specials =
        static_cast<std::size_t>(std::count(vectors->roles.begin(), vectors->roles.end(), RowRole::special));
    if (rows.size() != specials + patches)
        return wrong_count(model, rows.size() - specials, "position vectors", out.grid);
    const std::int64_t features = vectors->vectors.dim(1);
    HostTensor ordered({static_cast<std::int64_t>(rows.size()), features});
    for (std::size_t n = 0; n < rows.size(); ++n)
        std::copy_n(vectors->vectors.data() + static_cast<std::int64_t>(rows[n]) * features, features,
                    ordered.data() + static_cast<std::int64_t>(n) * features);
    SimilarityOptions options;
    options.decodability = false;
    const auto similar = position_similarity(std::as_const(ordered).matrix(), options, ctx);
    if (!similar) return similar.error();

    out.map = last_of(similar->map, patches);
    out.map.first_position =
        static_cast<std::size_t>(std::max<std::int64_t>(vectors->positions[rows[specials]], 0));
    for (std::size_t s = 0; s < specials; ++s) {
        PrefixSimilarity prefix{prefix_name(stack, s), std::vector<double>(patches)};
        for (std::size_t j = 0; j < patches; ++j) prefix.with_patches[j] = similar->map(s, specials + j);
        out.prefixes.push_back(std::move(prefix));
    }
    out.metrics = metrics_of(out.map, out.grid);
    return out;
}

Result<ImageGrid> from_bias(const OpenModel& model, const Stack& stack, int layer, const RunContext& ctx)
{
    const auto bias = read_relative_bias(model, stack, layer, 0, ctx);
    if (!bias) return bias.error();
    ImageGrid out;
    out.kind = ImageGridKind::bias;
    out.source = bias->scheme;
    out.grid = {static_cast<std::size_t>(bias->grid_rows), static_cast<std::size_t>(bias->grid_columns)};
    const std::size_t patches = out.grid.rows * out.grid.cols;
    if (patches < 2 || bias->mean.length < patches)
        return wrong_count(model, bias->mean.length, "positions with a bias", out.grid);
    out.map = last_of(bias->mean, patches);
    out.map.first_position = bias->mean.length - patches;
    out.metrics = metrics_of(out.map, out.grid);
    return out;
}

} // namespace

std::string_view image_grid_kind_name(ImageGridKind kind)
{
    return kind == ImageGridKind::bias ? "bias" : "similarity";
}

std::string lack_of_image_grid(const Stack& stack)
{
    return stack.grid_rows > 0 ? std::string{}
                               : "the " + stack.id + " reads no image: there is no grid of patches";
}

Result<ImageGrid> read_image_grid(const OpenModel& model, const Stack& stack, int layer,
                                  const RunContext& ctx)
{
    if (const std::string lack = lack_of_image_grid(stack); !lack.empty())
        return Error{ErrorCode::unsupported_model, in_quotes(model.checkpoint->display_name()) + ": " + lack,
                     "image grid"};
    if (stack.position_table.empty() && stack.grid_bias) return from_bias(model, stack, layer, ctx);
    return from_vectors(model, stack, ctx);
}

std::optional<GridMetrics> attention_grid_metrics(const ProbeResult& probe, Quantity quantity, int head)
{
    if (probe.grid_rows < 1) return std::nullopt;
    const PositionMap map =
        quantity_map(probe, quantity, head,
                     probe.special_positions.empty() ? PositionChoice::all : PositionChoice::without_first);
    if (map.length == 0) return std::nullopt;
    return metrics_of(
        map, {static_cast<std::size_t>(probe.grid_rows), static_cast<std::size_t>(probe.grid_columns)});
}

} // namespace posiscope::core
