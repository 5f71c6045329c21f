// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QSizeF>

#include "ui/figure/figure_canvas.h"
#include "ui/figure/table_content.h"
#include "ui/plot/plot_colors.h"

namespace posiscope::ui {

/// Height in points that a table needs on a page of this width.
double table_height(const TableContent& content, const FigureFont& font, double width);

/// Draws the table from `top` down. Type becomes smaller where the page is too low or a column too wide for it.
void draw_table(FigureCanvas& canvas, const TableContent& content, const FigureFont& font,
                const PlotColors& colors, const QSizeF& page, double top);

} // namespace posiscope::ui
