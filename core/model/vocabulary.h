// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/architecture.h"

namespace posiscope::core {

/// How a vocabulary tells pieces that begin a word from those that continue one.
enum class WordMark {
    none,          ///< it does not: whole words, letters, amino acids
    continuation,  ///< "##ing" continues a word (WordPiece)
    byte_level,    ///< "Ġthe" begins one, in GPT-2's alphabet of bytes
    sentencepiece, ///< "▁the" begins one
    blank,         ///< " the" begins one
    end_of_word,   ///< "the</w>" ends one (GPT, CLIP)
    continued,     ///< "th@@" is continued (subword-nmt)
};

/// Words of a model: id of the original vocabulary <-> row of the word table <-> text, and which may be drawn.
/// A cut sample's vocab.tsv gives rows other ids; elsewhere id and row are the same number.
class Vocabulary {
public:
    struct Entry {
        std::int64_t id = 0;  ///< in the original vocabulary
        std::int64_t row = 0; ///< in the word table of this file
        std::string text;     ///< as the file has it, mark included; empty where unknown
        bool drawable = true; ///< not special, unused or padding, and begins a word
        bool special = false; ///< no piece of text: a special token, a place holder, a byte
    };

    Vocabulary() = default;
    explicit Vocabulary(std::vector<Entry> entries, WordMark mark = WordMark::none, std::string source = {});

    /// The file beside the weights (or part of theirs) that names the words; empty: none, they are shown by id.
    [[nodiscard]] const std::string& source() const { return m_source; }
    [[nodiscard]] const std::vector<Entry>& entries() const { return m_entries; }
    [[nodiscard]] const Entry* find_id(std::int64_t id) const;
    /// The entry whose text in the file is this very one.
    [[nodiscard]] const Entry* find_text(std::string_view text) const;
    /// A word as people type it: the entry that begins a word with it ("Ġthe" for "the"), else find_text.
    [[nodiscard]] const Entry* find_word(std::string_view word) const;
    [[nodiscard]] WordMark mark() const { return m_mark; }
    [[nodiscard]] bool has_texts() const { return m_has_texts; }
    [[nodiscard]] std::size_t drawable_count() const { return m_drawable; }
    /// Ids with a text that an earlier one has too, as pairs (earlier, later).
    [[nodiscard]] const std::vector<std::pair<std::int64_t, std::int64_t>>& repeated() const
    {
        return m_repeated;
    }

    /// How an id is shown: its text without the mark, made safe for one line, or "id 17".
    [[nodiscard]] std::string shown(std::int64_t id) const;

private:
    std::vector<Entry> m_entries;
    std::vector<std::pair<std::int64_t, std::size_t>> m_by_id; ///< sorted
    std::vector<std::uint32_t> m_by_text; ///< open addressing: 1 + index of the entry, 0 where free
    std::vector<std::pair<std::int64_t, std::int64_t>> m_repeated;
    WordMark m_mark = WordMark::none;
    std::string m_source;
    bool m_has_texts = false;
    std::size_t m_drawable = 0;
};

/// The vocabularies of a model. Most have one for all stacks.
struct Vocabularies {
    Vocabulary shared; ///< of the default stack and of every other without its own
    std::map<std::string, Vocabulary, std::less<>> of_stacks;
};

struct ModelFamily;

/// Reads the vocabulary beside a checkpoint and lets the family mark special tokens and the words that may be drawn.
/// A missing or broken one is a warning: words are then shown by id, and every row that is not special may be drawn.
Vocabularies read_vocabularies(const Checkpoint& checkpoint, Architecture& architecture,
                               const ModelFamily& family, std::vector<std::string>& warnings);

} // namespace posiscope::core
