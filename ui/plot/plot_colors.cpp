// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plot/plot_colors.h"

namespace posiscope::ui {
namespace {

QColor mixed(const QColor& a, const QColor& b, double share_of_b)
{
    const auto channel = [&](double x, double y) { return static_cast<float>(x + share_of_b * (y - x)); };
    return QColor::fromRgbF(channel(a.redF(), b.redF()), channel(a.greenF(), b.greenF()),
                            channel(a.blueF(), b.blueF()));
}

PlotColors colors_on(const QColor& background, const QColor& text)
{
    const bool dark = background.lightnessF() < 0.5;
    PlotColors colors;
    colors.background = background;
    colors.text = text;
    colors.frame = mixed(text, background, 0.3);
    colors.faint = mixed(text, background, 0.75);
    colors.curve = dark ? QColor(0x7F, 0xB8, 0xF2) : QColor(0x1A, 0x5C, 0xA8);
    // Opaque mixtures instead of transparency: vector files and viewers then agree on the colour.
    colors.spread = mixed(background, colors.curve, dark ? 0.26 : 0.18);
    colors.standard_error = mixed(background, colors.curve, dark ? 0.5 : 0.42);
    colors.white_band = dark ? mixed(background, QColor(0xF0, 0xC0, 0x50), 0.22)
                             : mixed(background, QColor(0xF0, 0xB0, 0x20), 0.24);
    colors.mark = dark ? QColor(0xFF, 0x9E, 0x64) : QColor(0xC2, 0x41, 0x0C);
    return colors;
}

} // namespace

PlotColors plot_colors(const QPalette& palette)
{
    return colors_on(palette.color(QPalette::Base), palette.color(QPalette::Text));
}

PlotColors page_colors()
{
    return colors_on(Qt::white, Qt::black);
}

} // namespace posiscope::ui
