// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/figure/figure_provenance.h"

#include <string>

#include <nlohmann/json.hpp>

#include "core/base/version.h"
#include "core/export/provenance.h"
#include "ui/figure/figure_layout.h"

namespace posiscope::ui {
namespace {

using json = nlohmann::ordered_json;

/// On one line, in ASCII; bytes that are not UTF-8 are replaced.
QByteArray text_of(const json& object)
{
    return QByteArray::fromStdString(object.dump(-1, ' ', true, json::error_handler_t::replace));
}

json record_of(const FigureSpec& spec)
{
    json object =
        json::parse(spec.provenance_json.constBegin(), spec.provenance_json.constEnd(), nullptr, false);
    if (!object.is_object()) object = {{"program", std::string("Posiscope ") + core::version}};
    return object;
}

} // namespace

QByteArray figure_provenance(const core::OpenModel& model, const core::ProbeResult& probe,
                             const core::DisplayOptions& display, std::string_view view_id)
{
    json object = core::provenance_of_settings(model, probe);
    json view;
    view["id"] = std::string(view_id);
    view["quantity"] = std::string(core::quantity_id(display.quantity));
    if (display.head == core::mean_of_heads)
        view["head"] = "mean";
    else
        view["head"] = display.head;
    view["positions"] = display.positions == core::PositionChoice::all ? "all" : "without_first";
    object["view"] = std::move(view);
    return text_of(object);
}

void take_tensors(FigureSpec& spec, const TensorDigests& digests)
{
    json object = record_of(spec);
    core::add_tensors(object, digests);
    spec.provenance_json = text_of(object);
    spec.read_tensors = nullptr;
}

QByteArray complete_provenance(const FigureSpec& spec, const FigureOptions& options)
{
    json object = record_of(spec);
    if (spec.read_tensors)
        if (const auto digests = spec.read_tensors({})) core::add_tensors(object, *digests);
    const QSizeF size = figure_size_mm(spec, options);
    json figure;
    figure["width_mm"] = size.width();
    figure["height_mm"] = size.height();
    figure["font"] = figure_font(options).family.toStdString();
    figure["font_pt"] = options.font_pt;
    if (const auto* heatmap = std::get_if<HeatmapContent>(&spec.content)) {
        const ColorScale scale = figure_color_scale(*heatmap, options);
        figure["shows"] = heatmap->quantity_label.toStdString();
        figure["color_map"] = std::string(color_map_id(scale.map));
        figure["scale"] = std::string(scale_kind_id(scale.kind));
        figure["lower"] = scale.lower;
        figure["upper"] = scale.upper;
        figure["no_value_color"] = scale.missing.name().toStdString();
        if (heatmap->last >= heatmap->first) figure["shown_positions"] = {heatmap->first, heatmap->last};
    } else if (const auto* profile = std::get_if<ProfileContent>(&spec.content)) {
        figure["shows"] = profile->quantity_label.toStdString();
        if (profile->last >= profile->first) figure["shown_offsets"] = {profile->first, profile->last};
    }
    object["figure"] = std::move(figure);
    return text_of(object);
}

} // namespace posiscope::ui
