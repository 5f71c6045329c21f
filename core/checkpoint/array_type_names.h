// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "core/tensor/dtype.h"

namespace posiscope::core {

/// The type that NumPy, JAX and PyTorch call by this name ("float32"); nothing where it is not known.
inline std::optional<DType> dtype_of_array_name(std::string_view name)
{
    constexpr std::array<std::pair<std::string_view, DType>, 15> names{{
        {"float64", DType::f64},
        {"float32", DType::f32},
        {"float16", DType::f16},
        {"bfloat16", DType::bf16},
        {"float8_e4m3fn", DType::f8_e4m3},
        {"float8_e5m2", DType::f8_e5m2},
        {"int64", DType::i64},
        {"int32", DType::i32},
        {"int16", DType::i16},
        {"int8", DType::i8},
        {"uint64", DType::u64},
        {"uint32", DType::u32},
        {"uint16", DType::u16},
        {"uint8", DType::u8},
        {"bool", DType::boolean},
    }};
    for (const auto& [known, dtype] : names)
        if (known == name) return dtype;
    return std::nullopt;
}

} // namespace posiscope::core
