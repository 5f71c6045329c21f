// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/npz_format.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/checked_math.h"
#include "core/base/text.h"
#include "core/checkpoint/npy_header.h"
#include "core/checkpoint/zip_directory.h"

namespace posiscope::core {
namespace {

constexpr std::string_view ending = ".npy";

struct TypeCode {
    std::string_view code; ///< without the byte order
    DType dtype;
};

constexpr std::array type_codes{
    TypeCode{"f8", DType::f64},
    TypeCode{"f4", DType::f32},
    TypeCode{"f2", DType::f16},
    TypeCode{"i8", DType::i64},
    TypeCode{"i4", DType::i32},
    TypeCode{"i2", DType::i16},
    TypeCode{"i1", DType::i8},
    TypeCode{"u8", DType::u64},
    TypeCode{"u4", DType::u32},
    TypeCode{"u2", DType::u16},
    TypeCode{"u1", DType::u8},
    TypeCode{"b1", DType::boolean},
    // JAX writes bfloat16 as two bytes without a meaning.
    TypeCode{"V2", DType::bf16},
};

std::optional<DType> type_of(std::string_view type)
{
    if (type == "bfloat16" || type == "<bfloat16") return DType::bf16;
    if (type.size() < 3 || std::string_view("<>=|").find(type.front()) == std::string_view::npos)
        return std::nullopt;
    for (const TypeCode& row : type_codes)
        if (row.code == type.substr(1)) return row.dtype;
    return std::nullopt;
}

/// Whether numpy has such elements, though they are no numbers that weights could be.
std::string other_content(std::string_view type)
{
    const char kind = type.size() > 1 ? type[1] : '\0';
    if (kind == 'O') return "Python objects, which are never read";
    if (kind == 'U' || kind == 'S' || kind == 'a') return "text";
    if (kind == 'c') return "complex numbers";
    if (kind == 'M' || kind == 'm') return "dates";
    return {};
}

/// The array whose header a source begins with. Its `source` is left open. Nothing, with a warning, for arrays that hold
/// no numbers.
Result<std::optional<TensorInfo>> read_array(const ByteSource& source, const std::string& name,
                                             TensorFile& file)
{
    std::uint64_t offset = 0;
    auto header = read_npy_header(source, offset);
    if (!header) return header.error();
    const auto dtype = type_of(header->type);
    if (!dtype) {
        if (const std::string content = other_content(header->type); !content.empty()) {
            file.warnings.push_back("array " + in_quotes(name) + " in " + in_quotes(source.name()) +
                                    " holds " + content + "; it is left out");
            file.absent.emplace(name, "holds " + content);
            return std::optional<TensorInfo>{};
        }
        return Error{ErrorCode::corrupt_file,
                     in_quotes(source.name()) + " holds elements of type " + in_quotes(header->type, 40) +
                         "; numbers were expected",
                     "npz array"};
    }
    TensorInfo info;
    info.name = name;
    info.dtype = *dtype;
    info.shape = header->shape;
    info.big_endian = header->type.front() == '>';
    const auto count = element_count(info.shape);
    const auto bytes = count ? stored_bytes(*dtype, *count) : std::nullopt;
    if (!bytes || *bytes > source.size() - offset)
        return Error{ErrorCode::corrupt_file,
                     in_quotes(source.name()) + " claims an array of shape " + shape_text(info.shape) +
                         " and type " + in_quotes(header->type, 40) + ", but only " +
                         std::to_string(source.size() - offset) + " bytes follow its header",
                     "npz array"};
    info.begin = offset;
    info.end = offset + *bytes;
    if (header->fortran_order && info.shape.size() > 1) {
        std::int64_t stride = 1;
        for (const std::int64_t size : info.shape) {
            info.axes.push_back({size, stride});
            stride *= std::max<std::int64_t>(size, 1);
        }
    }
    return std::optional(std::move(info));
}

} // namespace

bool is_npz(const ByteSource& source)
{
    if (!is_zip(source)) return false;
    const auto directory = read_zip_directory(source);
    return directory && std::any_of(directory->entries.begin(), directory->entries.end(),
                                    [](const ZipEntry& entry) { return entry.name.ends_with(ending); });
}

Result<TensorFile> open_npz(const std::shared_ptr<const ByteSource>& source, const RunContext& ctx)
{
    const auto directory = read_zip_directory(*source);
    if (!directory) return directory.error();
    TensorFile file;
    file.format = "npz";
    file.files.push_back(source);
    for (const ZipEntry& entry : directory->entries) {
        if (ctx.cancelled()) return cancelled_error("opening a checkpoint");
        if (!entry.name.ends_with(ending)) continue;
        auto record = zip_record(source, entry);
        auto info = read_array(*record, entry.name.substr(0, entry.name.size() - ending.size()), file);
        if (!info) return info.error();
        if (!*info) continue;
        (*info)->source = file.sources.size();
        file.sources.push_back(std::move(record));
        file.tensors.push_back(**std::move(info));
    }
    if (file.tensors.empty())
        file.warnings.push_back(in_quotes(source->name()) + " holds no arrays of numbers");
    return file;
}

bool is_npy(const ByteSource& source)
{
    constexpr std::string_view magic("\x93NUMPY", 6);
    std::array<std::byte, 6> start{};
    return source.size() >= start.size() && source.read(0, start) &&
           std::memcmp(start.data(), magic.data(), magic.size()) == 0;
}

Result<TensorFile> open_npy(const std::shared_ptr<const ByteSource>& source, const RunContext& ctx)
{
    if (ctx.cancelled()) return cancelled_error("opening a checkpoint");
    TensorFile file;
    file.format = "npy";
    file.sources.push_back(source);
    auto info = read_array(*source, "array", file);
    if (!info) return info.error();
    if (*info) file.tensors.push_back(**std::move(info));
    return file;
}

} // namespace posiscope::core
