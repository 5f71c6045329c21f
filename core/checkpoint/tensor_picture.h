// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/checkpoint/checkpoint.h"

namespace posiscope::core {

/// A tensor seen as matrices: the last two axes, one matrix for each index of those before. A vector is one row, a
/// scalar one cell.
struct MatrixShape {
    std::int64_t slices = 1;
    std::int64_t rows = 1;
    std::int64_t columns = 1;
};
MatrixShape matrix_shape(const TensorInfo& info);

struct PictureOptions {
    std::int64_t slice = 0;
    std::int64_t most_rows = 1024;
    std::int64_t most_columns = 1024;
    std::int64_t most_values = 16'000'000; ///< that are read
};

/// What a picture of a matrix is made of and what it costs, before anything is read.
struct PicturePlan {
    MatrixShape matrix;
    std::int64_t rows = 0, columns = 0; ///< cells of the picture
    std::int64_t row_step = 1; ///< rows of the matrix that a cell stands for; the last cell may have fewer
    std::int64_t column_step = 1;
    bool samples_rows = false; ///< of each row_step rows the first alone is read, where all would be too many
    std::uint64_t bytes = 0;   ///< of the file that are read, at most
};
/// @error not_found, invalid_argument (no such slice, no elements, rows too long to be read)
Result<PicturePlan> plan_picture(const Checkpoint& checkpoint, std::string_view name,
                                 const PictureOptions& options);

/// A matrix, or one small enough to be looked at in its place.
struct TensorPicture {
    PicturePlan plan;
    std::vector<double>
        values; ///< [rows, columns]: means over the values that a cell stands for; NaN where one is NaN
};

/// Reads a picture of one matrix of a tensor. Never holds more than a few rows besides it.
/// @error as plan_picture; unreadable, corrupt_file, cancelled
Result<TensorPicture> tensor_picture(const Checkpoint& checkpoint, std::string_view name,
                                     const PictureOptions& options, const RunContext& ctx);

} // namespace posiscope::core
