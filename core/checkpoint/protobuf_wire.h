// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/checkpoint/byte_stream.h"

namespace posiscope::core {

/// One field of a protocol buffer message as it stands in a file; the content of a length-delimited field is not read.
struct WireField {
    std::uint32_t number = 0;
    enum class Kind { varint, fixed64, bytes, fixed32 } kind = Kind::varint;
    std::uint64_t value = 0; ///< of varint, fixed64 and fixed32
    std::uint64_t begin = 0; ///< of bytes: where they are
    std::uint64_t size = 0;
};

/// Walks over the fields of one message in a source, without its schema: large contents are passed over.
/// Source: "Protocol Buffers: Encoding". Groups (wire types 3 and 4) are refused; the formats read here have none.
class WireReader {
public:
    WireReader(const ByteSource& source, std::uint64_t begin, std::uint64_t end)
        : m_stream(source, begin), m_end(end)
    {
    }

    /// The next field, or nothing at the end and after a fault.
    std::optional<WireField> next()
    {
        if (!m_fault.empty() || m_stream.position() == m_end) return std::nullopt;
        const auto key = varint();
        if (!key) return std::nullopt;
        WireField field;
        field.number = static_cast<std::uint32_t>(*key >> 3u);
        if (field.number == 0 || *key >> 32u != 0)
            return refuse("has a field with the number 0 or above 2^29");
        switch (*key & 7u) {
        case 0: {
            const auto value = varint();
            if (!value) return std::nullopt;
            field.value = *value;
            return field;
        }
        case 1:
        case 5: {
            const bool wide = (*key & 7u) == 1;
            field.kind = wide ? WireField::Kind::fixed64 : WireField::Kind::fixed32;
            const std::uint64_t size = wide ? 8 : 4;
            const auto value = left() < size ? std::nullopt : m_stream.number(static_cast<int>(size));
            if (!value) return refuse("ends within a number; the file is cut short");
            field.value = *value;
            return field;
        }
        case 2: {
            field.kind = WireField::Kind::bytes;
            const auto size = varint();
            if (!size) return std::nullopt;
            if (*size > left())
                return refuse("has a field of " + std::to_string(*size) + " bytes, but " +
                              std::to_string(left()) + " are left");
            field.begin = m_stream.position();
            field.size = *size;
            m_stream.skip(*size);
            return field;
        }
        default:
            return refuse("has a field of the wire type " + std::to_string(*key & 7u) +
                          ", which is not known");
        }
    }

    /// The next bare varint (packed lists of numbers are nothing else).
    std::optional<std::uint64_t> varint()
    {
        std::uint64_t value = 0;
        for (unsigned n = 0; n < 10; ++n) {
            const auto byte = left() > 0 ? m_stream.next() : std::nullopt;
            if (!byte) {
                refuse("ends within a number; the file is cut short");
                return std::nullopt;
            }
            value |= static_cast<std::uint64_t>(*byte & 0x7Fu) << (7 * n);
            if ((*byte & 0x80u) == 0) return value;
        }
        refuse("has a number of more than ten bytes");
        return std::nullopt;
    }

    /// The text of a field, cut after `longest` bytes.
    static std::string text(const ByteSource& source, const WireField& field, std::size_t longest = 4'096)
    {
        std::string out(static_cast<std::size_t>(std::min<std::uint64_t>(field.size, longest)), '\0');
        if (!source.read(field.begin, std::as_writable_bytes(std::span(out)))) out.clear();
        return out;
    }

    [[nodiscard]] bool at_end() const { return m_stream.position() >= m_end; }
    /// What is wrong with the message, to follow "it "; empty: nothing so far.
    [[nodiscard]] const std::string& fault() const { return m_fault; }

private:
    [[nodiscard]] std::uint64_t left() const { return m_end - m_stream.position(); }
    std::nullopt_t refuse(const std::string& what)
    {
        if (m_fault.empty()) m_fault = what;
        return std::nullopt;
    }

    ByteStream m_stream;
    std::uint64_t m_end;
    std::string m_fault;
};

} // namespace posiscope::core
