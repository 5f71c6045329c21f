// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/vocabularies/word_mark.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "core/base/text.h"

namespace posiscope::core {
namespace {

constexpr std::string_view byte_level_mark = "\u0120"; // the blank of GPT-2's alphabet of bytes
constexpr std::string_view sentencepiece_mark = "\u2581";
constexpr std::string_view ellipsis = "\u2026";

struct MarkText {
    WordMark mark;
    std::string_view text;
    bool at_end;
};

constexpr MarkText mark_texts[]{
    {WordMark::continuation, "##", false},      {WordMark::byte_level, byte_level_mark, false},
    {WordMark::sentencepiece, "\u2581", false}, {WordMark::blank, " ", false},
    {WordMark::end_of_word, "</w>", true},      {WordMark::continued, "@@", true},
};

const MarkText* text_of(WordMark mark)
{
    for (const MarkText& candidate : mark_texts)
        if (candidate.mark == mark) return &candidate;
    return nullptr;
}

bool carries(std::string_view text, const MarkText& mark)
{
    return mark.at_end ? text.ends_with(mark.text) : text.starts_with(mark.text);
}

std::string_view cut(std::string_view text, const MarkText& mark)
{
    if (!carries(text, mark)) return text;
    return mark.at_end ? text.substr(0, text.size() - mark.text.size()) : text.substr(mark.text.size());
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to)
{
    std::string out;
    for (;;) {
        const std::size_t at = text.find(from);
        out += text.substr(0, at);
        if (at == std::string_view::npos) return out;
        out += to;
        text.remove_prefix(at + from.size());
    }
}

/// GPT-2's alphabet: bytes that print stand for themselves, the other 68 are the characters from U+0100 on, in order.
/// Source: Radford et al. 2019, released code.
struct ByteAlphabet {
    std::array<std::uint16_t, 256> characters{}; ///< of each byte
    std::array<std::int16_t, 256 + 68> bytes{};  ///< of each character, -1: none

    ByteAlphabet()
    {
        bytes.fill(-1);
        std::uint16_t next = 256;
        for (std::uint16_t byte = 0; byte < 256; ++byte) {
            const bool prints = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
            characters[byte] = prints ? byte : next++;
            bytes[characters[byte]] = static_cast<std::int16_t>(byte);
        }
    }
};

const ByteAlphabet& byte_alphabet()
{
    static const ByteAlphabet alphabet;
    return alphabet;
}

/// The bytes that a text in GPT-2's alphabet stands for; nothing where a character is not of the alphabet.
std::optional<std::string> bytes_of(std::string_view text)
{
    const ByteAlphabet& alphabet = byte_alphabet();
    std::string out;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const auto lead = static_cast<unsigned char>(text[at]);
        std::size_t character = lead;
        if (lead >= 0x80) {
            // The alphabet ends below U+0800: two bytes each.
            if ((lead & 0xE0u) != 0xC0u || at + 1 >= text.size()) return std::nullopt;
            character = (lead & 0x1Fu) << 6u | (static_cast<unsigned char>(text[++at]) & 0x3Fu);
        }
        if (character >= alphabet.bytes.size() || alphabet.bytes[character] < 0) return std::nullopt;
        out += static_cast<char>(alphabet.bytes[character]);
    }
    return out;
}

std::string in_byte_alphabet(std::string_view bytes)
{
    std::string out;
    for (const char byte : bytes) {
        const std::uint16_t character = byte_alphabet().characters[static_cast<unsigned char>(byte)];
        if (character < 0x80) {
            out += static_cast<char>(character);
        } else {
            out += static_cast<char>(0xC0u | character >> 6u);
            out += static_cast<char>(0x80u | (character & 0x3Fu));
        }
    }
    return out;
}

/// What a piece spells, its mark taken off.
std::string spelled(std::string_view piece, WordMark mark)
{
    if (mark == WordMark::byte_level) {
        if (auto bytes = bytes_of(piece)) return *std::move(bytes);
    } else if (mark == WordMark::sentencepiece) {
        return replaced(piece, sentencepiece_mark, " ");
    }
    return std::string(piece);
}

/// "[unused17]" for ("[unused", "]").
bool is_numbered(std::string_view text, std::string_view begin, std::string_view end)
{
    if (text.size() <= begin.size() + end.size() || !text.starts_with(begin) || !text.ends_with(end))
        return false;
    const auto number = text.substr(begin.size(), text.size() - begin.size() - end.size());
    return number.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_byte(std::string_view text)
{
    return text.size() == 6 && text.starts_with("<0x") && text.back() == '>' &&
           text.substr(3, 2).find_first_not_of("0123456789ABCDEFabcdef") == std::string_view::npos;
}

} // namespace

WordMark find_word_mark(std::span<const Vocabulary::Entry> entries)
{
    std::array<std::size_t, std::size(mark_texts)> counts{};
    std::size_t texts = 0;
    for (const Vocabulary::Entry& entry : entries) {
        if (entry.text.empty()) continue;
        ++texts;
        for (std::size_t m = 0; m < counts.size(); ++m)
            if (entry.text.size() > mark_texts[m].text.size() && carries(entry.text, mark_texts[m]))
                ++counts[m];
    }
    const auto most = std::max_element(counts.begin(), counts.end());
    if (*most == 0 || *most * 200 < texts) return WordMark::none;
    return mark_texts[static_cast<std::size_t>(most - counts.begin())].mark;
}

bool begins_word(std::string_view text, WordMark mark)
{
    const MarkText* found = text_of(mark);
    if (found == nullptr) return true;
    const bool mark_wanted = mark != WordMark::continuation && mark != WordMark::continued;
    if (carries(text, *found) != mark_wanted) return false;
    const std::string word = spelled(cut(text, *found), mark);
    return !trimmed(word).empty() && is_utf8(word);
}

bool is_placeholder(std::string_view text)
{
    return is_byte(text) || is_numbered(text, "[unused", "]") || is_numbered(text, "<unused", ">") ||
           is_numbered(text, "<extra_id_", ">") || is_numbered(text, "madeupword", "");
}

std::string without_mark(std::string_view text, WordMark mark)
{
    const MarkText* found = text_of(mark);
    if (found == nullptr || mark == WordMark::continuation) return std::string(text);
    const bool carried = carries(text, *found);
    std::string word = spelled(cut(text, *found), mark);
    if (mark == WordMark::continued) return carried ? word + std::string(ellipsis) : word;
    if (carried) return word;
    return found->at_end ? word + std::string(ellipsis) : std::string(ellipsis) + word;
}

std::string with_mark(std::string_view word, WordMark mark)
{
    const MarkText* found = text_of(mark);
    if (found == nullptr || mark == WordMark::continuation || mark == WordMark::continued)
        return std::string(word);
    const std::string piece = mark == WordMark::byte_level      ? in_byte_alphabet(word)
                              : mark == WordMark::sentencepiece ? replaced(word, " ", sentencepiece_mark)
                                                                : std::string(word);
    return found->at_end ? piece + std::string(found->text) : std::string(found->text) + piece;
}

} // namespace posiscope::core
