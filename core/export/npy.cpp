// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/export/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <new>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/checked_math.h"
#include "core/base/text.h"
#include "core/checkpoint/npy_header.h"
#include "core/checkpoint/reading_scope.h"
#include "core/export/atomic_file.h"

namespace posiscope::core {
namespace {

constexpr std::string_view magic("\x93NUMPY", 6);
constexpr std::string_view where = ".npy header";

Error corrupt(const ByteSource& source, const std::string& what)
{
    return Error{ErrorCode::corrupt_file, in_quotes(source.name()) + " " + what, std::string(where)};
}

Error unsupported(const ByteSource& source, const std::string& what)
{
    return Error{ErrorCode::unsupported_format, in_quotes(source.name()) + " " + what, std::string(where)};
}

template <class T>
double as_double(const std::byte* bytes, bool swap)
{
    std::array<std::byte, sizeof(T)> own;
    std::memcpy(own.data(), bytes, sizeof(T));
    if (swap) std::reverse(own.begin(), own.end());
    return static_cast<double>(std::bit_cast<T>(own));
}

/// Half precision: 1 sign bit, 5 exponent bits, 10 fraction bits.
double half_as_double(const std::byte* bytes, bool swap)
{
    std::array<std::byte, 2> own{bytes[0], bytes[1]};
    if (swap) std::swap(own[0], own[1]);
    const auto bits = std::bit_cast<std::uint16_t>(own);
    const std::uint64_t sign = static_cast<std::uint64_t>(bits >> 15u) << 63u;
    const std::uint64_t exponent = (bits >> 10u) & 0x1fu;
    const std::uint64_t fraction = bits & 0x3ffu;
    if (exponent == 0) {
        const double magnitude = static_cast<double>(fraction) * 0x1.0p-24;
        return sign != 0 ? -magnitude : magnitude;
    }
    const std::uint64_t wide = exponent == 0x1f ? 0x7ffu : exponent + 1023 - 15;
    return std::bit_cast<double>(sign | wide << 52u | fraction << 42u);
}

double boolean_as_double(const std::byte* bytes, bool)
{
    return bytes[0] == std::byte{0} ? 0.0 : 1.0;
}

struct ElementType {
    std::string_view code; ///< without the byte order
    std::size_t size = 0;
    double (*convert)(const std::byte*, bool swap) = nullptr;
};

const ElementType* find_element_type(std::string_view code)
{
    static constexpr std::array types{
        ElementType{"f8", 8, as_double<double>},        ElementType{"f4", 4, as_double<float>},
        ElementType{"f2", 2, half_as_double},           ElementType{"i8", 8, as_double<std::int64_t>},
        ElementType{"i4", 4, as_double<std::int32_t>},  ElementType{"i2", 2, as_double<std::int16_t>},
        ElementType{"i1", 1, as_double<std::int8_t>},   ElementType{"u8", 8, as_double<std::uint64_t>},
        ElementType{"u4", 4, as_double<std::uint32_t>}, ElementType{"u2", 2, as_double<std::uint16_t>},
        ElementType{"u1", 1, as_double<std::uint8_t>},  ElementType{"b1", 1, boolean_as_double},
    };
    const auto* found =
        std::find_if(types.begin(), types.end(), [&](const ElementType& type) { return type.code == code; });
    return found == types.end() ? nullptr : found;
}

/// Why a type that is no number of ours cannot be read.
std::string type_refusal(std::string_view type)
{
    const char kind = type.size() > 1 ? type[1] : '\0';
    const std::string wanted = "; a map of real numbers was expected";
    if (kind == 'O') return "holds Python objects, which are never read" + wanted;
    if (kind == 'c') return "holds complex numbers" + wanted;
    if (kind == 'U' || kind == 'S' || kind == 'a') return "holds text" + wanted;
    return "holds elements of type " + in_quotes(type) + wanted;
}

/// Puts the values of a Fortran-ordered array (first axis fastest) into row-major order.
void to_row_major(NpyArray& array)
{
    if (array.shape.size() < 2 || array.values.empty()) return;
    std::vector<std::size_t> stride(array.shape.size(), 1);
    for (std::size_t axis = 1; axis < stride.size(); ++axis)
        stride[axis] = stride[axis - 1] * static_cast<std::size_t>(array.shape[axis - 1]);
    std::vector<double> out(array.values.size());
    std::vector<std::int64_t> index(array.shape.size(), 0);
    std::size_t position = 0;
    for (double& value : out) {
        value = array.values[position];
        for (std::size_t axis = index.size(); axis-- > 0;) {
            position += stride[axis];
            if (++index[axis] < array.shape[axis]) break;
            position -= stride[axis] * static_cast<std::size_t>(array.shape[axis]);
            index[axis] = 0;
        }
    }
    array.values = std::move(out);
}

static_assert(std::endian::native == std::endian::little, "arrays are written as they stand in memory");

/// All that stands before the values.
std::string start_of(std::string_view type, std::span<const std::int64_t> shape)
{
    std::string header = "{'descr': '" + std::string(type) + "', 'fortran_order': False, 'shape': (";
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
        header += std::to_string(shape[axis]) + (axis + 1 < shape.size() ? ", "
                                                 : shape.size() == 1     ? ","
                                                                         : "");
    header += "), }";
    constexpr std::size_t before = 10;
    constexpr std::size_t alignment = 64; // of the data in the file, as NumPy writes it
    header.append((alignment - (before + header.size() + 1) % alignment) % alignment, ' ');
    header += '\n';

    std::string out(magic);
    out += '\x01';
    out += '\0';
    out += static_cast<char>(header.size() & 0xffu);
    out += static_cast<char>(header.size() >> 8u);
    return out + header;
}

template <class T>
std::string bytes_of(std::string_view type, std::span<const std::int64_t> shape, std::span<const T> values)
{
    std::string out = start_of(type, shape);
    if (!values.empty()) {
        const std::size_t begin = out.size();
        out.resize(begin + values.size_bytes());
        std::memcpy(out.data() + begin, values.data(), values.size_bytes());
    }
    return out;
}

} // namespace

Result<NpyArray> read_npy(const ByteSource& source)
{
    std::uint64_t offset = 0;
    auto header = read_npy_header(source, offset);
    if (!header) return header.error();
    const std::string& type = header->type;
    const char order = type.empty() ? '\0' : type.front();
    const ElementType* element =
        std::string_view("<>=|").find(order) == std::string_view::npos || type.size() < 2
            ? nullptr
            : find_element_type(std::string_view(type).substr(1));
    if (element == nullptr) return unsupported(source, type_refusal(type));
    if (order == '|' && element->size > 1)
        return corrupt(source,
                       "has elements of type " + in_quotes(type) + ", which leaves the byte order open");
    const bool swap = order == (std::endian::native == std::endian::little ? '>' : '<');

    const auto count = element_count(header->shape);
    const auto bytes = count ? checked_multiply(*count, element->size) : std::nullopt;
    if (!bytes || *bytes > source.size() - offset)
        return corrupt(
            source, "claims an array of shape " + shape_text(header->shape) + " and type " + in_quotes(type) +
                        ", " + (bytes ? std::to_string(*bytes) : std::string("more than 2^64")) +
                        " bytes, but only " + std::to_string(source.size() - offset) + " follow its header");

    NpyArray array;
    array.shape = std::move(header->shape);
    try {
        array.values.resize(static_cast<std::size_t>(*count));
        constexpr std::size_t block_elements = 131072;
        std::vector<std::byte> block(std::min(block_elements, array.values.size()) * element->size);
        for (std::size_t done = 0; done < array.values.size(); done += block_elements) {
            const std::size_t now = std::min(block_elements, array.values.size() - done);
            if (auto got =
                    source.read(offset + done * element->size, std::span(block).first(now * element->size));
                !got)
                return got.error();
            for (std::size_t n = 0; n < now; ++n)
                array.values[done + n] = element->convert(block.data() + n * element->size, swap);
        }
        if (header->fortran_order) to_row_major(array);
    } catch (const std::bad_alloc&) {
        return Error{ErrorCode::out_of_memory,
                     "there is not enough memory for the " + std::to_string(*count) + " numbers of " +
                         in_quotes(source.name()),
                     "reading a .npy file"};
    }
    return array;
}

std::string npy_bytes(std::span<const std::int64_t> shape, std::span<const float> values)
{
    return bytes_of("<f4", shape, values);
}

std::string npy_bytes(std::span<const std::int64_t> shape, std::span<const double> values)
{
    return bytes_of("<f8", shape, values);
}

Result<void> write_npy(const std::filesystem::path& path, const HostTensor& tensor)
{
    return write_atomically(path, npy_bytes(tensor.shape(), tensor.values()));
}

Result<void> write_tensor_npy(const std::filesystem::path& path, const Checkpoint& checkpoint,
                              std::string_view name, const RunContext& ctx)
{
    const ReadingScope scope(ctx);
    const TensorInfo* info = checkpoint.find(name);
    if (info == nullptr)
        return Error{ErrorCode::not_found,
                     in_quotes(checkpoint.weights_name()) + " has no tensor " + in_quotes(name),
                     "writing a .npy file"};
    const std::int64_t length = info->shape.empty() ? 1 : info->shape.back();
    std::int64_t rows = 1;
    for (std::size_t axis = 0; axis + 1 < info->shape.size(); ++axis) rows *= info->shape[axis];
    constexpr std::int64_t values_at_once = 2'000'000;
    const std::int64_t at_once =
        std::max<std::int64_t>(1, values_at_once / std::max<std::int64_t>(1, length));
    return write_atomically(path, [&](const ByteSink& sink) -> Result<void> {
        if (auto done = sink(start_of("<f4", info->shape)); !done) return done;
        std::vector<std::int64_t> part;
        for (std::int64_t first = 0; first < rows && length > 0; first += at_once) {
            if (ctx.cancelled()) return cancelled_error("writing a tensor");
            part.resize(static_cast<std::size_t>(std::min(at_once, rows - first)));
            std::iota(part.begin(), part.end(), first);
            const auto tensor = checkpoint.read_rows(name, part);
            if (!tensor) return tensor.error();
            const auto values = tensor->values();
            if (auto done = sink({reinterpret_cast<const char*>(values.data()), values.size_bytes()}); !done)
                return done;
            ctx.report({"tensor", static_cast<std::size_t>(std::min(first + at_once, rows)),
                        static_cast<std::size_t>(rows)});
        }
        return {};
    });
}

} // namespace posiscope::core
