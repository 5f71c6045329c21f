// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QSizeF>

#include "ui/figure/figure_canvas.h"
#include "ui/figure/figure_spec.h"

namespace posiscope::ui {

/// Size of the page in millimetres: as asked for, with the height that the figure needs where none is given.
QSizeF figure_size_mm(const FigureSpec& spec, const FigureOptions& options);

/// The font that the options stand for.
FigureFont figure_font(const FigureOptions& options);

/// Draws the figure on a page of figure_size_mm(). Axis names with units, tick marks inside the range, a colour bar
/// with the quantity's name and its clipped ends marked, 0.5 pt lines, square cells.
void draw_figure(FigureCanvas& canvas, const FigureSpec& spec, const FigureOptions& options);

/// The scale that a heatmap figure draws with: the screen's, on the colour map of the options.
ColorScale figure_color_scale(const HeatmapContent& content, const FigureOptions& options);

/// The picture that a heatmap figure draws, a pixel a cell, in the colours of the options.
QImage figure_cells(const HeatmapContent& content, const FigureOptions& options);

} // namespace posiscope::ui
