// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/vocabulary.h"

namespace posiscope::core {

/// What the entry of a vocabulary file is.
enum class TokenUse {
    text,       ///< a word or a piece of one
    special,    ///< a special token: [CLS], <pad>
    placeholder ///< unused, or a byte
};

/// A token that a file beside the vocabulary names, by its id and text or by its text alone.
struct AddedToken {
    std::optional<std::int64_t> id;
    std::string text;
    bool special = false;
};

/// The rows of a word table while vocabulary files fill in their words. It holds no more entries than the table has
/// rows, however long a file is.
class WordTable {
public:
    explicit WordTable(std::int64_t rows);

    [[nodiscard]] std::int64_t rows() const { return m_rows; }
    /// Word `id` in row `id`. A word beyond the table is counted only, the second of an id as well.
    void place(std::int64_t id, std::string_view text, TokenUse use = TokenUse::text);
    /// For a cut table: leaves listed rows only, each with an id of the original vocabulary.
    /// False where the row is beyond the table or taken.
    bool place_cut(std::int64_t row, std::int64_t id, std::string_view text);
    /// Tokens that lie beside the vocabulary: special ones are marked, by id or by text, and rows without a text get
    /// that of their id.
    void add(std::span<const AddedToken> tokens);

    [[nodiscard]] std::size_t words() const { return m_words; } ///< placed, or beyond the table
    [[nodiscard]] const std::vector<std::int64_t>& ids_twice() const { return m_ids_twice; }
    [[nodiscard]] bool is_cut() const { return m_cut; }
    [[nodiscard]] std::vector<Vocabulary::Entry> take();

private:
    std::int64_t m_rows;
    bool m_cut = false;
    std::size_t m_words = 0;
    std::vector<std::int64_t> m_ids_twice; ///< the first few
    std::vector<Vocabulary::Entry> m_entries;
    std::vector<bool> m_taken; ///< rows of a cut table
};

} // namespace posiscope::core
