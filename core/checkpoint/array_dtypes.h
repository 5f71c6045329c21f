// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string_view>

#include "core/tensor/dtype.h"

namespace posiscope::core {

/// A type by the name that NumPy, JAX and PyTorch share ("float32", "bfloat16", "float8_e4m3fn", "bool").
std::optional<DType> dtype_of_array_name(std::string_view name);

} // namespace posiscope::core
