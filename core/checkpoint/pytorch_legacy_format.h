// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/checkpoint/tensor_file.h"

namespace posiscope::core {

/// Whether a source begins like a pickle.
bool is_pickle(const ByteSource& source);

/// Reads a file of torch.save before version 1.6: four pickles (magic number, protocol, system, object), a pickled list
/// of storage keys, then each storage as its number of elements and its bytes.
/// @error corrupt_file, also for other pickles
Result<TensorFile> open_pytorch_legacy(const std::shared_ptr<const ByteSource>& source,
                                       const RunContext& ctx);

} // namespace posiscope::core
