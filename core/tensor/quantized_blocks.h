// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/tensor/dtype.h"

namespace posiscope::core {

/// IEEE binary16, exactly.
float half_to_float(std::uint16_t half);

/// Decodes whole blocks of a quantised type: each block holds a scale (for some types also a minimum, and scales of
/// sub-blocks) and small integers.
/// Source: the block layouts of GGUF files, ggml's "ggml-common.h".
void decode_blocks(DType dtype, std::span<const std::byte> bytes, std::span<float> out);

} // namespace posiscope::core
