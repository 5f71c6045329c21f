// SPDX-License-Identifier: GPL-3.0-or-later
#include <charconv>
#include <optional>

#include "core/base/text.h"
#include "core/model/vocabularies/vocabulary_readers.h"

namespace posiscope::core {
namespace {

/// Calls visit(line, number from 0) for each line, without its end; false from it stops.
template <class Visit>
void for_each_line(std::string_view text, Visit visit)
{
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    for (std::int64_t number = 0; !text.empty(); ++number) {
        const std::size_t at = text.find('\n');
        std::string_view line = text.substr(0, at);
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (!visit(line, number) || at == std::string_view::npos) return;
        text.remove_prefix(at + 1);
    }
}

std::optional<std::int64_t> whole_number(std::string_view text)
{
    std::int64_t number = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (fault != std::errc{} || end != text.data() + text.size() || number < 0) return std::nullopt;
    return number;
}

std::string unescaped(std::string_view text)
{
    constexpr std::string_view letters = "\"\\nrt", meant = "\"\\\n\r\t";
    std::string out;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const std::size_t which =
            text[at] == '\\' && at + 1 < text.size() ? letters.find(text[at + 1]) : std::string_view::npos;
        out += which == std::string_view::npos ? text[at] : meant[which];
        if (which != std::string_view::npos) ++at;
    }
    return out;
}

Error line_error(const std::string& file, std::int64_t number, const std::string& what)
{
    return Error{ErrorCode::corrupt_file,
                 in_quotes(file) + ", line " + std::to_string(number + 1) + ": " + what, "vocabulary"};
}

} // namespace

Result<void> read_tsv_words(const VocabularyBytes& source, WordTable& table)
{
    std::optional<Error> fault;
    for_each_line(source.bytes, [&](std::string_view line, std::int64_t number) {
        if (number == 0) return true;
        const auto parts = split(line, '\t');
        const auto row = whole_number(parts.front()), id = whole_number(parts.back());
        if (parts.size() != 3 || !row || !id || *row >= table.rows())
            fault = line_error(source.file, number,
                               "a row below " + std::to_string(table.rows()) +
                                   ", a token and an id were expected");
        else if (!table.place_cut(*row, *id, unescaped(parts[1])))
            fault = line_error(source.file, number, "row " + std::to_string(*row) + " was listed before");
        return !fault;
    });
    if (fault) return *fault;
    return {};
}

Result<void> read_line_words(const VocabularyBytes& source, WordTable& table)
{
    for_each_line(source.bytes, [&](std::string_view line, std::int64_t number) {
        table.place(number, line);
        return true;
    });
    return {};
}

Result<void> read_gguf_words(const VocabularyBytes& source, WordTable& table)
{
    std::optional<Error> fault;
    for_each_line(source.bytes, [&](std::string_view line, std::int64_t number) {
        const std::size_t tab = line.find('\t');
        const auto type = whole_number(line.substr(0, tab));
        if (tab == std::string_view::npos || !type)
            fault = line_error(source.file, number, "a type and a token were expected");
        else
            table.place(number, unescaped(line.substr(tab + 1)),
                        use_of_piece_type(static_cast<std::uint64_t>(*type)));
        return !fault;
    });
    if (fault) return *fault;
    return {};
}

Result<void> read_fairseq_words(const VocabularyBytes& source, WordTable& table)
{
    std::int64_t next = 0;
    for (const std::string_view special : {"<s>", "<pad>", "</s>", "<unk>"})
        table.place(next++, special, TokenUse::special);
    std::optional<Error> fault;
    for_each_line(source.bytes, [&](std::string_view line, std::int64_t number) {
        constexpr std::string_view flag = " #fairseq:overwrite";
        if (line.ends_with(flag)) line.remove_suffix(flag.size());
        const std::size_t blank = line.rfind(' ');
        if (blank == std::string_view::npos || !whole_number(line.substr(blank + 1)))
            fault = line_error(source.file, number, "a word and a count were expected");
        else
            table.place(next++, line.substr(0, blank));
        return !fault;
    });
    if (fault) return *fault;
    return {};
}

} // namespace posiscope::core
