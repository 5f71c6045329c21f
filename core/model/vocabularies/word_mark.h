// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/model/vocabulary.h"

namespace posiscope::core {

/// The mark that most entries of a vocabulary carry. A mark that fewer than one entry in 200 has is none: a letter
/// that looks like it (multilingual BERT has words that begin with the letter of GPT-2's mark).
WordMark find_word_mark(std::span<const Vocabulary::Entry> entries);

/// Whether an entry begins a word (with marks at the end of words: is a whole word or its last piece), and is more
/// than the mark, blanks or a part of a character. Without marks every text is a word.
bool begins_word(std::string_view text, WordMark mark);

/// Whether the text is a place holder that was never a word: [unused0], <unused0>, <extra_id_0>, <0x0A>,
/// madeupword0000.
bool is_placeholder(std::string_view text);

/// A text as people write it: without the mark, bytes mapped back to UTF-8. A piece that continues a word begins
/// with "…", one that does not end it ends with "…"; "##" stays, as everyone knows it.
std::string without_mark(std::string_view text, WordMark mark);

/// How a typed word stands in a vocabulary with this mark where it begins (or is) a word: "Ġthe", "▁the", "the</w>".
std::string with_mark(std::string_view word, WordMark mark);

} // namespace posiscope::core
