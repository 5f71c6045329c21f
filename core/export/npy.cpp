// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/export/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/checked_math.h"
#include "core/base/text.h"
#include "core/export/atomic_file.h"

namespace posiscope::core {
namespace {

constexpr std::string_view magic("\x93NUMPY", 6);
/// Far above what any array of numbers needs; structured types, whose headers may be long, are refused anyway.
constexpr std::uint64_t longest_header = 65536;
constexpr std::string_view where = ".npy header";

struct NpyHeader {
    std::string type; ///< "<f8"
    bool fortran_order = false;
    Shape shape;
};

Error corrupt(const ByteSource& source, const std::string& what)
{
    return Error{ErrorCode::corrupt_file, in_quotes(source.name()) + " " + what, std::string(where)};
}

Error unsupported(const ByteSource& source, const std::string& what)
{
    return Error{ErrorCode::unsupported_format, in_quotes(source.name()) + " " + what, std::string(where)};
}

/// Reads the dictionary of a header: {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }. Knows strings,
/// True, False and tuples of whole numbers, and nothing else of Python.
class HeaderReader {
public:
    explicit HeaderReader(std::string_view text) : m_text(text) {}

    /// The header, or nothing where the text is not one. `structured` is set where the type is a list of fields.
    std::optional<NpyHeader> read(bool& structured)
    {
        NpyHeader header;
        bool has_type = false;
        bool has_order = false;
        bool has_shape = false;
        if (!take('{')) return std::nullopt;
        while (!take('}')) {
            const auto key = text();
            if (!key || !take(':')) return std::nullopt;
            if (*key == "descr" && !has_type) {
                structured = peek() == '[';
                const auto type = text();
                if (!type) return std::nullopt;
                header.type = *type;
                has_type = true;
            } else if (*key == "fortran_order" && !has_order) {
                const auto order = boolean();
                if (!order) return std::nullopt;
                header.fortran_order = *order;
                has_order = true;
            } else if (*key == "shape" && !has_shape) {
                if (!tuple(header.shape)) return std::nullopt;
                has_shape = true;
            } else {
                return std::nullopt;
            }
            if (!take(',') && peek() != '}') return std::nullopt;
        }
        skip_blanks();
        if (!m_text.empty() || !has_type || !has_order || !has_shape) return std::nullopt;
        return header;
    }

private:
    void skip_blanks()
    {
        while (!m_text.empty() && (m_text.front() == ' ' || m_text.front() == '\n' || m_text.front() == '\t'))
            m_text.remove_prefix(1);
    }

    char peek()
    {
        skip_blanks();
        return m_text.empty() ? '\0' : m_text.front();
    }

    bool take(char wanted)
    {
        if (peek() != wanted) return false;
        m_text.remove_prefix(1);
        return true;
    }

    std::optional<std::string> text()
    {
        const char quote = peek();
        if (quote != '\'' && quote != '"') return std::nullopt;
        const std::size_t end = m_text.find(quote, 1);
        if (end == std::string_view::npos) return std::nullopt;
        std::string out(m_text.substr(1, end - 1));
        m_text.remove_prefix(end + 1);
        return out;
    }

    std::optional<bool> boolean()
    {
        skip_blanks();
        for (const auto& [word, value] : {std::pair{std::string_view("True"), true}, {"False", false}})
            if (m_text.starts_with(word)) {
                m_text.remove_prefix(word.size());
                return value;
            }
        return std::nullopt;
    }

    bool tuple(Shape& shape)
    {
        if (!take('(')) return false;
        while (!take(')')) {
            std::int64_t size = 0;
            std::size_t digits = 0;
            skip_blanks();
            while (!m_text.empty() && m_text.front() >= '0' && m_text.front() <= '9') {
                if (++digits > 18) return false;
                size = size * 10 + (m_text.front() - '0');
                m_text.remove_prefix(1);
            }
            if (digits == 0) return false;
            if (!m_text.empty() && m_text.front() == 'L')
                m_text.remove_prefix(1); // long integers of Python 2
            shape.push_back(size);
            if (!take(',') && peek() != ')') return false;
        }
        return true;
    }

    std::string_view m_text;
};

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

/// Reads the header; leaves in `offset` where the data begin.
Result<NpyHeader> read_header(const ByteSource& source, std::uint64_t& offset)
{
    std::array<std::byte, 12> start{};
    const auto present = static_cast<std::size_t>(std::min<std::uint64_t>(source.size(), start.size()));
    if (auto got = source.read(0, std::span(start).first(present)); !got) return got.error();
    if (present < magic.size() || std::memcmp(start.data(), magic.data(), magic.size()) != 0)
        return unsupported(source, "is not a .npy file: it does not begin with the mark of NumPy arrays");
    if (present < 10)
        return corrupt(source, "ends within its header, after " + counted(present, "byte", "bytes"));

    const auto byte_at = [&](std::size_t n) { return std::to_integer<std::uint64_t>(start[n]); };
    const std::uint64_t version = byte_at(6);
    if (version < 1 || version > 3)
        return unsupported(source, "has .npy format version " + std::to_string(version) +
                                       "; versions 1 to 3 are read");
    std::uint64_t length = byte_at(8) | byte_at(9) << 8u;
    offset = 10;
    if (version > 1) {
        if (present < 12)
            return corrupt(source, "ends within its header, after " + counted(present, "byte", "bytes"));
        length |= byte_at(10) << 16u | byte_at(11) << 24u;
        offset = 12;
    }
    if (length > longest_header)
        return corrupt(source, "claims a header of " + std::to_string(length) + " bytes; at most " +
                                   std::to_string(longest_header) + " are expected");
    if (length > source.size() - offset)
        return corrupt(source, "claims a header of " + std::to_string(length) + " bytes, but only " +
                                   std::to_string(source.size() - offset) + " follow");
    std::string text(static_cast<std::size_t>(length), '\0');
    if (auto got = source.read(offset, std::as_writable_bytes(std::span(text))); !got) return got.error();
    offset += length;

    bool structured = false;
    auto header = HeaderReader(text).read(structured);
    if (structured)
        return unsupported(source, "holds structures of several fields; a map of real numbers was expected");
    if (!header) return corrupt(source, "has a header that is not that of an array: " + in_quotes(text, 100));
    return std::move(*header);
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

template <class T>
std::string bytes_of(std::string_view type, std::span<const std::int64_t> shape, std::span<const T> values)
{
    static_assert(std::endian::native == std::endian::little, "arrays are written as they stand in memory");
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
    out.reserve(before + header.size() + values.size_bytes());
    out += '\x01';
    out += '\0';
    out += static_cast<char>(header.size() & 0xffu);
    out += static_cast<char>(header.size() >> 8u);
    out += header;
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
    auto header = read_header(source, offset);
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

} // namespace posiscope::core
