// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/npy_header.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/text.h"

namespace posiscope::core {
namespace {

constexpr std::string_view magic("\x93NUMPY", 6);
/// Far above what any array of numbers needs; structured types, whose headers may be long, are refused anyway.
constexpr std::uint64_t longest_header = 65536;
constexpr std::string_view where = ".npy header";

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

} // namespace

Result<NpyHeader> read_npy_header(const ByteSource& source, std::uint64_t& offset)
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

} // namespace posiscope::core
