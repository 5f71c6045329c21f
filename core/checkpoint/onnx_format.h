// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/checkpoint/format_table.h"
#include "core/checkpoint/tensor_file.h"

namespace posiscope::core {

/// Whether a source begins like an ONNX model: the version of the format, then a field of the model.
bool is_onnx(const ByteSource& source);

/// Reads the initialisers of an ONNX graph; their bytes stay in the model or in the external files beside it. A matrix that
/// an exporter renamed and transposed ("onnx::MatMul_252") gets its name back from the bias that is added behind it, or
/// from the path in its node's name.
/// Source: onnx/onnx.proto.
/// @error corrupt_file
Result<TensorFile> open_onnx(const WeightFile& input, const RunContext& ctx);

} // namespace posiscope::core
