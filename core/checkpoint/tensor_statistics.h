// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/checkpoint/checkpoint.h"

namespace posiscope::core {

/// What the numbers of one tensor are like. NaN and infinite values are counted and left out of the rest.
struct TensorStatistics {
    std::uint64_t count = 0; ///< all values
    std::uint64_t nan_count = 0;
    std::uint64_t infinite_count = 0;
    double least = 0.0, most = 0.0, mean = 0.0;
    double standard_deviation = 0.0; ///< of the values themselves (divided by their number)
};

/// Reads a tensor, a large one some rows at a time, and counts.
/// @error not_found, unreadable, corrupt_file, cancelled
Result<TensorStatistics> tensor_statistics(const Checkpoint& checkpoint, std::string_view name,
                                           const RunContext& ctx);

} // namespace posiscope::core
