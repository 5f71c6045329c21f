// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/vocabularies/json_scanner.h"

#include <array>
#include <charconv>

namespace posiscope::core {
namespace {

void append_utf8(std::string& out, std::uint32_t code_point)
{
    const auto tail = [&](unsigned shift) {
        out += static_cast<char>(0x80u | (code_point >> shift & 0x3Fu));
    };
    if (code_point < 0x80) {
        out += static_cast<char>(code_point);
    } else if (code_point < 0x800) {
        out += static_cast<char>(0xC0u | code_point >> 6u);
        tail(0);
    } else if (code_point < 0x10000) {
        out += static_cast<char>(0xE0u | code_point >> 12u);
        tail(6);
        tail(0);
    } else {
        out += static_cast<char>(0xF0u | code_point >> 18u);
        tail(12);
        tail(6);
        tail(0);
    }
}

bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/// Ends the run of plain characters of a string: quotes, backslash, control characters.
bool ends_run(char c)
{
    return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20;
}

} // namespace

bool JsonScanner::fail()
{
    m_failed = true;
    return false;
}

void JsonScanner::skip_blanks()
{
    while (m_at < m_text.size() &&
           (m_text[m_at] == ' ' || m_text[m_at] == '\n' || m_text[m_at] == '\t' || m_text[m_at] == '\r'))
        ++m_at;
}

char JsonScanner::next()
{
    skip_blanks();
    if (m_failed || m_at >= m_text.size()) return 0;
    const char c = m_text[m_at];
    return c == '-' || is_digit(c) ? '0' : c;
}

bool JsonScanner::take(char expected)
{
    skip_blanks();
    if (m_failed || m_at >= m_text.size() || m_text[m_at] != expected) return fail();
    ++m_at;
    return true;
}

bool JsonScanner::enter(char open)
{
    if (!take(open)) return false;
    return ++m_depth <= deepest_nesting || fail();
}

bool JsonScanner::another(char close, bool first)
{
    skip_blanks();
    if (m_failed || m_at >= m_text.size()) return fail();
    if (m_text[m_at] == close) {
        ++m_at;
        return false;
    }
    return first || take(',');
}

bool JsonScanner::leave()
{
    --m_depth;
    return !m_failed;
}

bool JsonScanner::four_digits(std::uint32_t& out)
{
    if (m_at + 4 > m_text.size()) return fail();
    const char* begin = m_text.data() + m_at;
    const auto [end, fault] = std::from_chars(begin, begin + 4, out, 16);
    if (fault != std::errc{} || end != begin + 4) return fail();
    m_at += 4;
    return true;
}

bool JsonScanner::escape(std::string& out)
{
    ++m_at; // the backslash
    if (m_at >= m_text.size()) return fail();
    const char c = m_text[m_at++];
    constexpr std::string_view letters = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
    if (const std::size_t which = letters.find(c); which != std::string_view::npos) {
        out += meant[which];
        return true;
    }
    std::uint32_t code_point = 0;
    if (c != 'u' || !four_digits(code_point)) return fail();
    if (code_point >= 0xD800 && code_point < 0xDC00 && m_text.substr(m_at, 2) == "\\u") {
        m_at += 2;
        std::uint32_t low = 0;
        if (!four_digits(low) || low < 0xDC00 || low >= 0xE000) return fail();
        code_point = 0x10000 + ((code_point - 0xD800) << 10u) + (low - 0xDC00);
    }
    if (code_point >= 0xD800 && code_point < 0xE000) return fail(); // half of a pair
    append_utf8(out, code_point);
    return true;
}

bool JsonScanner::text(std::string& out)
{
    out.clear();
    if (!take('"')) return false;
    for (;;) {
        const std::size_t begin = m_at;
        while (m_at < m_text.size() && !ends_run(m_text[m_at])) ++m_at;
        out.append(m_text, begin, m_at - begin);
        if (m_at >= m_text.size()) return fail();
        if (m_text[m_at] == '"') break;
        if (m_text[m_at] != '\\' || !escape(out)) return fail();
    }
    ++m_at;
    return true;
}

bool JsonScanner::skip_text()
{
    if (!take('"')) return false;
    std::string unused;
    for (;;) {
        while (m_at < m_text.size() && !ends_run(m_text[m_at])) ++m_at;
        if (m_at >= m_text.size()) return fail();
        if (m_text[m_at] == '"') break;
        unused.clear();
        if (m_text[m_at] != '\\' || !escape(unused)) return fail();
    }
    ++m_at;
    return true;
}

std::string_view JsonScanner::number()
{
    skip_blanks();
    const std::size_t begin = m_at;
    const auto digits = [&] {
        const std::size_t from = m_at;
        while (m_at < m_text.size() && is_digit(m_text[m_at])) ++m_at;
        return m_at > from || fail();
    };
    const auto has = [&](std::string_view any) {
        return m_at < m_text.size() && any.find(m_text[m_at]) != std::string_view::npos;
    };
    if (has("-")) ++m_at;
    if (!digits()) return {};
    if (has(".")) {
        ++m_at;
        if (!digits()) return {};
    }
    if (has("eE")) {
        ++m_at;
        if (has("+-")) ++m_at;
        if (!digits()) return {};
    }
    return m_text.substr(begin, m_at - begin);
}

bool JsonScanner::integer(std::int64_t& out)
{
    if (next() != '0') {
        skip();
        return false;
    }
    const std::string_view digits = number();
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
    return ok() && fault == std::errc{} && end == digits.data() + digits.size();
}

bool JsonScanner::word(std::string_view expected)
{
    if (m_text.substr(m_at, expected.size()) != expected) return fail();
    m_at += expected.size();
    return true;
}

bool JsonScanner::flag()
{
    const bool is_true = next() == 't';
    skip();
    return is_true && ok();
}

void JsonScanner::skip()
{
    switch (next()) {
    case '{':
        if (!enter('{')) return;
        for (bool first = true; another('}', first); first = false) {
            if (!skip_text() || !take(':')) return;
            skip();
        }
        leave();
        return;
    case '[': array([&] { skip(); }); return;
    case '"': skip_text(); return;
    case '0': number(); return;
    case 't': word("true"); return;
    case 'f': word("false"); return;
    case 'n': word("null"); return;
    default: fail();
    }
}

bool JsonScanner::at_end()
{
    skip_blanks();
    return ok() && m_at == m_text.size();
}

} // namespace posiscope::core
