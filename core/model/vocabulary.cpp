// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/vocabulary.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/base/text.h"
#include "core/model/family_table.h"

namespace posiscope::core {
namespace {

constexpr std::uint64_t largest_vocabulary = 256'000'000;

std::vector<std::string_view> lines_of(std::string_view text)
{
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    auto lines = split(text, '\n');
    if (!lines.empty() && lines.back().empty()) lines.pop_back();
    for (std::string_view& line : lines)
        if (line.ends_with('\r')) line.remove_suffix(1);
    return lines;
}

/// Every row of the table with its own number as id and no text: what is left without a vocabulary.
std::vector<Vocabulary::Entry> plain_entries(std::int64_t rows)
{
    std::vector<Vocabulary::Entry> entries(static_cast<std::size_t>(rows));
    for (std::size_t row = 0; row < entries.size(); ++row)
        entries[row].id = entries[row].row = static_cast<std::int64_t>(row);
    return entries;
}

/// vocab.tsv of a cut checkpoint: a head line, then row, token, id in the original vocabulary.
Result<std::vector<Vocabulary::Entry>> read_tsv(std::string_view text, const std::string& file,
                                                std::int64_t rows, std::vector<std::string>&)
{
    std::vector<Vocabulary::Entry> entries;
    const auto lines = lines_of(text);
    for (std::size_t n = 1; n < lines.size(); ++n) {
        const auto parts = split(lines[n], '\t');
        Vocabulary::Entry entry;
        const auto number = [](std::string_view part, std::int64_t& out) {
            const auto [end, fault] = std::from_chars(part.data(), part.data() + part.size(), out);
            return fault == std::errc{} && end == part.data() + part.size() && out >= 0;
        };
        if (parts.size() != 3 || !number(parts[0], entry.row) || !number(parts[2], entry.id) ||
            entry.row >= rows)
            return Error{ErrorCode::corrupt_file,
                         in_quotes(file) + ", line " + std::to_string(n + 1) + ": a row below " +
                             std::to_string(rows) + ", a token and an id were expected",
                         "vocabulary"};
        entry.text = parts[1];
        entries.push_back(std::move(entry));
    }
    return entries;
}

/// vocab.txt: one token a line, the line's number is its id. Tables are often padded to a round number of rows, so
/// rows without a line stay, shown by id; lines without a row are left out.
Result<std::vector<Vocabulary::Entry>> read_lines(std::string_view text, const std::string& file,
                                                  std::int64_t rows, std::vector<std::string>& warnings)
{
    const auto lines = lines_of(text);
    auto entries = plain_entries(rows);
    if (lines.size() != entries.size())
        warnings.push_back(in_quotes(file) + " has " + counted(lines.size(), "word", "words") +
                           ", but the word table has " + std::to_string(rows) + " rows" +
                           (lines.size() < entries.size() ? "; the other rows are shown by id" : ""));
    for (std::size_t n = 0; n < entries.size(); ++n) {
        if (n < lines.size()) entries[n].text = lines[n];
        // A few rows more than words pad the table; many more mean that the vocabulary belongs to something else.
        else
            entries[n].drawable = 2 * lines.size() < entries.size();
    }
    return entries;
}

struct VocabularyFile {
    std::string_view name;
    Result<std::vector<Vocabulary::Entry>> (*read)(std::string_view text, const std::string& file,
                                                   std::int64_t rows, std::vector<std::string>& warnings);
};

/// In the order in which they are looked for.
constexpr VocabularyFile vocabulary_files[]{
    {"vocab.tsv", read_tsv},
    {"vocab.txt", read_lines},
};

Result<std::vector<Vocabulary::Entry>> read_file(const Checkpoint& checkpoint, const VocabularyFile& kind,
                                                 std::int64_t rows, std::vector<std::string>& warnings)
{
    const auto source = checkpoint.store().open(kind.name);
    if (!source) return source.error();
    const std::string file = (*source)->name();
    const auto text = (*source)->read_text(largest_vocabulary);
    if (!text) return text.error();
    if (!is_utf8(*text))
        return Error{ErrorCode::corrupt_file, in_quotes(file) + " is not UTF-8", "vocabulary"};
    auto entries = kind.read(*text, file, rows, warnings);
    if (!entries) return entries;
    std::unordered_map<std::string_view, std::int64_t> seen;
    std::vector<std::string> twice;
    for (const Vocabulary::Entry& entry : *entries) {
        if (entry.text.empty()) continue;
        if (const auto [at, added] = seen.emplace(entry.text, entry.id); !added)
            twice.push_back(in_quotes(entry.text, 40) + " for ids " + std::to_string(at->second) + " and " +
                            std::to_string(entry.id));
    }
    if (!twice.empty())
        warnings.push_back(in_quotes(file) + " lists words more than once: " + join_for_message(twice, 3) +
                           "; a typed word means the first");
    return entries;
}

} // namespace

Vocabulary::Vocabulary(std::vector<Entry> entries, bool has_texts)
    : m_entries(std::move(entries)), m_has_texts(has_texts)
{
    for (std::size_t n = 0; n < m_entries.size(); ++n) {
        m_by_id.emplace(m_entries[n].id, n);
        if (!m_entries[n].text.empty()) m_by_text.emplace(m_entries[n].text, n);
        if (m_entries[n].drawable) ++m_drawable;
    }
}

const Vocabulary::Entry* Vocabulary::find_id(std::int64_t id) const
{
    const auto at = m_by_id.find(id);
    return at == m_by_id.end() ? nullptr : &m_entries[at->second];
}

const Vocabulary::Entry* Vocabulary::find_text(std::string_view text) const
{
    const auto at = m_by_text.find(std::string(text));
    return at == m_by_text.end() ? nullptr : &m_entries[at->second];
}

std::string Vocabulary::shown(std::int64_t id) const
{
    const Entry* entry = find_id(id);
    if (entry == nullptr || entry->text.empty()) return "id " + std::to_string(id);
    return printable(entry->text, 40);
}

Vocabulary read_vocabulary(const Checkpoint& checkpoint, Architecture& architecture,
                           const ModelFamily& family, std::vector<std::string>& warnings)
{
    const std::int64_t rows = architecture.vocabulary_size;
    std::vector<Vocabulary::Entry> entries;
    bool has_texts = false;
    bool found = false;
    for (const VocabularyFile& kind : vocabulary_files) {
        auto read = read_file(checkpoint, kind, rows, warnings);
        if (!read && read.error().code == ErrorCode::not_found) continue;
        found = true;
        if (read)
            entries = *std::move(read);
        else
            warnings.push_back(read.error().message + "; words are shown by id");
        break;
    }
    if (!found) warnings.push_back("there is no vocabulary beside the weights; words are shown by id");
    has_texts =
        std::any_of(entries.begin(), entries.end(), [](const auto& entry) { return !entry.text.empty(); });
    if (!has_texts) entries = plain_entries(rows);
    family.apply_vocabulary(architecture, entries);
    for (Vocabulary::Entry& entry : entries)
        if (architecture.pad_token_id == entry.id) entry.drawable = false;
    return Vocabulary(std::move(entries), has_texts);
}

} // namespace posiscope::core
