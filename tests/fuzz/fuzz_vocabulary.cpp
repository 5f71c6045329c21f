// SPDX-License-Identifier: GPL-3.0-or-later
// Every reader of vocabulary files over the same bytes.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/model/vocabularies/vocabulary_readers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    using namespace posiscope::core;
    constexpr std::int64_t rows = 300;
    for (const auto read : {read_tsv_words, read_line_words, read_fairseq_words, read_json_words,
                            read_tokenizer_words, read_sentencepiece_words, read_fairseq_sentencepiece_words})
        for (const char* model_type : {"", "bert", "xlm-roberta"}) {
            WordTable table(rows);
            const auto done =
                read({{reinterpret_cast<const char*>(data), size}, "vocabulary", model_type}, table);
            if (!done) continue;
            const Vocabulary vocabulary(table.take());
            for (const Vocabulary::Entry& entry : vocabulary.entries()) {
                const auto shown = vocabulary.shown(entry.id);
                const auto* found = vocabulary.find_word(entry.text);
                if (found == nullptr && shown.empty()) __builtin_trap(); // an id is always shown as something
            }
        }
    return 0;
}
