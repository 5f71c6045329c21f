// SPDX-License-Identifier: GPL-3.0-or-later
#include <optional>
#include <vector>

#include "core/base/text.h"
#include "core/model/vocabularies/json_scanner.h"
#include "core/model/vocabularies/vocabulary_readers.h"

namespace posiscope::core {
namespace {

constexpr std::uint64_t largest_special_tokens_file = 32'000'000;

Error corrupt(const std::string& file, const std::string& what)
{
    return Error{ErrorCode::corrupt_file, in_quotes(file) + " " + what, "vocabulary"};
}

std::string_view without_byte_order_mark(std::string_view text)
{
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    return text;
}

/// The object or list is read; what is left of the file must be blank, and nothing may have been wrong.
Result<void> finished(JsonScanner& json, const std::string& file, const std::optional<Error>& fault)
{
    if (fault) return *fault;
    if (!json.at_end())
        return corrupt(file, "is not valid JSON: the fault is near byte " + std::to_string(json.position()));
    return {};
}

void read_id_of_word(JsonScanner& json, const std::string& word, const std::string& file, WordTable& table,
                     std::optional<Error>& fault)
{
    std::int64_t id = -1;
    const bool whole = json.integer(id);
    if (json.ok() && (!whole || id < 0) && !fault)
        fault = corrupt(file, "gives " + in_quotes(word, 40) + " an id that is no whole number from 0 on");
    if (json.ok() && !fault) table.place(id, word);
}

void read_ids_by_word(JsonScanner& json, const std::string& file, WordTable& table,
                      std::optional<Error>& fault)
{
    json.object([&](const std::string& word) { read_id_of_word(json, word, file, table, fault); });
}

/// Unigram's list of [piece, score].
void read_piece_list(JsonScanner& json, const std::string& file, WordTable& table,
                     std::optional<Error>& fault)
{
    std::string piece;
    std::int64_t id = 0;
    json.array([&] {
        std::size_t part = 0;
        json.array([&] {
            if (part++ == 0 && json.next() == '"')
                json.text(piece);
            else
                json.skip();
            if (part == 1 && json.ok()) table.place(id++, piece);
        });
        if (json.ok() && part != 2 && !fault)
            fault = corrupt(file, "lists a piece that is not [text, score]: number " + std::to_string(id));
    });
}

/// A token as {"content": "<s>", ...} or as its bare text.
AddedToken read_token(JsonScanner& json)
{
    AddedToken token;
    if (json.next() == '"') {
        json.text(token.text);
        return token;
    }
    if (json.next() != '{') {
        json.skip();
        return token;
    }
    json.object([&](const std::string& key) {
        if (std::int64_t id = 0; key == "id") {
            if (json.integer(id)) token.id = id;
        } else if (key == "content" && json.next() == '"') {
            json.text(token.text);
        } else if (key == "special") {
            token.special = json.flag();
        } else {
            json.skip();
        }
    });
    return token;
}

bool is_token_role(std::string_view key)
{
    return key.ends_with("_token") && !key.starts_with("add_");
}

void read_tokens_by_role(JsonScanner& json, std::vector<AddedToken>& out)
{
    json.object([&](const std::string& key) {
        const auto add = [&] {
            out.push_back(read_token(json));
            out.back().special = true;
            out.back().id.reset();
        };
        if (is_token_role(key))
            add();
        else if (key == "additional_special_tokens" && json.next() == '[')
            json.array(add);
        else if (key == "added_tokens_decoder" && json.next() == '{')
            json.object([&](const std::string& id) {
                AddedToken token = read_token(json);
                if (!id.empty() && id.size() < 12 && id.find_first_not_of("0123456789") == std::string::npos)
                    token.id = std::stoll(id);
                out.push_back(std::move(token));
            });
        else
            json.skip();
    });
}

void read_added_tokens(JsonScanner& json, std::vector<AddedToken>& out)
{
    json.object([&](const std::string& text) {
        AddedToken token;
        std::int64_t id = -1;
        if (json.integer(id)) token.id = id;
        token.text = text;
        // What people add to a vocabulary may be words; the file does not say.
        out.push_back(std::move(token));
    });
}

struct SpecialTokensFile {
    std::string_view name;
    void (*read)(JsonScanner& json, std::vector<AddedToken>& out);
};

constexpr SpecialTokensFile special_tokens_files[]{
    {"added_tokens.json", read_added_tokens},
    {"tokenizer_config.json", read_tokens_by_role},
    {"special_tokens_map.json", read_tokens_by_role},
};

Result<void> read_special_tokens_file(const FileStore& store, const SpecialTokensFile& kind,
                                      std::vector<AddedToken>& out)
{
    const auto source = store.open(kind.name);
    if (!source) return source.error();
    const auto text = (*source)->read_text(largest_special_tokens_file);
    if (!text) return text.error();
    if (!is_utf8(*text)) return corrupt((*source)->name(), "is not UTF-8");
    JsonScanner json(without_byte_order_mark(*text));
    kind.read(json, out);
    return finished(json, (*source)->name(), std::nullopt);
}

} // namespace

Result<void> read_json_words(const VocabularyBytes& source, WordTable& table)
{
    JsonScanner json(without_byte_order_mark(source.bytes));
    std::optional<Error> fault;
    read_ids_by_word(json, source.file, table, fault);
    return finished(json, source.file, fault);
}

Result<void> read_tokenizer_words(const VocabularyBytes& source, WordTable& table)
{
    JsonScanner json(without_byte_order_mark(source.bytes));
    std::optional<Error> fault;
    std::vector<AddedToken> added;
    bool has_vocabulary = false;
    json.object([&](const std::string& key) {
        if (key == "added_tokens" && json.next() == '[') {
            json.array([&] { added.push_back(read_token(json)); });
        } else if (key == "model" && json.next() == '{') {
            json.object([&](const std::string& part) {
                const char kind = part == "vocab" ? json.next() : ' ';
                has_vocabulary = has_vocabulary || kind == '{' || kind == '[';
                if (kind == '{')
                    read_ids_by_word(json, source.file, table, fault);
                else if (kind == '[')
                    read_piece_list(json, source.file, table, fault);
                else
                    json.skip();
            });
        } else {
            json.skip();
        }
    });
    if (const auto done = finished(json, source.file, fault); !done) return done;
    if (!has_vocabulary) return corrupt(source.file, "holds no 'model' with a 'vocab'");
    table.add(added);
    return {};
}

void read_special_tokens(const FileStore& store, WordTable& table, std::vector<std::string>& warnings)
{
    std::vector<AddedToken> tokens;
    for (const SpecialTokensFile& kind : special_tokens_files) {
        const auto read = read_special_tokens_file(store, kind, tokens);
        if (!read && read.error().code != ErrorCode::not_found)
            warnings.push_back(read.error().message + "; special tokens are known by their texts only");
    }
    table.add(tokens);
}

} // namespace posiscope::core
