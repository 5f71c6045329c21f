// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/vocabulary.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/model/family_table.h"
#include "core/model/vocabularies/vocabulary_readers.h"
#include "core/model/vocabularies/word_mark.h"
#include "core/model/vocabularies/word_table.h"

namespace posiscope::core {
namespace {

/// Of text files; the largest that are published have 35 MB.
constexpr std::uint64_t largest_text = 128'000'000;
/// Of sentencepiece models; the largest that are published have 5 MB.
constexpr std::uint64_t largest_model = 32'000'000;

constexpr std::string_view every_stack;

struct VocabularyFile {
    std::string_view name;  ///< with "{key}": the text that the config has for this key
    std::string_view stack; ///< whose words it lists
    bool is_text;
    Result<void> (*read)(const VocabularyBytes& source, WordTable& table);
};

/// THE list of kinds of vocabulary files, in the order in which they are looked for.
constexpr VocabularyFile vocabulary_files[]{
    {"vocab.tsv", every_stack, true, read_tsv_words},
    {"tokenizer.ggml.tokens", every_stack, true, read_gguf_words},
    {"tokenizer.json", every_stack, true, read_tokenizer_words},
    {"vocab.json", every_stack, true, read_json_words},
    {"vocab.txt", every_stack, true, read_line_words},
    {"sentencepiece.bpe.model", every_stack, false, read_fairseq_sentencepiece_words},
    {"spiece.model", every_stack, false, read_sentencepiece_words},
    {"spm.model", every_stack, false, read_sentencepiece_words},
    {"tokenizer.model", every_stack, false, read_sentencepiece_words},
    {"dict.txt", every_stack, true, read_fairseq_words},
    {"dict.{source_lang}.txt", "encoder", true, read_fairseq_words},
    {"dict.{target_lang}.txt", "decoder", true, read_fairseq_words},
    {"source_vocab.txt", "encoder", true, read_line_words},
    {"target_vocab.txt", "decoder", true, read_line_words},
    {"target_vocab.json", "decoder", true, read_json_words},
};

/// A file that was read, or the fault of one that was there.
struct FoundWords {
    std::string name; ///< beside the weights
    std::string file; ///< for messages
    WordTable table;
};

/// A setting of the config, or of its part "task" (fairseq's newer files).
std::optional<std::string> setting(const Checkpoint& checkpoint, std::string_view key)
{
    const auto& root = checkpoint.config().root();
    const auto task = root.find("task");
    for (const auto* part : {&root, task != root.end() && task->is_object() ? &*task : &root})
        if (const auto at = part->find(key); at != part->end() && at->is_string())
            return at->get<std::string>();
    return std::nullopt;
}

/// The name of a kind of file beside this checkpoint; empty: there can be none.
std::string file_name(const Checkpoint& checkpoint, const VocabularyFile& kind)
{
    std::string name(kind.name);
    const std::size_t open = name.find('{'), close = name.find('}');
    if (open == std::string::npos) return name;
    const auto value = setting(checkpoint, name.substr(open + 1, close - open - 1));
    if (!value || !is_plain_file_name(*value)) return {};
    return name.replace(open, close + 1 - open, *value);
}

Result<FoundWords> read_file(const Checkpoint& checkpoint, const VocabularyFile& kind, std::int64_t rows)
{
    const std::string name = file_name(checkpoint, kind);
    if (name.empty()) return Error{ErrorCode::not_found, "the config names no such file", "vocabulary"};
    const auto source = checkpoint.store().open(name);
    if (!source) return source.error();
    const auto bytes = (*source)->read_text(kind.is_text ? largest_text : largest_model);
    if (!bytes) return bytes.error();
    FoundWords found{name, (*source)->name(), WordTable(rows)};
    if (kind.is_text && !is_utf8(*bytes))
        return Error{ErrorCode::corrupt_file, in_quotes(found.file) + " is not UTF-8", "vocabulary"};
    const auto model_type = checkpoint.config().optional_text("model_type");
    const VocabularyBytes vocabulary{*bytes, found.file,
                                     model_type && *model_type ? **model_type : std::string()};
    if (const auto read = kind.read(vocabulary, found.table); !read) return read.error();
    return found;
}

/// The first of the files for `stack` that can be read; a broken one is a warning, and the next one is tried.
std::optional<FoundWords> find_words(const Checkpoint& checkpoint, std::string_view stack, std::int64_t rows,
                                     std::vector<std::string>& faults)
{
    for (const VocabularyFile& kind : vocabulary_files) {
        if (kind.stack != stack) continue;
        auto found = read_file(checkpoint, kind, rows);
        if (found) return *std::move(found);
        if (found.error().code != ErrorCode::not_found) faults.push_back(found.error().message);
    }
    return std::nullopt;
}

/// Ids that the config gives a role: bos_token_id and its like.
std::vector<std::int64_t> special_ids_of_config(const Checkpoint& checkpoint)
{
    std::vector<std::int64_t> ids;
    for (const std::string_view role : {"bos", "eos", "pad", "cls", "sep", "mask", "unk", "decoder_start"})
        if (const auto id =
                checkpoint.config().optional_integer(std::string(role) + "_token_id", 0, INT64_MAX);
            id && *id)
            ids.push_back(**id);
    return ids;
}

void warn_of_size(const FoundWords& found, std::vector<std::string>& warnings)
{
    const std::size_t words = found.table.words();
    const auto rows = static_cast<std::size_t>(found.table.rows());
    if (!found.table.is_cut() && words != rows)
        warnings.push_back(in_quotes(found.file) + " has " + counted(words, "word", "words") +
                           ", but the word table has " + std::to_string(rows) + " rows" +
                           (words < rows ? "; the other rows are shown by id" : ""));
    if (const auto& twice = found.table.ids_twice(); !twice.empty()) {
        std::vector<std::string> ids;
        for (const std::int64_t id : twice) ids.push_back(std::to_string(id));
        warnings.push_back(in_quotes(found.file) + " gives several words the same id: " +
                           join_for_message(ids, 3) + "; the first of them is shown");
    }
}

void warn_of_repeated(const std::string& file, const Vocabulary& vocabulary,
                      std::vector<std::string>& warnings)
{
    std::vector<std::string> twice;
    for (const auto& [first, later] : vocabulary.repeated())
        twice.push_back(in_quotes(vocabulary.find_id(first)->text, 40) + " for ids " + std::to_string(first) +
                        " and " + std::to_string(later));
    if (!twice.empty())
        warnings.push_back(in_quotes(file) + " lists words more than once: " + join_for_message(twice, 3) +
                           "; a typed word means the first");
}

/// Why there are no words, and what would help.
std::string no_words(const Checkpoint& checkpoint)
{
    const FileStore& store = checkpoint.store();
    if (store.contains("source.spm"))
        return "'source.spm' lies beside the weights, but not the vocab.json that gives its pieces their "
               "ids; words are shown by id";
    std::vector<std::string> languages;
    for (const std::string& name : store.names())
        if (name.starts_with("dict.") && name.ends_with(".txt") && name.size() > 9)
            languages.push_back(in_quotes(name));
    if (languages.empty()) return "there is no vocabulary beside the weights; words are shown by id";
    return in_quotes(checkpoint.config().file_name()) +
           " has no 'source_lang' and 'target_lang' that tell which stack reads which of " +
           join_for_message(languages) + "; words are shown by id";
}

/// Entries of a table whose words are known, or not, with those marked that may not be drawn.
Vocabulary finished(std::optional<FoundWords> found, std::int64_t rows, const Checkpoint& checkpoint,
                    Architecture& architecture, const ModelFamily& family, std::vector<std::string>& warnings)
{
    if (found) {
        read_special_tokens(checkpoint.store(), found->table, warnings);
        warn_of_size(*found, warnings);
    }
    const std::size_t words = found ? found->table.words() : 0;
    auto entries = found && words > 0 ? found->table.take() : WordTable(rows).take();
    const WordMark mark = find_word_mark(entries);
    for (const std::int64_t id : special_ids_of_config(checkpoint))
        if (std::find(architecture.special_token_ids.begin(), architecture.special_token_ids.end(), id) ==
            architecture.special_token_ids.end())
            architecture.special_token_ids.push_back(id);
    std::unordered_set<std::int64_t> special(architecture.special_token_ids.begin(),
                                             architecture.special_token_ids.end());
    // A few rows more than words pad the table; many more mean that the vocabulary belongs to something else.
    const bool draw_unnamed = 2 * words < entries.size();
    for (Vocabulary::Entry& entry : entries) {
        entry.special = entry.special || special.contains(entry.id);
        entry.drawable =
            !entry.special && (entry.text.empty() ? draw_unnamed : begins_word(entry.text, mark));
        if (entry.special && special.insert(entry.id).second)
            architecture.special_token_ids.push_back(entry.id);
    }
    family.apply_vocabulary(architecture, entries);
    special = {architecture.special_token_ids.begin(), architecture.special_token_ids.end()};
    for (Vocabulary::Entry& entry : entries) {
        entry.special = entry.special || special.contains(entry.id);
        if (entry.special || architecture.pad_token_id == entry.id) entry.drawable = false;
    }
    std::sort(architecture.special_token_ids.begin(), architecture.special_token_ids.end());
    Vocabulary vocabulary(std::move(entries), mark, found && words > 0 ? found->name : std::string());
    if (found) warn_of_repeated(found->file, vocabulary, warnings);
    return vocabulary;
}

} // namespace

Vocabulary::Vocabulary(std::vector<Entry> entries, WordMark mark, std::string source)
    : m_entries(std::move(entries)), m_mark(mark), m_source(std::move(source))
{
    std::size_t slots = 16;
    while (slots < 2 * m_entries.size()) slots *= 2;
    m_by_text.assign(slots, 0);
    m_by_id.reserve(m_entries.size());
    for (std::size_t n = 0; n < m_entries.size(); ++n) {
        const Entry& entry = m_entries[n];
        m_by_id.emplace_back(entry.id, n);
        if (entry.drawable) ++m_drawable;
        if (entry.text.empty()) continue;
        m_has_texts = true;
        std::size_t slot = std::hash<std::string_view>{}(entry.text) & (slots - 1);
        while (m_by_text[slot] != 0 && m_entries[m_by_text[slot] - 1].text != entry.text)
            slot = (slot + 1) & (slots - 1);
        if (m_by_text[slot] == 0)
            m_by_text[slot] = static_cast<std::uint32_t>(n + 1);
        else
            m_repeated.emplace_back(m_entries[m_by_text[slot] - 1].id, entry.id);
    }
    // As a rule the ids are in order.
    if (!std::is_sorted(m_by_id.begin(), m_by_id.end())) std::sort(m_by_id.begin(), m_by_id.end());
}

const Vocabulary::Entry* Vocabulary::find_id(std::int64_t id) const
{
    const auto at = std::lower_bound(m_by_id.begin(), m_by_id.end(), std::pair(id, std::size_t{0}));
    return at == m_by_id.end() || at->first != id ? nullptr : &m_entries[at->second];
}

const Vocabulary::Entry* Vocabulary::find_text(std::string_view text) const
{
    if (text.empty() || m_by_text.empty()) return nullptr;
    const std::size_t last = m_by_text.size() - 1;
    for (std::size_t slot = std::hash<std::string_view>{}(text)&last; m_by_text[slot] != 0;
         slot = (slot + 1) & last)
        if (const Entry& entry = m_entries[m_by_text[slot] - 1]; entry.text == text) return &entry;
    return nullptr;
}

const Vocabulary::Entry* Vocabulary::find_word(std::string_view word) const
{
    if (word.empty()) return nullptr;
    const Entry* found = find_text(with_mark(word, m_mark));
    return found == nullptr ? find_text(word) : found;
}

std::string Vocabulary::shown(std::int64_t id) const
{
    const Entry* entry = find_id(id);
    if (entry == nullptr || entry->text.empty()) return "id " + std::to_string(id);
    return printable(entry->special ? entry->text : without_mark(entry->text, m_mark), 40);
}

Vocabularies read_vocabularies(const Checkpoint& checkpoint, Architecture& architecture,
                               const ModelFamily& family, std::vector<std::string>& warnings)
{
    Vocabularies out;
    // The stacks may have tables of different sizes; the default one may read no words (Whisper's encoder).
    std::int64_t rows = architecture.vocabulary_size;
    if (!architecture.stacks.empty() && architecture.stacks.front().word_rows > 0)
        rows = architecture.stacks.front().word_rows;
    if (rows == 0) return out; // no words: images
    std::vector<std::string> faults;
    auto found = find_words(checkpoint, every_stack, rows, faults);
    if (!found && !architecture.stacks.empty())
        found = find_words(checkpoint, architecture.stacks.front().id, rows, faults);
    for (const std::string& fault : faults)
        warnings.push_back(fault + (found ? "; " + in_quotes(found->file) + " is taken"
                                          : std::string("; words are shown by id")));
    if (!found && faults.empty()) warnings.push_back(no_words(checkpoint));

    Architecture without_words = architecture;
    out.shared = finished(std::move(found), rows, checkpoint, architecture, family, warnings);
    for (std::size_t n = 1; n < architecture.stacks.size(); ++n) {
        Stack& stack = architecture.stacks[n];
        if (stack.word_rows == 0) continue;
        faults.clear();
        auto own = find_words(checkpoint, stack.id, stack.word_rows, faults);
        for (const std::string& fault : faults) warnings.push_back(fault + "; words are shown by id");
        if (!own) continue;
        without_words.stacks = {stack};
        out.of_stacks.emplace(
            stack.id, finished(std::move(own), stack.word_rows, checkpoint, without_words, family, warnings));
        stack.special_leading = without_words.stacks.front().special_leading;
        stack.special_trailing = without_words.stacks.front().special_trailing;
    }
    return out;
}

} // namespace posiscope::core
