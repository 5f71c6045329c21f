// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

namespace posiscope::ui {

/// What About shows, as rich text: version, libraries, kernels, the source of the science, licences. Does not open the
/// LibTorch engine, which would take most of a second; `engine_line` tells of it where it is open.
QString about_text(const QString& engine_line);

} // namespace posiscope::ui
