// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

#include "core/tensor/host_tensor.h"

namespace posiscope::core {

/// A bias by the offset of two patches on a grid (or in a window of it), patches in row order:
///     row of (a, b) = (row_a - row_b + rows - 1) * (2 columns - 1) + column_a - column_b + columns - 1,
/// a the query; with a prefix token three rows more: prefix to patch, patch to prefix, prefix to itself.
/// Source: Liu et al. 2021 (Swin), sec. 3.2; Bao et al. 2022 (BEiT) and their released code.
struct GridBias {
    std::int64_t rows = 0, columns = 0;
    bool has_prefix = false;

    [[nodiscard]] std::int64_t patches() const { return rows * columns; }
    [[nodiscard]] std::int64_t table_rows() const
    {
        return (2 * rows - 1) * (2 * columns - 1) + (has_prefix ? 3 : 0);
    }
};

/// Row of the table for positions i and j (position 0 is the prefix where there is one).
std::int64_t grid_bias_row(std::int64_t i, std::int64_t j, const GridBias& scheme);

/// @param table  [table_rows(), heads]
/// @return [heads, L, L], L = patches, and the prefix
HostTensor grid_position_bias(const HostTensor& table, const GridBias& scheme);

/// What a shifted window's softmax has added: -100 between patches that lie apart in the image.
/// @param grid_rows, grid_columns  patches of the image; windows divide them
/// @param window  number of the window, in row order
/// @return [patches, patches]
/// Source: Liu et al. 2021, sec. 3.2, and its released code.
HostTensor shifted_window_mask(const GridBias& scheme, std::int64_t grid_rows, std::int64_t grid_columns,
                               std::int64_t shift, std::int64_t window);

} // namespace posiscope::core
