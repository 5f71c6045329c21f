// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QByteArray>
#include <QImage>
#include <QString>

#include "core/base/result.h"
#include "ui/figure/figure_spec.h"

namespace posiscope::ui {

/// The figure as a picture at `pixels_per_mm`: what every format looks like, in the same proportions.
QImage figure_picture(const FigureSpec& spec, const FigureOptions& options, double pixels_per_mm);

/// The whole file in memory.
/// PDF: exact page, vector text and lines, a heatmap as one lossless image with a pixel a cell, provenance as XMP.
/// SVG: see svg_canvas.h, provenance in <metadata>. PNG: options.dpi in pHYs, provenance in a tEXt chunk.
/// @error invalid_argument (a size, font or resolution out of its limits), out_of_memory
core::Result<QByteArray> figure_bytes(const FigureSpec& spec, const FigureOptions& options,
                                      FigureFormat format);

/// Writes a figure, the format by the extension. The file appears whole or not at all.
/// @error invalid_argument (also an unknown extension), unreadable (the file cannot be written), out_of_memory
core::Result<void> write_figure(const FigureSpec& spec, const FigureOptions& options, const QString& path);

} // namespace posiscope::ui
