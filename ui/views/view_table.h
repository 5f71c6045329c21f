// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

#include <span>
#include <string_view>

#include "core/session/session.h"
#include "ui/views/analysis_view.h"

namespace posiscope::ui {

/// One view. Texts are English source texts, translated in the context "views" where they are shown.
struct ViewRow {
    std::string_view id; ///< stable: written to settings and session files
    const char* title;
    const char* explanation; ///< what it shows
    const char* how_to_read; ///< what to look for
    const char* source;      ///< paper, or what was decided here
    bool shows_metrics;      ///< shows the session's metrics rather than its maps
    /// Whether there is something to show: the session has been probed.
    bool (*applies)(const core::Session& session);
    AnalysisView* (*create)(QWidget* parent);
    /// Shows the model itself, whatever the probe's settings are: no work of the probe makes it old.
    bool shows_model = false;
};

/// THE list of views, in the order of menus and of the keys 1 to 9.
std::span<const ViewRow> view_table();

/// The row of this id, or null.
const ViewRow* find_view(std::string_view id);

QString view_title(const ViewRow& row);

/// What F1 shows, as rich text: what the view shows, how to read it, where it comes from.
QString view_explanation(const ViewRow& row);

} // namespace posiscope::ui
