// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>

namespace posiscope::core {

/// Patches of an image in row-major order: position p is row p / cols, column p % cols.
struct Grid {
    std::size_t rows = 0;
    std::size_t cols = 0;
};

} // namespace posiscope::core
