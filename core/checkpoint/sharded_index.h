// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/checkpoint/format_table.h"
#include "core/checkpoint/tensor_file.h"

namespace posiscope::core {

/// Whether a source begins like a JSON object.
bool is_sharded_index(const ByteSource& source);

/// Reads "x.index.json": {"weight_map": {"tensor": "shard file", ...}} and opens the shards, whatever their format.
/// Tensors of a shard that is missing are told apart in TensorFile::absent, with a warning.
/// @error corrupt_file: also for shards outside the folder, which are not opened, and tensors that their shard lacks
Result<TensorFile> open_sharded_index(const WeightFile& input, const RunContext& ctx);

} // namespace posiscope::core
