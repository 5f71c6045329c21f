// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/checkpoint/tensor_file.h"

namespace posiscope::core {

/// Whether a source is a zip archive with a "data.pkl" (torch.save since 1.6, TorchScript), or with nothing that another
/// reader knows.
bool is_pytorch_zip(const ByteSource& source);

/// Reads the pickle of a PyTorch archive; each storage is a record "data/KEY" and stays in the file.
/// @error corrupt_file
Result<TensorFile> open_pytorch_zip(const std::shared_ptr<const ByteSource>& source, const RunContext& ctx);

} // namespace posiscope::core
