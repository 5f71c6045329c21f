// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string_view>

#include <QByteArray>

#include "core/model/open_model.h"
#include "core/probe/probe_result.h"
#include "core/session/session.h"
#include "ui/figure/figure_spec.h"

namespace posiscope::ui {

/// Where a figure comes from, for FigureSpec::provenance_json: what core says of the probe, and what the view shows.
/// Without digests: see FigureSpec::read_tensors.
/// @param view_id  "attention_heatmap", "offset_profile"
QByteArray figure_provenance(const core::OpenModel& model, const core::ProbeResult& probe,
                             const core::DisplayOptions& display, std::string_view view_id);

/// Writes digests into the spec's provenance, which has no more to read then.
void take_tensors(FigureSpec& spec, const TensorDigests& digests);

/// The spec's provenance with a "figure" object added: size, font, colours and scale as drawn. ASCII. Reads the
/// tensors where the spec still wants that; a checkpoint that cannot be read any more leaves its digests out.
QByteArray complete_provenance(const FigureSpec& spec, const FigureOptions& options);

} // namespace posiscope::ui
