// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/safetensors_format.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/checked_math.h"
#include "core/base/text.h"

namespace posiscope::core {
namespace {

using nlohmann::json;

constexpr std::uint64_t largest_header = 100'000'000; // the limit of the reference reader
constexpr std::size_t most_dimensions = 32;
constexpr std::uint64_t length_bytes = 8;

std::uint64_t little_endian_64(std::span<const std::byte, 8> bytes)
{
    std::uint64_t value = 0;
    for (std::size_t n = 8; n-- > 0;) value = (value << 8u) | std::to_integer<std::uint64_t>(bytes[n]);
    return value;
}

struct HeaderFault {
    const ByteSource& source;
    Error operator()(const std::string& what) const
    {
        return Error{ErrorCode::corrupt_file, in_quotes(source.name()) + ": " + what, "safetensors header"};
    }
};

/// The whole numbers of a JSON list, or nothing where it is anything else.
std::optional<std::vector<std::uint64_t>> whole_numbers(const json& list, std::size_t most)
{
    if (!list.is_array() || list.size() > most) return std::nullopt;
    std::vector<std::uint64_t> numbers;
    for (const json& item : list) {
        if (!item.is_number_unsigned()) return std::nullopt;
        numbers.push_back(item.get<std::uint64_t>());
    }
    return numbers;
}

Result<TensorInfo> read_entry(const std::string& name, const json& entry, std::uint64_t data_begin,
                              std::uint64_t data_size, const HeaderFault& fault)
{
    const std::string tensor = "tensor " + in_quotes(name);
    if (!entry.is_object()) return fault(tensor + " is not described by an object");
    for (const char* key : {"dtype", "shape", "data_offsets"})
        if (!entry.contains(key)) return fault(tensor + " has no '" + key + "'");
    const json& type = entry["dtype"];
    if (!type.is_string()) return fault(tensor + ": 'dtype' is not a text");
    const auto dtype = dtype_from_name(type.get_ref<const std::string&>());
    if (!dtype)
        return fault(tensor + " has the unknown dtype " + in_quotes(type.get_ref<const std::string&>(), 40));

    const auto sizes = whole_numbers(entry["shape"], most_dimensions);
    if (!sizes)
        return fault(tensor + ": 'shape' must be a list of at most " + std::to_string(most_dimensions) +
                     " whole numbers that are not negative");
    TensorInfo info;
    info.name = name;
    info.dtype = *dtype;
    for (const std::uint64_t size : *sizes) {
        if (size > static_cast<std::uint64_t>(INT64_MAX))
            return fault(tensor + ": a size of its shape is too large");
        info.shape.push_back(static_cast<std::int64_t>(size));
    }
    const auto count = element_count(info.shape);
    const auto bytes = count ? checked_multiply(*count, dtype_size(*dtype)) : std::nullopt;
    if (!bytes) return fault(tensor + ": shape " + shape_text(info.shape) + " is too large for any file");

    const auto offsets = whole_numbers(entry["data_offsets"], 2);
    if (!offsets || offsets->size() != 2)
        return fault(tensor + ": 'data_offsets' must be two whole numbers that are not negative");
    const auto [begin, end] = std::pair((*offsets)[0], (*offsets)[1]);
    const std::string claim = tensor + " claims bytes " + std::to_string(begin) + ".." + std::to_string(end);
    if (begin > end) return fault(claim + ", whose end is before its beginning");
    if (end > data_size) return fault(claim + " of " + std::to_string(data_size) + " that the file holds");
    if (end - begin != *bytes)
        return fault(claim + ", but " + std::string(dtype_name(*dtype)) + " of shape " +
                     shape_text(info.shape) + " takes " + std::to_string(*bytes) + " bytes");
    info.begin = data_begin + begin;
    info.end = data_begin + end;
    return info;
}

/// Every byte of the data belongs to one tensor: overlaps are refused, bytes that belong to none are a warning.
Result<void> check_layout(const TensorFile& file, std::uint64_t data_begin, std::uint64_t data_end,
                          std::vector<std::string>& warnings, const HeaderFault& fault)
{
    std::vector<const TensorInfo*> order;
    for (const TensorInfo& info : file.tensors)
        if (info.begin != info.end) order.push_back(&info);
    std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->begin < b->begin; });
    std::uint64_t covered = data_begin;
    std::uint64_t unused = 0;
    const TensorInfo* before = nullptr;
    for (const TensorInfo* info : order) {
        if (info->begin < covered)
            return fault("tensors " + in_quotes(before->name) + " and " + in_quotes(info->name) +
                         " share bytes");
        unused += info->begin - covered;
        covered = info->end;
        before = info;
    }
    unused += data_end - covered;
    if (unused > 0)
        warnings.push_back(in_quotes(fault.source.name()) + " holds " + std::to_string(unused) +
                           " bytes that belong to no tensor");
    return {};
}

} // namespace

bool is_safetensors(const ByteSource& source)
{
    std::array<std::byte, 9> start{};
    if (source.size() < start.size() || !source.read(0, start)) return false;
    // A length that no file can have is still a safetensors file if the object follows: it is refused by its length.
    return start[8] == std::byte{'{'};
}

Result<TensorFile> open_safetensors(const std::shared_ptr<const ByteSource>& source, const RunContext& ctx)
{
    const HeaderFault fault{*source};
    if (ctx.cancelled()) return cancelled_error("opening a checkpoint");
    if (source->size() < length_bytes)
        return fault("the file has " + std::to_string(source->size()) +
                     " bytes; a safetensors file begins with 8 bytes that give the header's length");
    std::array<std::byte, 8> start{};
    if (auto read = source->read(0, start); !read) return read.error();
    const std::uint64_t header_size = little_endian_64(start);
    if (header_size > largest_header)
        return fault("the header claims " + std::to_string(header_size) + " bytes; at most " +
                     std::to_string(largest_header) + " are allowed");
    if (header_size > source->size() - length_bytes)
        return fault("the header claims " + std::to_string(header_size) + " bytes, but the file ends after " +
                     std::to_string(source->size() - length_bytes) + "; it is cut short");
    std::string text(static_cast<std::size_t>(header_size), '\0');
    if (auto read = source->read(length_bytes, std::as_writable_bytes(std::span(text))); !read)
        return read.error();
    if (!is_utf8(text)) return fault("the header is not UTF-8");

    std::vector<std::string> duplicates;
    const auto root = parse_json(text, in_quotes(source->name()) + ": the header", &duplicates);
    if (!root) return root.error();
    if (!root->is_object()) return fault("the header is not a JSON object");
    if (!duplicates.empty()) return fault("the header lists " + in_quotes(duplicates.front()) + " twice");

    TensorFile file;
    file.format = "safetensors";
    file.sources.push_back(source);
    const std::uint64_t data_begin = length_bytes + header_size;
    for (const auto& [name, entry] : root->items()) {
        if (name == "__metadata__") continue;
        auto info = read_entry(name, entry, data_begin, source->size() - data_begin, fault);
        if (!info) return info.error();
        file.tensors.push_back(*std::move(info));
    }
    if (auto layout = check_layout(file, data_begin, source->size(), file.warnings, fault); !layout)
        return layout.error();
    // The parser sorts names; people know a file by its own order, which is that of the bytes.
    std::stable_sort(file.tensors.begin(), file.tensors.end(),
                     [](const TensorInfo& a, const TensorInfo& b) { return a.begin < b.begin; });
    if (file.tensors.empty()) file.warnings.push_back(in_quotes(source->name()) + " holds no tensors");
    return file;
}

} // namespace posiscope::core
