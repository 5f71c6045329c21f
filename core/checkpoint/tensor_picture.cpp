// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/tensor_picture.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/text.h"
#include "core/checkpoint/reading_scope.h"

namespace posiscope::core {
namespace {

constexpr std::int64_t values_at_once = 2'000'000;
constexpr std::string_view where = "a picture of a tensor";

std::int64_t steps(std::int64_t size, std::int64_t most)
{
    return (size + most - 1) / most;
}

Error refused(const TensorInfo& info, const std::string& what)
{
    return Error{ErrorCode::invalid_argument, "tensor " + in_quotes(info.name) + " " + what,
                 std::string(where)};
}

} // namespace

MatrixShape matrix_shape(const TensorInfo& info)
{
    MatrixShape out;
    const std::size_t rank = info.shape.size();
    if (rank > 0) out.columns = info.shape[rank - 1];
    if (rank > 1) out.rows = info.shape[rank - 2];
    for (std::size_t axis = 0; axis + 2 < rank; ++axis) out.slices *= info.shape[axis];
    return out;
}

Result<PicturePlan> plan_picture(const Checkpoint& checkpoint, std::string_view name,
                                 const PictureOptions& options)
{
    const TensorInfo* info = checkpoint.find(name);
    if (info == nullptr)
        return Error{ErrorCode::not_found,
                     in_quotes(checkpoint.weights_name()) + " has no tensor " + in_quotes(name),
                     std::string(where)};
    PicturePlan plan;
    plan.matrix = matrix_shape(*info);
    const auto& [slices, rows, columns] = plan.matrix;
    if (slices == 0 || rows == 0 || columns == 0)
        return refused(*info, "of shape " + shape_text(info->shape) + " has no elements");
    if (options.slice < 0 || options.slice >= slices)
        return refused(*info, "has " + std::to_string(slices) + " matrices; number " +
                                  std::to_string(options.slice) + " was asked for");
    if (columns > options.most_values)
        return refused(*info, "has rows of " + std::to_string(columns) + " elements; at most " +
                                  std::to_string(options.most_values) + " are drawn");
    // A few rows fewer rather than a file read for hours.
    const std::int64_t readable = std::max<std::int64_t>(1, options.most_values / columns);
    plan.samples_rows = rows > readable && rows > options.most_rows;
    plan.row_step =
        steps(rows, plan.samples_rows ? std::min(options.most_rows, readable) : options.most_rows);
    plan.column_step = steps(columns, options.most_columns);
    plan.rows = steps(rows, plan.row_step);
    plan.columns = steps(columns, plan.column_step);
    // Rows that do not lie together cost all that lies between them.
    const bool lies_in_rows = info->axes.empty();
    const auto values =
        static_cast<std::uint64_t>((plan.samples_rows && lies_in_rows ? plan.rows : rows) * columns);
    plan.bytes = values / dtype_block(info->dtype) * dtype_size(info->dtype);
    return plan;
}

Result<TensorPicture> tensor_picture(const Checkpoint& checkpoint, std::string_view name,
                                     const PictureOptions& options, const RunContext& ctx)
{
    const ReadingScope scope(ctx);
    const auto planned = plan_picture(checkpoint, name, options);
    if (!planned) return planned.error();
    TensorPicture picture{*planned, {}};
    const PicturePlan& plan = picture.plan;
    const std::int64_t columns = plan.matrix.columns;
    picture.values.assign(static_cast<std::size_t>(plan.rows * plan.columns), 0.0);
    const std::int64_t rows_read = plan.samples_rows ? plan.rows : plan.matrix.rows;
    const std::int64_t at_once = std::max<std::int64_t>(1, values_at_once / columns);
    std::vector<std::int64_t> lines;
    for (std::int64_t done = 0; done < rows_read; done += at_once) {
        if (ctx.cancelled()) return cancelled_error(where);
        lines.clear();
        for (std::int64_t n = done; n < std::min(done + at_once, rows_read); ++n)
            lines.push_back(options.slice * plan.matrix.rows + (plan.samples_rows ? n * plan.row_step : n));
        const auto part = checkpoint.read_rows(name, lines);
        if (!part) return part.error();
        for (std::size_t n = 0; n < lines.size(); ++n) {
            const std::int64_t number = done + static_cast<std::int64_t>(n);
            const std::int64_t row = plan.samples_rows ? number : number / plan.row_step;
            double* cells = picture.values.data() + row * plan.columns;
            const float* from = part->data() + static_cast<std::int64_t>(n) * columns;
            for (std::int64_t column = 0; column < columns; ++column)
                cells[column / plan.column_step] += static_cast<double>(from[column]);
        }
        ctx.report({"tensor", static_cast<std::size_t>(std::min(done + at_once, rows_read)),
                    static_cast<std::size_t>(rows_read)});
    }
    for (std::int64_t row = 0; row < plan.rows; ++row) {
        const std::int64_t in_row =
            plan.samples_rows ? 1 : std::min(plan.row_step, plan.matrix.rows - row * plan.row_step);
        for (std::int64_t column = 0; column < plan.columns; ++column) {
            const std::int64_t in_column = std::min(plan.column_step, columns - column * plan.column_step);
            picture.values[static_cast<std::size_t>(row * plan.columns + column)] /=
                static_cast<double>(in_row * in_column);
        }
    }
    return picture;
}

} // namespace posiscope::core
