// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/session/display_maps.h"

#include <limits>
#include <utility>

namespace posiscope::core {
namespace {

/// The term's entries at the places that `shape` has: the same positions, the same future left out.
PositionMap term_map(const HostTensor& values, int head, const PositionMap& shape)
{
    PositionMap map = shape;
    const auto heads = static_cast<std::size_t>(values.dim(0));
    const std::size_t first_head = head == mean_of_heads ? 0 : static_cast<std::size_t>(head);
    const std::size_t count = head == mean_of_heads ? heads : 1;
    for (std::size_t row = 0; row < map.length; ++row) {
        for (std::size_t col = 0; col < map.length; ++col) {
            if (shape(row, col) != shape(row, col)) continue; // NaN: the entry does not exist
            double sum = 0.0;
            for (std::size_t h = first_head; h < first_head + count; ++h)
                sum +=
                    static_cast<double>(values.matrix(h)(map.first_position + row, map.first_position + col));
            map(row, col) = sum / static_cast<double>(count);
        }
    }
    return map;
}

} // namespace

Result<DisplayMaps> compute_display_maps(const ProbeResult& probe, const MapRequest& request,
                                         const RunContext& ctx)
{
    constexpr std::string_view name = "maps";
    const auto& [head, quantity, positions] = request.display;
    if (head != mean_of_heads && (head < 0 || head >= probe.heads))
        return Error{ErrorCode::invalid_argument,
                     "there is no head " + std::to_string(head) + ": the layer has heads 0.." +
                         std::to_string(probe.heads - 1),
                     std::string(name)};

    DisplayMaps out;
    out.request = request;
    out.mean = quantity_map(probe, quantity, head, positions);
    if (out.mean.length == 0)
        return Error{ErrorCode::invalid_argument,
                     "the probe holds no " + std::string(quantity_id(quantity)) +
                         " for the positions asked for",
                     std::string(name)};
    if (ctx.cancelled()) return cancelled_error(name);
    out.profile = offset_profile_over_words(probe, quantity, head, positions);
    out.white_band = white_band(out.mean);
    if (ctx.cancelled()) return cancelled_error(name);
    out.groups = probe.groups.word_counts.size();
    out.spread = spread_map(probe, quantity, head, positions);
    if (request.every_head) {
        for (int one = 0; one < static_cast<int>(probe.heads); ++one) {
            if (ctx.cancelled()) return cancelled_error(name);
            ctx.report({name, static_cast<std::size_t>(one), static_cast<std::size_t>(probe.heads)});
            out.heads.push_back(quantity_map(probe, quantity, one, positions));
        }
    }
    for (const ProbeTerm& term : probe.terms) {
        if (ctx.cancelled()) return cancelled_error(name);
        out.terms.push_back({term.id, term_map(term.values, head, out.mean)});
    }
    return out;
}

} // namespace posiscope::core
