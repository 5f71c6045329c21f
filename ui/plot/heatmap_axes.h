// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

namespace posiscope::ui {

/// What the rows and columns of a heatmap are: by default the queries and keys of attention.
struct HeatmapAxes {
    QString rows;    ///< name; empty: "query position"
    QString columns; ///< empty: "key position"
    int shift =
        0; ///< added to a position where it is written: -64 where position 0 stands for the offset -64

    /// Both axes are the same thing.
    static HeatmapAxes of(const QString& name, int shift = 0) { return {name, name, shift}; }
    bool operator==(const HeatmapAxes&) const = default;
};

} // namespace posiscope::ui
