// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/checkpoint/tensor_file.h"

namespace posiscope::core {

/// Whether a source begins with a msgpack map whose first key is a text.
bool is_flax(const ByteSource& source);

/// Reads the tree of a Flax checkpoint (msgpack): nested maps whose leaves are arrays, each an extension of type 1 with
/// (shape, type name, bytes), or a large array in chunks. The bytes are passed over. Names are joined with "/".
/// Source: flax/serialization.py; the msgpack specification.
/// @error corrupt_file
Result<TensorFile> open_flax(const std::shared_ptr<const ByteSource>& source, const RunContext& ctx);

} // namespace posiscope::core
