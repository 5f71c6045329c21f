// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/figure/view_figures.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include <QCoreApplication>
#include <QStringList>

#include <nlohmann/json.hpp>

#include "core/base/version.h"
#include "core/export/provenance.h"
#include "core/export/tensors_used.h"
#include "core/metrics/metric_list.h"
#include "ui/convert.h"
#include "ui/figure/figure_provenance.h"
#include "ui/figure/view_charts.h"
#include "ui/models/metric_table_model.h"
#include "ui/plot/ticks.h"
#include "ui/session_text.h"

namespace posiscope::ui {
namespace {

using Json = nlohmann::ordered_json;

const QString separator = QStringLiteral(" \u00B7 ");

QString translated(const char* text)
{
    return QCoreApplication::translate("posiscope", text);
}

/// A figure of a probe.
FigureSpec probe_figure(const core::Session& session, std::string_view view_id)
{
    FigureSpec spec;
    spec.title = describe_picture(session);
    spec.provenance_json = figure_provenance(*session.model, *session.probe, session.display, view_id);
    spec.suggested_name = to_qstring(view_id);
    spec.read_tensors = [model = session.model, probe = session.probe](const core::RunContext& ctx) {
        return core::tensors_used(*model, *probe, ctx);
    };
    return spec;
}

FigureSpec described_figure(const FigureOrigin& origin, std::string_view view_id, const QString& line,
                            const Json& settings)
{
    return weights_figure(origin, view_id, line,
                          settings.dump(-1, ' ', true, Json::error_handler_t::replace));
}

Json number(double value)
{
    return std::isfinite(value) ? Json(value) : Json();
}

Json grid_metrics_json(const core::GridMetrics& metrics)
{
    return {{"translation_invariance_violation_2d", number(metrics.translation_invariance_violation)},
            {"monotonicity_violation_2d", number(metrics.monotonicity_violation)}};
}

/// Columns that say what a row is about.
struct LabelColumn {
    const char* head;
    QString (*text)(const core::MetricRow& row);
};

QString head_text(const core::MetricRow& row)
{
    return row.head == core::mean_of_heads ? translated("mean") : QString::number(row.head);
}

std::span<const LabelColumn> label_columns()
{
    static constexpr std::array columns{
        LabelColumn{QT_TRANSLATE_NOOP("posiscope", "Model"),
                    [](const core::MetricRow& row) { return to_qstring(row.model); }},
        LabelColumn{QT_TRANSLATE_NOOP("posiscope", "Stack"),
                    [](const core::MetricRow& row) { return to_qstring(row.stack); }},
        LabelColumn{QT_TRANSLATE_NOOP("posiscope", "Layer"),
                    [](const core::MetricRow& row) { return QString::number(row.layer); }},
        LabelColumn{QT_TRANSLATE_NOOP("posiscope", "Head"), head_text},
        LabelColumn{QT_TRANSLATE_NOOP("posiscope", "Quantity"),
                    [](const core::MetricRow& row) { return quantity_short_label(row.quantity); }},
        LabelColumn{QT_TRANSLATE_NOOP("posiscope", "Positions"),
                    [](const core::MetricRow& row) { return positions_label(row.positions); }},
    };
    return columns;
}

} // namespace

FigureSpec weights_figure(const FigureOrigin& origin, std::string_view view_id, const QString& line,
                          const std::string& settings_json)
{
    const core::OpenModel& model = origin.model;
    Json record;
    record["program"] = std::string("Posiscope ") + core::version;
    record["model"] = model.checkpoint->display_name();
    record["location"] = model.checkpoint->location();
    record["family"] = model.architecture.family_id;
    record["stack"] = origin.stack.id;
    record["scheme"] = origin.stack.scheme_id;
    record["layer"] = origin.layer;
    record["view"] = {{"id", std::string(view_id)}, {"settings", Json::parse(settings_json, nullptr, false)}};
    if (!origin.read.empty()) core::add_tensors(record, origin.read);
    FigureSpec spec;
    spec.provenance_json =
        QByteArray::fromStdString(record.dump(-1, ' ', true, Json::error_handler_t::replace));
    spec.title = to_qstring(model.checkpoint->display_name()) + separator + to_qstring(origin.stack.id) +
                 separator + line;
    spec.suggested_name = to_qstring(view_id);
    return spec;
}

HeatmapContent attention_heatmap_content(const core::Session& session, std::optional<ColorMapId> map,
                                         std::optional<ScaleKind> scale)
{
    const ColorDefaults defaults = default_colors(meaning_of(session.display.quantity));
    HeatmapContent content;
    content.map = session.maps->mean;
    content.scale = make_color_scale(content.map, map.value_or(defaults.map), scale.value_or(defaults.kind));
    content.quantity_label = quantity_axis_label(session.display.quantity);
    return content;
}

ProfileContent offset_profile_content(const core::Session& session)
{
    ProfileContent content;
    content.curve = make_profile_curve(session.maps->profile, session.maps->white_band);
    content.quantity_label = quantity_axis_label(session.display.quantity);
    return content;
}

FigureSpec attention_heatmap_figure(const core::Session& session, HeatmapContent content, const QString& id)
{
    FigureSpec spec = probe_figure(session, "attention_heatmap");
    spec.content = std::move(content);
    if (!id.isEmpty()) spec.suggested_name += u'_' + id;
    return spec;
}

FigureSpec offset_profile_figure(const core::Session& session, ProfileContent content)
{
    FigureSpec spec = probe_figure(session, "offset_profile");
    spec.content = std::move(content);
    return spec;
}

FigureSpec metric_table_figure(const core::Session& session, const core::MetricTable& rows)
{
    FigureSpec spec = probe_figure(session, "metric_table");
    TableContent table;
    QStringList shared;
    for (const LabelColumn& label : label_columns()) {
        TableColumn column;
        column.head = translated(label.head);
        column.is_label = true;
        std::set<QString> values;
        for (const core::MetricRow& row : rows.rows) {
            column.cells.push_back({label.text(row), {}});
            values.insert(column.cells.back().text);
        }
        // What all rows share goes into the title; a table of one row still says what it is about.
        if (values.size() > 1)
            table.columns.push_back(std::move(column));
        else if (values.size() == 1)
            shared.append(QStringLiteral("%1: %2").arg(column.head.toLower(), *values.begin()));
    }
    if (table.columns.empty() && !rows.rows.empty()) {
        TableColumn column;
        column.head = translated("Quantity");
        column.is_label = true;
        for (const core::MetricRow& row : rows.rows)
            column.cells.push_back({quantity_short_label(row.quantity), {}});
        table.columns.push_back(std::move(column));
    }
    bool has_errors = false;
    const auto metrics = core::metric_list();
    for (std::size_t m = 0; m < metrics.size(); ++m) {
        TableColumn column;
        column.head = to_qstring(metrics[m].short_label);
        bool has_values = false;
        for (const core::MetricRow& row : rows.rows) {
            const MetricTexts texts = m < row.values.size() ? metric_texts(row, m) : MetricTexts{};
            column.cells.push_back({texts.value, texts.error});
            has_errors = has_errors || !texts.error.isEmpty();
            has_values = has_values || (m < row.values.size() && std::isfinite(row.values[m].value));
        }
        if (has_values) table.columns.push_back(std::move(column));
    }
    if (has_errors) table.note = translated("\u00B1 standard error over words");
    if (session.probe) {
        shared.append(words_label(*session.probe));
        shared.append(translated("L %1").arg(session.probe->length));
    }
    spec.title = shared.join(separator);
    spec.content = std::move(table);
    return spec;
}

QString tsne_line(const core::TsneResult& map, std::size_t vectors)
{
    QString line =
        translated("t-SNE, perplexity %1, %2 iterations").arg(map.perplexity, 0, 'g', 4).arg(map.iterations);
    line += std::isfinite(map.divergence) ? translated(", KL %1").arg(map.divergence, 0, 'f', 3)
                                          : translated(", stopped");
    if (map.perplexity < map.options.perplexity)
        line += translated(" (perplexity %1 is too large for %2 vectors)")
                    .arg(map.options.perplexity)
                    .arg(vectors);
    return line;
}

QString white_band_line(const core::WhiteBand& band)
{
    return band.width > 0.0
               ? translated("white band %1 to %2, depth %3")
                     .arg(fixed_text(band.first, 0), fixed_text(band.last, 0), fixed_text(band.depth, 2))
               : translated("no white band");
}

FigureSpec position_map_figure(const FigureOrigin& origin, const core::PositionVectors& vectors,
                               const core::TsneResult& map, bool joined)
{
    FigureSpec spec = described_figure(
        origin, "position_map", to_qstring(vectors.source) + separator + tsne_line(map, vectors.count()),
        {{"method", "tsne"},
         {"source", vectors.source},
         {"perplexity", map.perplexity},
         {"iterations", map.iterations},
         {"seed", map.options.seed},
         {"init", std::string(core::tsne_start_name(map.options.start))},
         {"kl", number(map.divergence)}});
    spec.content = position_map_chart(vectors, map.points.x, map.points.y, joined);
    return spec;
}

FigureSpec position_map_figure(const FigureOrigin& origin, const core::PositionVectors& vectors,
                               const core::PcaMap& map, bool joined)
{
    FigureSpec spec = described_figure(
        origin, "position_map", to_qstring(vectors.source) + separator + translated("principal components"),
        {{"method", "pca"}, {"source", vectors.source}, {"variance_share", map.variance_share}});
    spec.content = position_map_chart(vectors, map.points.x, map.points.y, joined);
    return spec;
}

std::span<const ShownPart> similarity_parts()
{
    static constexpr std::array parts{
        ShownPart{"similarity", QT_TRANSLATE_NOOP("posiscope", "Similarity")},
        ShownPart{"norms", QT_TRANSLATE_NOOP("posiscope", "Norms")},
        ShownPart{"singular_values", QT_TRANSLATE_NOOP("posiscope", "Singular values")},
        ShownPart{"spectrum", QT_TRANSLATE_NOOP("posiscope", "Spectrum")},
    };
    return parts;
}

std::span<const ShownPart> relative_bias_parts()
{
    static constexpr std::array parts{
        ShownPart{"curves", QT_TRANSLATE_NOOP("posiscope", "Curves")},
        ShownPart{"map", QT_TRANSLATE_NOOP("posiscope", "Map")},
    };
    return parts;
}

const ShownPart& find_part(std::span<const ShownPart> parts, std::string_view id)
{
    const auto found =
        std::find_if(parts.begin(), parts.end(), [&](const ShownPart& part) { return part.id == id; });
    return found == parts.end() ? parts.front() : *found;
}

FigureSpec position_similarity_figure(const FigureOrigin& origin, const core::PositionVectors& vectors,
                                      const core::PositionSimilarity& similarity, std::string_view part)
{
    const ShownPart& shown = find_part(similarity_parts(), part);
    const bool dot = similarity.options.kind == core::SimilarityKind::dot;
    Json settings{{"shows", std::string(shown.id)}, {"source", vectors.source}};
    if (shown.id == "similarity") settings["similarity"] = dot ? "dot" : "cosine";
    FigureSpec spec = described_figure(origin, "position_similarity", to_qstring(vectors.source), settings);
    if (shown.id == "norms")
        spec.content = norms_chart(vectors, similarity);
    else if (shown.id == "singular_values")
        spec.content = singular_values_chart(similarity);
    else if (shown.id == "spectrum")
        spec.content = spectrum_chart(vectors, similarity);
    else
        spec.content = similarity_content(vectors, similarity);
    if (shown.id != "similarity") spec.suggested_name += u'_' + to_qstring(shown.id);
    return spec;
}

FigureSpec relative_bias_figure(const FigureOrigin& origin, const core::RelativeBias& bias,
                                std::string_view part, int head)
{
    const ShownPart& shown = find_part(relative_bias_parts(), part);
    const bool is_map = shown.id == "map";
    Json settings{{"shows", std::string(shown.id)}, {"length", bias.length}, {"scheme", bias.scheme}};
    if (is_map) {
        if (head == core::mean_of_heads)
            settings["head"] = "mean";
        else
            settings["head"] = head;
    }
    if (!bias.notes.empty()) settings["notes"] = bias.notes;
    QString line = to_qstring(bias.scheme) + separator + white_band_line(bias.white_band);
    if (is_map) line += separator + head_label(head, static_cast<std::int64_t>(bias.heads.size()));
    FigureSpec spec = described_figure(origin, "relative_bias", line, settings);
    if (is_map) {
        spec.content = relative_bias_content(bias, head);
        spec.suggested_name += QStringLiteral("_map");
    } else {
        spec.content = relative_bias_chart(bias);
    }
    return spec;
}

FigureSpec image_grid_figure(const FigureOrigin& origin, const core::ImageGrid& grid)
{
    Json settings{{"rows", grid.grid.rows},
                  {"columns", grid.grid.cols},
                  {"shows", std::string(core::image_grid_kind_name(grid.kind))},
                  {"source", grid.source},
                  {"metrics", grid_metrics_json(grid.metrics)}};
    FigureSpec spec =
        described_figure(origin, "image_grid",
                         to_qstring(grid.source) + separator +
                             translated("%1 x %2 patches").arg(grid.grid.rows).arg(grid.grid.cols),
                         settings);
    spec.content = image_grid_chart(grid);
    return spec;
}

} // namespace posiscope::ui
