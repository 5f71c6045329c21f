// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/checkpoint/byte_source.h"
#include "core/checkpoint/checkpoint.h"

namespace posiscope::core {

/// Whether a source begins like a safetensors file: an 8-byte length, then a JSON object.
bool is_safetensors(const ByteSource& source);

/// Reads the header of a safetensors file: 8 bytes little-endian length, a JSON object of
/// {"name": {"dtype", "shape", "data_offsets"}}, then the data.
/// Source: the format's specification, huggingface/safetensors README, "Format".
/// @error corrupt_file with the tensor's name: wrong lengths, overlapping ranges, a name given twice, unknown dtype
Result<TensorFile> open_safetensors(const std::shared_ptr<const ByteSource>& source, const RunContext& ctx);

} // namespace posiscope::core
