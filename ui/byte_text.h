// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

namespace posiscope::ui {

/// A size for reading: "812 bytes", "46.9 kB", "1.17 GB" (powers of a thousand, three significant digits).
QString shown_bytes(qulonglong bytes);

/// "3.1 of 16.4 MB", or "3.1 MB" where the total is not known (0).
QString shown_progress_bytes(qulonglong done, qulonglong total);

/// A count with thin spaces between groups of three digits: "30 522".
QString shown_count(qulonglong count);

} // namespace posiscope::ui
