// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/text.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace posiscope::core {
namespace {

/// Length of the well-formed UTF-8 sequence at `at` and its code point; 0 where there is none.
std::size_t decode(std::string_view text, std::size_t at, std::uint32_t& code_point)
{
    const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[at + k]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) {
        code_point = lead;
        return 1;
    }
    std::size_t length = 0;
    if (lead >= 0xC2 && lead <= 0xDF)
        length = 2;
    else if (lead >= 0xE0 && lead <= 0xEF)
        length = 3;
    else if (lead >= 0xF0 && lead <= 0xF4)
        length = 4;
    if (length == 0 || at + length > text.size()) return 0;
    code_point = lead & (0x7Fu >> length);
    for (std::size_t k = 1; k < length; ++k) {
        if ((byte(k) & 0xC0u) != 0x80u) return 0;
        code_point = (code_point << 6u) | (byte(k) & 0x3Fu);
    }
    constexpr std::array<std::uint32_t, 5> smallest{0, 0, 0x80, 0x800, 0x10000};
    if (code_point < smallest[length] || code_point > 0x10FFFF) return 0;
    if (code_point >= 0xD800 && code_point <= 0xDFFF) return 0;
    return length;
}

bool is_unsafe(std::uint32_t code_point)
{
    return code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0) || code_point == 0x061C ||
           (code_point >= 0x200B && code_point <= 0x200F) || (code_point >= 0x2028 && code_point <= 0x202E) ||
           (code_point >= 0x2066 && code_point <= 0x2069) || code_point == 0xFEFF;
}

} // namespace

std::string printable(std::string_view text, std::size_t max_length)
{
    std::string out;
    std::array<char, 16> escape{};
    for (std::size_t at = 0; at < text.size();) {
        if (out.size() >= max_length) return out + "...";
        std::uint32_t code_point = 0;
        const std::size_t length = decode(text, at, code_point);
        if (length == 0) {
            std::snprintf(escape.data(), escape.size(), "\\x%02X", static_cast<unsigned char>(text[at]));
            out += escape.data();
            ++at;
        } else if (is_unsafe(code_point)) {
            if (code_point < 0x80)
                std::snprintf(escape.data(), escape.size(), "\\x%02X", code_point);
            else
                std::snprintf(escape.data(), escape.size(), "\\u{%04X}", code_point);
            out += escape.data();
            at += length;
        } else {
            out += text.substr(at, length);
            at += length;
        }
    }
    return out;
}

std::string in_quotes(std::string_view text, std::size_t max_length)
{
    return "'" + printable(text, max_length) + "'";
}

bool is_utf8(std::string_view text)
{
    std::uint32_t code_point = 0;
    for (std::size_t at = 0; at < text.size();) {
        // ASCII in runs of eight: most of a vocabulary is that.
        std::uint64_t eight = 0;
        constexpr std::uint64_t beyond_ascii = 0x8080808080808080u;
        if (text.size() - at >= sizeof eight) {
            std::memcpy(&eight, text.data() + at, sizeof eight);
            if ((eight & beyond_ascii) == 0) {
                at += sizeof eight;
                continue;
            }
        }
        const std::size_t length = decode(text, at, code_point);
        if (length == 0) return false;
        at += length;
    }
    return true;
}

std::vector<std::string_view> split(std::string_view text, char separator)
{
    std::vector<std::string_view> parts;
    for (;;) {
        const std::size_t at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == std::string_view::npos) return parts;
        text.remove_prefix(at + 1);
    }
}

std::string_view trimmed(std::string_view text)
{
    constexpr std::string_view blanks = " \t\r\n";
    const std::size_t first = text.find_first_not_of(blanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::string join_for_message(const std::vector<std::string>& items, std::size_t most)
{
    std::string out;
    const std::size_t shown = items.size() > most ? most : items.size();
    for (std::size_t n = 0; n < shown; ++n) {
        if (n > 0) out += (n + 1 == items.size()) ? " and " : ", ";
        out += items[n];
    }
    if (shown < items.size()) out += " and " + std::to_string(items.size() - shown) + " more";
    return out;
}

std::string counted(std::size_t count, std::string_view singular, std::string_view plural)
{
    return std::to_string(count) + " " + std::string(count == 1 ? singular : plural);
}

} // namespace posiscope::core
