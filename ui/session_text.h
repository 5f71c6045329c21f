// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QStringList>

#include "core/metrics/quantity.h"
#include "core/model/open_model.h"
#include "core/probe/probe_result.h"
#include "core/session/session.h"

namespace posiscope::ui {

/// "logits", "logits \u2212const", "probabilities".
QString quantity_label(core::Quantity quantity);
/// The same, short, for columns and buttons: "Logits", "\u2212const", "Probabilities".
QString quantity_short_label(core::Quantity quantity);
/// Name of the quantity on an axis or a colour bar.
QString quantity_axis_label(core::Quantity quantity);

/// "all" or "without first".
QString positions_label(core::PositionChoice positions);
/// "mean of 12 heads" or "head 3".
QString head_label(int head, std::int64_t heads);
/// "300 words", "the, cat, sat", "word 'the'".
QString words_label(const core::ProbeResult& probe);
/// "closed form", "forward pass".
QString way_label(core::ProbeWay way);
/// "word\u2013position" and so on, for a term's id.
QString term_label(const QString& id);

/// The settings that made the picture: model, stack, layer, head, quantity, words, length, variant, positions.
QString describe_picture(const core::Session& session);

/// "BERT, learned absolute".
QString scheme_line(const core::OpenModel& model);
/// "6 layers, 12 heads, d = 384, up to 512 positions".
QString sizes_line(const core::OpenModel& model);

/// Everything soft that was met on the way to this picture, each once.
QStringList session_warnings(const core::Session& session);

} // namespace posiscope::ui
