// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QPalette>

namespace posiscope::ui {

/// Colours of everything in a plot that is not data, taken from a widget's palette so that light and dark follow
/// the desktop; and the colours of curves on that background.
struct PlotColors {
    QColor background;
    QColor text;
    QColor frame; ///< axes and ticks
    QColor faint; ///< zero lines
    QColor curve;
    QColor spread; ///< opaque fills, widest first: spread, standard error
    QColor standard_error;
    QColor white_band;
    QColor mark; ///< marked offset
};

PlotColors plot_colors(const QPalette& palette);

/// The colours of exported figures: those of a white page, whatever the desktop looks like.
PlotColors page_colors();

} // namespace posiscope::ui
