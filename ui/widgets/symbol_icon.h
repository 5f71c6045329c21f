// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QIcon>

namespace posiscope::ui {

enum class Symbol { fill, restore, export_figure, add, close, warning, pin };

/// A line drawing in the palette's text colour: sharp at any scale, right in light and dark.
QIcon symbol_icon(Symbol symbol);

} // namespace posiscope::ui
