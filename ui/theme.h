// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFont>
#include <QPalette>
#include <QString>

namespace posiscope::ui {

/// Light or dark: as the desktop has it, or forced.
enum class ThemeChoice { desktop, light, dark };

/// Stable name for the settings file.
QString theme_id(ThemeChoice theme);
ThemeChoice theme_from_id(const QString& id);

/// Sets palette (and, where forced, the Fusion style, which obeys any palette) of the whole program.
void apply_theme(ThemeChoice theme);

bool is_dark(const QPalette& palette);

/// The colour of text that explains: between text and background.
QColor quiet_text_color(const QPalette& palette);

/// Colour of lines that divide.
QColor divider_color(const QPalette& palette);

/// Side of the grid that distances are multiples of, in pixels.
inline constexpr int grid = 8;

/// The font with figures of equal width, for numbers in columns.
QFont with_tabular_figures(QFont font);

} // namespace posiscope::ui
