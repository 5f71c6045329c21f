// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace posiscope::core {

/// Goes once through a JSON text and hands out what is asked for. The tokenizer of a large model has half a million
/// values of which a quarter is of interest: a tree of them would take longer than all the rest of opening it.
/// The first fault is kept, and everything after it is refused. The text must be UTF-8.
class JsonScanner {
public:
    explicit JsonScanner(std::string_view text) : m_text(text) {}

    /// The kind of the next value by its first character: '{' '[' '"' 't' 'f' 'n', '0' for a number, 0 at a fault.
    char next();

    /// Calls visit(key) before each value of an object; it must take or skip the value.
    template <class Visit>
    bool object(Visit visit)
    {
        if (!enter('{')) return false;
        std::string key;
        for (bool first = true; another('}', first); first = false) {
            if (!text(key) || !take(':')) return false;
            visit(key);
        }
        return leave();
    }
    /// Calls visit() before each value of an array; it must take or skip the value.
    template <class Visit>
    bool array(Visit visit)
    {
        if (!enter('[')) return false;
        for (bool first = true; another(']', first); first = false) visit();
        return leave();
    }
    bool text(std::string& out);
    /// A whole number that fits. A number with a fraction or too many digits is skipped and gives false, no fault.
    bool integer(std::int64_t& out);
    /// true and false; other values are skipped and give false.
    bool flag();
    void skip();

    /// Nothing but blanks is left.
    bool at_end();
    [[nodiscard]] bool ok() const { return !m_failed; }
    /// Byte where it went wrong.
    [[nodiscard]] std::size_t position() const { return m_at; }

private:
    void skip_blanks();
    bool fail();
    bool take(char expected);
    bool enter(char open);
    bool another(char close, bool first);
    bool leave();
    std::string_view number();
    bool skip_text();
    bool word(std::string_view expected);
    bool escape(std::string& out);
    bool four_digits(std::uint32_t& out);

    static constexpr int deepest_nesting = 64;
    std::string_view m_text;
    std::size_t m_at = 0;
    int m_depth = 0;
    bool m_failed = false;
};

} // namespace posiscope::core
