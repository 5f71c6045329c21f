// SPDX-License-Identifier: GPL-3.0-or-later
#include <optional>
#include <vector>

#include "core/base/text.h"
#include "core/model/vocabularies/vocabulary_readers.h"

namespace posiscope::core {
namespace {

/// One field of a protocol buffer: its number, and its bytes or its whole number.
struct Field {
    std::uint64_t number = 0;
    std::string_view bytes;
    std::uint64_t value = 0;
};

/// Goes through the fields of a protocol buffer message. Groups, which nobody writes any more, are a fault.
/// Source: Protocol Buffers documentation, "Encoding".
class FieldReader {
public:
    explicit FieldReader(std::string_view bytes) : m_bytes(bytes) {}

    /// The next field; nothing at the end and at a fault.
    std::optional<Field> next()
    {
        if (m_bytes.empty() || m_failed) return std::nullopt;
        std::uint64_t tag = 0, length = 0;
        Field field;
        if (!varint(tag)) return failed();
        field.number = tag >> 3u;
        switch (tag & 7u) {
        case 0:
            if (!varint(field.value)) return failed();
            return field;
        case 1: length = 8; break;
        case 2:
            if (!varint(length)) return failed();
            break;
        case 5: length = 4; break;
        default: return failed();
        }
        if (field.number == 0 || length > m_bytes.size()) return failed();
        field.bytes = m_bytes.substr(0, static_cast<std::size_t>(length));
        m_bytes.remove_prefix(static_cast<std::size_t>(length));
        return field;
    }
    [[nodiscard]] bool ok() const { return !m_failed; }

private:
    std::optional<Field> failed()
    {
        m_failed = true;
        return std::nullopt;
    }

    bool varint(std::uint64_t& out)
    {
        out = 0;
        for (unsigned shift = 0; shift < 64 && !m_bytes.empty(); shift += 7) {
            const auto byte = static_cast<unsigned char>(m_bytes.front());
            m_bytes.remove_prefix(1);
            out |= static_cast<std::uint64_t>(byte & 0x7Fu) << shift;
            if (byte < 0x80) return true;
        }
        return false;
    }

    std::string_view m_bytes;
    bool m_failed = false;
};

struct Piece {
    std::string_view text;
    TokenUse use = TokenUse::text;
};

Error corrupt(const VocabularyBytes& source, const std::string& what)
{
    return Error{ErrorCode::corrupt_file, in_quotes(source.file) + " " + what, "vocabulary"};
}

/// Source: sentencepiece_model.proto (ModelProto: pieces = 1; SentencePiece: piece = 1, score = 2, type = 3).
Result<std::vector<Piece>> read_pieces(const VocabularyBytes& source)
{
    std::vector<Piece> pieces;
    FieldReader model(source.bytes);
    while (const auto field = model.next()) {
        if (field->number != 1) continue;
        Piece piece;
        FieldReader parts(field->bytes);
        while (const auto part = parts.next()) {
            if (part->number == 1) piece.text = part->bytes;
            if (part->number == 3) piece.use = use_of_piece_type(part->value);
        }
        if (!parts.ok() || piece.text.empty() || !is_utf8(piece.text))
            return corrupt(source, "is no sentencepiece model: piece " + std::to_string(pieces.size()) +
                                       " is broken; a text in UTF-8 was expected");
        pieces.push_back(piece);
    }
    if (!model.ok())
        return corrupt(source, "is no sentencepiece model, or is cut short: it breaks off after " +
                                   counted(pieces.size(), "piece", "pieces"));
    if (pieces.empty()) return corrupt(source, "lists no pieces; a sentencepiece model was expected");
    return pieces;
}

} // namespace

TokenUse use_of_piece_type(std::uint64_t type)
{
    switch (type) {
    case 2: // unknown
    case 3: // control
        return TokenUse::special;
    case 5: // unused
    case 6: // byte
        return TokenUse::placeholder;
    default: // normal, user-defined
        return TokenUse::text;
    }
}

Result<void> read_sentencepiece_words(const VocabularyBytes& source, WordTable& table)
{
    const auto pieces = read_pieces(source);
    if (!pieces) return pieces.error();
    std::int64_t id = 0;
    for (const Piece& piece : *pieces) table.place(id++, piece.text, piece.use);
    return {};
}

Result<void> read_fairseq_sentencepiece_words(const VocabularyBytes& source, WordTable& table)
{
    const auto pieces = read_pieces(source);
    if (!pieces) return pieces.error();
    const auto begins_with = [&](const std::vector<std::string_view>& texts) {
        for (std::size_t n = 0; n < texts.size(); ++n)
            if (n >= pieces->size() || (*pieces)[n].text != texts[n]) return false;
        return true;
    };
    if (!begins_with({"<unk>", "<s>", "</s>"})) return read_sentencepiece_words(source, table);
    // XLM-R puts <s> <pad> </s> <unk> in the place of the first three pieces, CamemBERT four tokens before all of
    // them; <mask> follows the last. Source: transformers, tokenization_xlm_roberta, tokenization_camembert.
    const bool camembert = source.model_type == "camembert";
    std::int64_t id = 0;
    for (const char* special :
         {camembert ? "<s>NOTUSED" : "<s>", "<pad>", camembert ? "</s>NOTUSED" : "</s>", "<unk>"})
        table.place(id++, special, TokenUse::special);
    for (std::size_t n = camembert ? 0 : 3; n < pieces->size(); ++n) {
        // CamemBERT's own <unk> lies behind the one it uses.
        const bool repeats = camembert && n == 0;
        table.place(id++, repeats ? "<unk>NOTUSED" : (*pieces)[n].text, (*pieces)[n].use);
    }
    table.place(id, "<mask>", TokenUse::special);
    return {};
}

} // namespace posiscope::core
