// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/checkpoint/tensor_file.h"

namespace posiscope::core {

/// Whether a source is a zip archive with "*.npy" records.
bool is_npz(const ByteSource& source);

/// Reads the headers of the arrays of an npz archive, stored or deflated. Arrays of objects, texts, structures and
/// complex numbers are left out with a warning each.
/// @error corrupt_file
Result<TensorFile> open_npz(const std::shared_ptr<const ByteSource>& source, const RunContext& ctx);

/// Whether a source is a single .npy array.
bool is_npy(const ByteSource& source);

/// A file of one array, called "array".
Result<TensorFile> open_npy(const std::shared_ptr<const ByteSource>& source, const RunContext& ctx);

} // namespace posiscope::core
