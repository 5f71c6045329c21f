// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/vocabularies/word_table.h"

namespace posiscope::core {

/// The bytes of a vocabulary file on the way into a word table.
struct VocabularyBytes {
    std::string_view bytes;
    std::string file;       ///< for messages
    std::string model_type; ///< of the config; empty: it does not say
};

/// What a type of sentencepiece's pieces means here. Source: sentencepiece_model.proto, SentencePiece.Type.
TokenUse use_of_piece_type(std::uint64_t type);

// One function for each kind of file. Errors are corrupt_file and name the file, the place and what was expected.

/// vocab.tsv of a cut checkpoint: a head line, then row, token, id in the original vocabulary. Backslashes in tokens
/// escape as in JSON.
Result<void> read_tsv_words(const VocabularyBytes& source, WordTable& table);
/// vocab.txt: one word a line, the line's number is its id.
Result<void> read_line_words(const VocabularyBytes& source, WordTable& table);
/// The tokens of a GGUF file, as open_gguf encloses them: "type<TAB>token" lines, escaped as in vocab.tsv; the types are
/// sentencepiece's.
Result<void> read_gguf_words(const VocabularyBytes& source, WordTable& table);
/// fairseq's dict.txt: "word count" lines behind four special tokens that the file does not hold.
Result<void> read_fairseq_words(const VocabularyBytes& source, WordTable& table);
/// vocab.json: an object of ids by word.
Result<void> read_json_words(const VocabularyBytes& source, WordTable& table);
/// tokenizer.json of Hugging Face tokenizers: WordPiece, BPE, WordLevel (objects) and Unigram (a list).
Result<void> read_tokenizer_words(const VocabularyBytes& source, WordTable& table);
/// A sentencepiece model: the pieces in the order of their ids.
Result<void> read_sentencepiece_words(const VocabularyBytes& source, WordTable& table);
/// The same where fairseq put its own tokens before and behind the pieces (XLM-R, CamemBERT), unless the file has
/// that order already.
Result<void> read_fairseq_sentencepiece_words(const VocabularyBytes& source, WordTable& table);

/// What added_tokens.json, tokenizer_config.json and special_tokens_map.json beside a vocabulary say of special
/// tokens, and the texts of tokens that the vocabulary itself lacks.
/// @param warnings  told where one of them is broken; the others are read
void read_special_tokens(const FileStore& store, WordTable& table, std::vector<std::string>& warnings);

} // namespace posiscope::core
