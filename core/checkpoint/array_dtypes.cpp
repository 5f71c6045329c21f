// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/array_dtypes.h"

#include <array>

namespace posiscope::core {
namespace {

struct TypeName {
    std::string_view name;
    DType dtype;
};
constexpr std::array type_names{
    TypeName{"float64", DType::f64},
    TypeName{"float32", DType::f32},
    TypeName{"float16", DType::f16},
    TypeName{"bfloat16", DType::bf16},
    TypeName{"float8_e4m3fn", DType::f8_e4m3},
    TypeName{"float8_e5m2", DType::f8_e5m2},
    TypeName{"int64", DType::i64},
    TypeName{"int32", DType::i32},
    TypeName{"int16", DType::i16},
    TypeName{"int8", DType::i8},
    TypeName{"uint64", DType::u64},
    TypeName{"uint32", DType::u32},
    TypeName{"uint16", DType::u16},
    TypeName{"uint8", DType::u8},
    TypeName{"bool", DType::boolean},
};

} // namespace

std::optional<DType> dtype_of_array_name(std::string_view name)
{
    for (const TypeName& row : type_names)
        if (row.name == name) return row.dtype;
    return std::nullopt;
}

} // namespace posiscope::core
