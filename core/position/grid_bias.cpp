// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/position/grid_bias.h"

namespace posiscope::core {

std::int64_t grid_bias_row(std::int64_t i, std::int64_t j, const GridBias& scheme)
{
    const std::int64_t offsets = (2 * scheme.rows - 1) * (2 * scheme.columns - 1);
    if (scheme.has_prefix) {
        if (i == 0) return offsets + (j == 0 ? 2 : 0);
        if (j == 0) return offsets + 1;
        --i;
        --j;
    }
    return (i / scheme.columns - j / scheme.columns + scheme.rows - 1) * (2 * scheme.columns - 1) +
           i % scheme.columns - j % scheme.columns + scheme.columns - 1;
}

HostTensor grid_position_bias(const HostTensor& table, const GridBias& scheme)
{
    const std::int64_t heads = table.dim(1), length = scheme.patches() + (scheme.has_prefix ? 1 : 0);
    HostTensor bias({heads, length, length});
    for (std::int64_t i = 0; i < length; ++i)
        for (std::int64_t j = 0; j < length; ++j) {
            const std::int64_t row = grid_bias_row(i, j, scheme);
            for (std::int64_t h = 0; h < heads; ++h)
                bias.data()[(h * length + i) * length + j] = table.data()[row * heads + h];
        }
    return bias;
}

HostTensor shifted_window_mask(const GridBias& scheme, std::int64_t grid_rows, std::int64_t grid_columns,
                               std::int64_t shift, std::int64_t window)
{
    const std::int64_t across = grid_columns / scheme.columns;
    const std::int64_t first_row = window / across * scheme.rows,
                       first_column = window % across * scheme.columns;
    // Behind the shift, the last `shift` rows and columns of the grid come from its other end.
    const auto region = [&](std::int64_t patch) {
        const std::int64_t row = first_row + patch / scheme.columns;
        const std::int64_t column = first_column + patch % scheme.columns;
        return 2 * (row >= grid_rows - shift ? 1 : 0) + (column >= grid_columns - shift ? 1 : 0);
    };
    const std::int64_t patches = scheme.patches();
    HostTensor mask({patches, patches});
    for (std::int64_t i = 0; i < patches; ++i)
        for (std::int64_t j = 0; j < patches; ++j)
            if (region(i) != region(j)) mask.data()[i * patches + j] = -100.0f;
    return mask;
}

} // namespace posiscope::core
