// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/checkpoint/tensor_file.h"

namespace posiscope::core {

/// Whether a source begins with "GGUF".
bool is_gguf(const ByteSource& source);

/// Reads metadata and tensor list of a GGUF file, version 2 or 3, little-endian. Config and vocabulary, which such files
/// hold themselves, become enclosed files; names of tensors stay as they are. A tensor of a type that is not known is
/// listed and cannot be read.
/// Source: ggml's docs/gguf.md.
/// @error corrupt_file; unsupported_format: version 1, big-endian
Result<TensorFile> open_gguf(const std::shared_ptr<const ByteSource>& source, const RunContext& ctx);

} // namespace posiscope::core
