// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/checkpoint/tensor_file.h"
#include "core/tensor/host_tensor.h"

namespace posiscope::core {

using ByteSources = std::span<const std::shared_ptr<const ByteSource>>;

/// A whole tensor as row-major float32, whatever its order, its pieces and its type.
/// @error unreadable, corrupt_file (the tensor's own fault)
Result<HostTensor> read_tensor(const TensorInfo& info, ByteSources sources);

/// Rows of a matrix in the order asked for; the caller has checked that they exist. Reads those rows only, where rows
/// lie together in the file; else no more than the part of the file from the first to the last of their elements.
Result<HostTensor> read_tensor_rows(const TensorInfo& info, ByteSources sources,
                                    std::span<const std::int64_t> rows);

} // namespace posiscope::core
