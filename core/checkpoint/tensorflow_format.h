// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/checkpoint/format_table.h"
#include "core/checkpoint/tensor_file.h"

namespace posiscope::core {

/// Whether a source ends like a TensorFlow checkpoint index (a LevelDB table).
bool is_tensorflow_index(const ByteSource& source);

/// Reads the index of a TensorFlow V2 checkpoint ("x.index" beside "x.data-00000-of-00001"): the table's blocks and the
/// entries in them. Partitioned variables are put together; states of optimisers and counters are left out.
/// Source: LevelDB's doc/table_format.md; tensorflow/core/protobuf/tensor_bundle.proto; tensorflow/core/lib/strings/ordered_code.cc
/// for the keys of partitions.
/// @error corrupt_file; not_found: a data file is missing
Result<TensorFile> open_tensorflow(const WeightFile& input, const RunContext& ctx);

} // namespace posiscope::core
