// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/figure/view_charts.h"

#include <algorithm>
#include <cmath>

#include <QCoreApplication>

#include "ui/convert.h"
#include "ui/plot/ticks.h"

namespace posiscope::ui {
namespace {

QString translated(const char* text)
{
    return QCoreApplication::translate("posiscope", text);
}

QString offset_label()
{
    return translated("offset (key \u2212 query)");
}

bool are_offsets(const core::PositionVectors& vectors)
{
    return vectors.kind == core::PositionVectorKind::offset_vectors;
}

/// A chart of one curve.
ChartContent curve_chart(std::vector<double> x, std::vector<double> y, const QString& x_label,
                         const QString& y_label)
{
    ChartContent chart;
    ChartSeries series;
    series.x = std::move(x);
    series.y = std::move(y);
    series.width = 1.2;
    chart.series.push_back(std::move(series));
    chart.x_label = x_label;
    chart.y_label = y_label;
    return chart;
}

ColorScale grid_scale(const core::ImageGrid& grid)
{
    const ColorDefaults colors = default_colors(
        grid.kind == core::ImageGridKind::bias ? MapMeaning::signed_difference : MapMeaning::magnitude);
    if (grid.prefixes.empty()) return make_color_scale(grid.map, colors.map, colors.kind);
    // One scale for all: the tokens before the patches have their place on it.
    core::PositionMap before;
    for (const core::PrefixSimilarity& prefix : grid.prefixes)
        before.values.insert(before.values.end(), prefix.with_patches.begin(), prefix.with_patches.end());
    const std::vector<core::PositionMap> maps{grid.map, before};
    return make_color_scale(maps, colors.map, colors.kind);
}

ChartContent image_chart(const core::ImageGrid& grid, QImage image, const ColorScale& scale)
{
    ChartContent chart;
    chart.image = std::move(image);
    chart.bar = ChartBar{scale.map,
                         grid.kind == core::ImageGridKind::bias ? translated("bias, mean of heads")
                                                                : translated("cosine similarity"),
                         scale.lower, scale.upper};
    return chart;
}

double value_between(const core::ImageGrid& grid, std::size_t patch, std::size_t other)
{
    return patch < grid.map.length ? grid.map(patch, other)
                                   : grid.prefixes[patch - grid.map.length].with_patches[other];
}

/// Left upper corner of a map in the picture of all, in cells.
std::pair<int, int> corner_of(const core::ImageGrid& grid, std::size_t patch)
{
    const std::size_t columns = grid.grid.cols, rows = grid.grid.rows;
    if (patch < grid.map.length)
        return {static_cast<int>(patch % columns * (columns + 1)),
                static_cast<int>(patch / columns * (rows + 1))};
    // A row of its own, with a gap as high as half a map; the name stands beside it.
    const std::size_t gap = std::max<std::size_t>(2, rows / 2);
    return {0, static_cast<int>(rows * (rows + 1) - 1 + gap + (patch - grid.map.length) * (rows + 1))};
}

} // namespace

ChartContent position_map_chart(const core::PositionVectors& vectors, const std::vector<double>& x,
                                const std::vector<double>& y, bool joined)
{
    ChartContent chart;
    chart.is_map = true;
    ChartSeries used, special;
    used.color = SeriesColor::by_value;
    used.line = joined;
    used.width = 0.8;
    used.points = true;
    special.color = SeriesColor::faint;
    special.line = false;
    special.points = true;
    special.hollow = true;
    const std::vector<std::int64_t> positions = vectors.used_positions();
    if (positions.empty()) return chart;
    const auto first = static_cast<double>(positions.front()), last = static_cast<double>(positions.back());
    const std::vector<Tick> ticks =
        integer_ticks(static_cast<int>(positions.front()), static_cast<int>(positions.back()), 12);
    for (std::size_t row = 0; row < std::min(x.size(), vectors.count()); ++row) {
        const auto position = static_cast<double>(vectors.positions[row]);
        if (vectors.roles[row] != core::RowRole::used) {
            special.x.push_back(x[row]);
            special.y.push_back(y[row]);
            continue;
        }
        used.x.push_back(x[row]);
        used.y.push_back(y[row]);
        used.values.push_back(last > first ? (position - first) / (last - first) : 0.5);
        const bool is_tick =
            std::any_of(ticks.begin(), ticks.end(), [&](const Tick& tick) { return tick.at == position; });
        if (is_tick) chart.labels.push_back({x[row], y[row], fixed_text(position, 0)});
    }
    // Rings far off stand at the edge: all of the frame belongs to the positions.
    const auto pull_in = [](std::vector<double>& apart, const std::vector<double>& own) {
        if (own.empty()) return;
        const auto [least, most] = std::minmax_element(own.begin(), own.end());
        const double reach = 0.5 * (*most - *least);
        for (double& value : apart) value = std::clamp(value, *least - reach, *most + reach);
    };
    pull_in(special.x, used.x);
    pull_in(special.y, used.y);
    chart.series.push_back(std::move(used));
    if (!special.x.empty()) chart.series.push_back(std::move(special));
    chart.bar = ChartBar{ColorMapId::viridis, position_axis_label(vectors), first, last};
    return chart;
}

QString position_axis_label(const core::PositionVectors& vectors)
{
    return are_offsets(vectors) ? offset_label() : translated("position");
}

HeatmapContent similarity_content(const core::PositionVectors& vectors,
                                  const core::PositionSimilarity& similarity)
{
    // Where no two vectors point away from each other, colours about zero would all be of one kind.
    constexpr double hardly = 0.1; // of the largest value
    const auto [least, most] =
        std::minmax_element(similarity.map.values.begin(), similarity.map.values.end());
    const bool has_both = !similarity.map.values.empty() && *least < -hardly * *most;
    const ColorDefaults colors =
        default_colors(has_both ? MapMeaning::signed_difference : MapMeaning::magnitude);
    const std::vector<std::int64_t> positions = vectors.used_positions();
    HeatmapContent content;
    content.map = similarity.map;
    content.scale = make_color_scale(similarity.map, colors.map, colors.kind);
    content.quantity_label = similarity.options.kind == core::SimilarityKind::dot
                                 ? translated("dot product")
                                 : translated("cosine similarity");
    content.axes = HeatmapAxes::of(position_axis_label(vectors),
                                   positions.empty() ? 0 : static_cast<int>(positions.front()));
    return content;
}

ChartContent norms_chart(const core::PositionVectors& vectors, const core::PositionSimilarity& similarity)
{
    const std::vector<std::int64_t> positions = vectors.used_positions();
    ChartContent chart = curve_chart({positions.begin(), positions.end()}, similarity.norms,
                                     position_axis_label(vectors), translated("length of the vector"));
    chart.integer_x = true;
    chart.zero_line = true;
    return chart;
}

ChartContent singular_values_chart(const core::PositionSimilarity& similarity)
{
    std::vector<double> numbers(similarity.singular_values.size());
    for (std::size_t k = 0; k < numbers.size(); ++k) numbers[k] = static_cast<double>(k + 1);
    ChartContent chart =
        curve_chart(std::move(numbers), similarity.singular_values,
                    translated("number of the singular value"), translated("singular value"));
    chart.integer_x = true;
    for (std::size_t which = 0; which < similarity.dimensions.size(); ++which) {
        const std::size_t dimension = similarity.dimensions[which];
        const std::size_t at =
            std::min(similarity.singular_values.size(), std::max<std::size_t>(dimension, 1)) - 1;
        chart.edges.push_back(static_cast<double>(dimension));
        chart.labels.push_back(
            {static_cast<double>(dimension), similarity.singular_values[at],
             translated("%1 %: %2").arg(100.0 * core::dimension_shares[which]).arg(dimension)});
    }
    return chart;
}

ChartContent spectrum_chart(const core::PositionVectors& vectors, const core::PositionSimilarity& similarity)
{
    return curve_chart(similarity.frequencies, similarity.power,
                       are_offsets(vectors) ? translated("cycles per offset")
                                            : translated("cycles per position"),
                       translated("share of the variance"));
}

QString relative_bias_label(const core::RelativeBias& bias)
{
    switch (bias.kind) {
    case core::RelativeBiasKind::bias: return translated("bias");
    case core::RelativeBiasKind::constant_term: return translated("word-independent term");
    case core::RelativeBiasKind::rotation: return translated("mean cosine of the rotation");
    }
    return {};
}

ChartContent relative_bias_chart(const core::RelativeBias& bias)
{
    ChartContent chart;
    chart.x_label = offset_label();
    chart.y_label = relative_bias_label(bias);
    chart.integer_x = true;
    chart.zero_line = true;
    const auto curve = [](const core::OffsetProfile& profile) {
        ChartSeries series;
        series.x.assign(profile.offsets.begin(), profile.offsets.end());
        series.y = profile.mean;
        return series;
    };
    if (bias.head_profiles.size() > 1)
        for (std::size_t h = 0; h < bias.head_profiles.size(); ++h) {
            ChartSeries head = curve(bias.head_profiles[h]);
            head.color = SeriesColor::distinct;
            head.hue = static_cast<double>(h) / static_cast<double>(bias.head_profiles.size());
            head.width = 0.6;
            chart.series.push_back(std::move(head));
        }
    ChartSeries mean = curve(bias.profile);
    mean.width = 1.8;
    mean.name = bias.head_profiles.size() > 1 ? translated("mean of %1 heads").arg(bias.head_profiles.size())
                                              : translated("all heads");
    chart.series.push_back(std::move(mean));
    for (std::size_t k = 1; k < bias.buckets.size(); ++k)
        if (bias.buckets[k].last > bias.buckets[k].first ||
            bias.buckets[k - 1].last > bias.buckets[k - 1].first)
            chart.edges.push_back(static_cast<double>(bias.buckets[k].first) - 0.5);
    if (bias.white_band.width > 0.0)
        chart.white_band =
            WhiteBandOffsets{static_cast<int>(bias.white_band.first), static_cast<int>(bias.white_band.last)};
    return chart;
}

HeatmapContent relative_bias_content(const core::RelativeBias& bias, int head)
{
    const ColorDefaults colors = default_colors(MapMeaning::signed_difference);
    HeatmapContent content;
    content.map = head >= 0 && head < static_cast<int>(bias.heads.size())
                      ? bias.heads[static_cast<std::size_t>(head)]
                      : bias.mean;
    content.scale = make_color_scale(content.map, colors.map, colors.kind);
    content.quantity_label = relative_bias_label(bias);
    return content;
}

ChartContent image_grid_chart(const core::ImageGrid& grid)
{
    const ColorScale scale = grid_scale(grid);
    const int columns = static_cast<int>(grid.grid.cols), rows = static_cast<int>(grid.grid.rows);
    const std::size_t maps = grid.map.length + grid.prefixes.size();
    int width = 0, height = 0;
    for (std::size_t patch = 0; patch < maps; ++patch) {
        const auto [left, top] = corner_of(grid, patch);
        width = std::max(width, left + columns);
        height = std::max(height, top + rows);
    }
    // A cell's gap between the maps, transparent: the page shows through.
    QImage image(width, height, QImage::Format_ARGB32);
    image.fill(Qt::transparent);
    for (std::size_t patch = 0; patch < maps; ++patch) {
        const auto [left, top] = corner_of(grid, patch);
        for (int row = 0; row < rows; ++row) {
            auto* line = reinterpret_cast<QRgb*>(image.scanLine(top + row)) + left;
            for (int column = 0; column < columns; ++column)
                line[column] =
                    scale.color(value_between(grid, patch, static_cast<std::size_t>(row * columns + column)));
        }
    }
    ChartContent chart = image_chart(grid, std::move(image), scale);
    for (std::size_t s = 0; s < grid.prefixes.size(); ++s) {
        const auto [left, top] = corner_of(grid, grid.map.length + s);
        chart.notes.push_back(
            {static_cast<double>(left + columns), -(top + 0.5 * rows), to_qstring(grid.prefixes[s].name)});
    }
    return chart;
}

ChartContent image_patch_chart(const core::ImageGrid& grid, std::size_t patch)
{
    const ColorScale scale = grid_scale(grid);
    const int columns = static_cast<int>(grid.grid.cols), rows = static_cast<int>(grid.grid.rows);
    QImage image(columns, rows, QImage::Format_RGB32);
    for (int row = 0; row < rows; ++row)
        for (int column = 0; column < columns; ++column)
            image.setPixel(
                column, row,
                scale.color(value_between(grid, patch, static_cast<std::size_t>(row * columns + column))));
    return image_chart(grid, std::move(image), scale);
}

std::optional<std::size_t> image_patch_at(const core::ImageGrid& grid, const QPointF& place)
{
    const int columns = static_cast<int>(grid.grid.cols), rows = static_cast<int>(grid.grid.rows);
    for (std::size_t patch = 0; patch < grid.map.length + grid.prefixes.size(); ++patch) {
        const auto [left, top] = corner_of(grid, patch);
        // Half of the gap around a map belongs to it: no dead lines under the pointer.
        if (QRectF(left - 0.5, top - 0.5, columns + 1.0, rows + 1.0).contains(place.x(), -place.y()))
            return patch;
    }
    return std::nullopt;
}

QPointF image_patch_middle(const core::ImageGrid& grid, std::size_t patch)
{
    const auto [left, top] = corner_of(grid, patch);
    return {left + 0.5 * static_cast<double>(grid.grid.cols),
            -(top + 0.5 * static_cast<double>(grid.grid.rows))};
}

} // namespace posiscope::ui
