// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/gguf_format.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "core/base/checked_math.h"
#include "core/base/text.h"
#include "core/checkpoint/byte_stream.h"

namespace posiscope::core {
namespace {

using nlohmann::json;

constexpr std::uint64_t longest_name = 1'024;
constexpr std::uint64_t most_dimensions = 8;
constexpr std::uint64_t default_alignment = 32;
constexpr std::size_t most_words = 2'000'000;

enum class ValueType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };

/// Bytes of a metadata value; of a text or an array at least.
constexpr std::array<std::uint64_t, 13> least_bytes{1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};

struct GgmlType {
    std::uint32_t code;
    std::string_view name;
    std::optional<DType> dtype;
};

constexpr std::array ggml_types{
    GgmlType{0, "F32", DType::f32},     GgmlType{1, "F16", DType::f16},
    GgmlType{2, "Q4_0", DType::q4_0},   GgmlType{3, "Q4_1", DType::q4_1},
    GgmlType{6, "Q5_0", DType::q5_0},   GgmlType{7, "Q5_1", DType::q5_1},
    GgmlType{8, "Q8_0", DType::q8_0},   GgmlType{9, "Q8_1", std::nullopt},
    GgmlType{10, "Q2_K", std::nullopt}, GgmlType{11, "Q3_K", std::nullopt},
    GgmlType{12, "Q4_K", DType::q4_k},  GgmlType{13, "Q5_K", DType::q5_k},
    GgmlType{14, "Q6_K", DType::q6_k},  GgmlType{15, "Q8_K", std::nullopt},
    GgmlType{24, "I8", DType::i8},      GgmlType{25, "I16", DType::i16},
    GgmlType{26, "I32", DType::i32},    GgmlType{27, "I64", DType::i64},
    GgmlType{28, "F64", DType::f64},    GgmlType{30, "BF16", DType::bf16},
};

/// Reads the parts of a header; after the first fault everything gives nothing.
class GgufReader {
public:
    explicit GgufReader(const ByteSource& source) : m_source(source), m_stream(source, 4) {}

    std::optional<Error> fault;

    void fail(const std::string& what, ErrorCode code = ErrorCode::corrupt_file)
    {
        if (fault) return;
        fault = m_stream.fault() ? *m_stream.fault()
                                 : Error{code, in_quotes(m_source.name()) + ": " + what, "GGUF header"};
    }

    std::uint64_t number(int bytes)
    {
        if (fault) return 0;
        const auto value = m_stream.number(bytes);
        if (!value) fail("the header ends within a value; the file is cut short");
        return value.value_or(0);
    }

    std::string text(std::uint64_t longest)
    {
        const std::uint64_t size = number(8);
        if (fault) return {};
        if (size > m_stream.left() || size > longest) {
            fail("a text claims " + std::to_string(size) + " bytes, but the file has " +
                 std::to_string(m_stream.left()) + " more");
            return {};
        }
        std::string out;
        if (!m_stream.append(size, out)) fail("the header ends within a text; the file is cut short");
        return out;
    }

    ValueType value_type()
    {
        const std::uint64_t code = number(4);
        if (!fault && code >= least_bytes.size())
            fail("a metadata value has the type " + std::to_string(code) + ", which is not known");
        return fault ? ValueType::u8 : static_cast<ValueType>(code);
    }

    /// A value as JSON; arrays of texts are kept where `keep_texts`, arrays of short numbers always.
    json value(ValueType type, bool keep_texts)
    {
        switch (type) {
        case ValueType::u8: return number(1);
        case ValueType::i8: return static_cast<std::int8_t>(number(1));
        case ValueType::u16: return number(2);
        case ValueType::i16: return static_cast<std::int16_t>(number(2));
        case ValueType::u32: return number(4);
        case ValueType::i32: return static_cast<std::int32_t>(number(4));
        case ValueType::f32:
            return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(number(4))));
        case ValueType::boolean: return number(1) != 0;
        case ValueType::text: return text(m_stream.left());
        case ValueType::u64: return number(8);
        case ValueType::i64: return static_cast<std::int64_t>(number(8));
        case ValueType::f64: return std::bit_cast<double>(number(8));
        case ValueType::array: return array(keep_texts);
        }
        return {};
    }

    [[nodiscard]] std::uint64_t position() const { return m_stream.position(); }
    [[nodiscard]] std::uint64_t left() const { return m_stream.left(); }

private:
    json array(bool keep_texts)
    {
        const ValueType type = value_type();
        const std::uint64_t count = number(8);
        if (fault) return {};
        if (type == ValueType::array) {
            fail("a metadata array holds arrays, which no GGUF file does");
            return {};
        }
        const std::uint64_t least = least_bytes[static_cast<std::size_t>(type)];
        if (count > m_stream.left() / least) {
            fail("a metadata array claims " + std::to_string(count) + " entries, but the file has " +
                 std::to_string(m_stream.left()) + " more bytes");
            return {};
        }
        json out = json::array();
        const bool is_text = type == ValueType::text;
        const bool keep = count <= most_words && (is_text ? keep_texts : least <= 4);
        if (!is_text && !keep) {
            if (!m_stream.skip(count * least)) fail("the header ends within an array; the file is cut short");
            return out;
        }
        for (std::uint64_t n = 0; n < count && !fault; ++n) {
            if (keep) {
                out.push_back(value(type, false));
            } else {
                const std::uint64_t size = number(8);
                if (!fault && !m_stream.skip(size))
                    fail("a text claims " + std::to_string(size) + " bytes beyond the end of the file");
            }
        }
        return out;
    }

    const ByteSource& m_source;
    ByteStream m_stream;
};

std::optional<TensorInfo> read_tensor_entry(GgufReader& reader)
{
    TensorInfo info;
    info.name = reader.text(longest_name);
    const std::string tensor = "tensor " + in_quotes(info.name);
    const std::uint64_t dimensions = reader.number(4);
    if (!reader.fault && dimensions > most_dimensions)
        reader.fail(tensor + " claims " + std::to_string(dimensions) + " dimensions; at most " +
                    std::to_string(most_dimensions) + " are expected");
    if (reader.fault) return std::nullopt;
    for (std::uint64_t n = 0; n < dimensions; ++n) {
        const std::uint64_t size = reader.number(8);
        if (!reader.fault && (size == 0 || size > static_cast<std::uint64_t>(INT64_MAX)))
            reader.fail(tensor + " has a size of " + std::to_string(size));
        info.shape.insert(info.shape.begin(),
                          static_cast<std::int64_t>(size)); // the file lists the fastest first
    }
    const std::uint64_t code = reader.number(4);
    info.begin = reader.number(8);
    if (reader.fault) return std::nullopt;
    const auto* type = std::find_if(ggml_types.begin(), ggml_types.end(),
                                    [&](const GgmlType& row) { return row.code == code; });
    if (type == ggml_types.end() || !type->dtype) {
        info.fault = type == ggml_types.end()
                         ? "has the GGML type " + std::to_string(code) + ", which is not known"
                         : "has the GGML type " + std::string(type->name) + ", which is not read";
        return info;
    }
    info.dtype = *type->dtype;
    const auto count = element_count(info.shape);
    const std::uint64_t block = dtype_block(info.dtype);
    if (block > 1 && (info.shape.empty() || static_cast<std::uint64_t>(info.shape.back()) % block != 0)) {
        reader.fail(tensor + " of type " + std::string(type->name) + " has shape " + shape_text(info.shape) +
                    "; its rows must be a multiple of " + std::to_string(block));
        return std::nullopt;
    }
    const auto bytes = count ? stored_bytes(info.dtype, *count) : std::nullopt;
    const auto end = bytes ? checked_add(info.begin, *bytes) : std::nullopt;
    if (!end) {
        reader.fail(tensor + ": shape " + shape_text(info.shape) + " is too large for any file");
        return std::nullopt;
    }
    info.end = *end;
    return info;
}

struct ConfigKey {
    std::string_view gguf; ///< behind "ARCHITECTURE."
    std::string_view config;
};

/// How config.json of the families calls what GGUF calls otherwise.
constexpr std::array config_keys{
    ConfigKey{"embedding_length", "hidden_size"},
    ConfigKey{"block_count", "num_hidden_layers"},
    ConfigKey{"attention.head_count", "num_attention_heads"},
    ConfigKey{"attention.head_count_kv", "num_key_value_heads"},
    ConfigKey{"attention.key_length", "head_dim"},
    ConfigKey{"feed_forward_length", "intermediate_size"},
    ConfigKey{"context_length", "max_position_embeddings"},
    ConfigKey{"attention.layer_norm_epsilon", "layer_norm_eps"},
    ConfigKey{"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    ConfigKey{"rope.freq_base", "rope_theta"},
    ConfigKey{"attention.sliding_window", "sliding_window"},
    ConfigKey{"decoder_block_count", "num_decoder_layers"},
    ConfigKey{"attention.relative_buckets_count", "relative_attention_num_buckets"},
};

struct KeyOfFamily {
    std::string_view common, own;
};

/// Families whose config.json has names of its own.
constexpr std::array gpt2_keys{
    KeyOfFamily{"hidden_size", "n_embd"},         KeyOfFamily{"num_hidden_layers", "n_layer"},
    KeyOfFamily{"num_attention_heads", "n_head"}, KeyOfFamily{"max_position_embeddings", "n_positions"},
    KeyOfFamily{"intermediate_size", "n_inner"},  KeyOfFamily{"layer_norm_eps", "layer_norm_epsilon"}};
constexpr std::array t5_keys{KeyOfFamily{"hidden_size", "d_model"},
                             KeyOfFamily{"num_hidden_layers", "num_layers"},
                             KeyOfFamily{"num_attention_heads", "num_heads"},
                             KeyOfFamily{"head_dim", "d_kv"},
                             KeyOfFamily{"intermediate_size", "d_ff"},
                             KeyOfFamily{"layer_norm_eps", "layer_norm_epsilon"},
                             KeyOfFamily{"rms_norm_eps", "layer_norm_epsilon"}};

void rename_keys(json& config, std::span<const KeyOfFamily> rows)
{
    for (const KeyOfFamily& row : rows)
        if (const auto at = config.find(row.common); at != config.end()) {
            config[std::string(row.own)] = *at;
            config.erase(std::string(row.common));
        }
}

/// @param gated  the feed-forward blocks have a gate
std::string config_of(const std::map<std::string, json, std::less<>>& metadata,
                      const std::string& architecture, bool gated)
{
    json config = json::object();
    config["model_type"] = architecture;
    for (const ConfigKey& row : config_keys) {
        const auto at = metadata.find(architecture + "." + std::string(row.gguf));
        if (at != metadata.end() && at->second.is_number()) config[std::string(row.config)] = at->second;
    }
    if (architecture == "gpt2") rename_keys(config, gpt2_keys);
    if (architecture == "t5" || architecture == "t5encoder") {
        rename_keys(config, t5_keys);
        config["model_type"] = "t5";
        config["feed_forward_proj"] = gated ? "gated-gelu" : "relu"; // as all that were published
    }
    for (const auto& [from, to] : {std::pair{"tokenizer.ggml.padding_token_id", "pad_token_id"},
                                   {"tokenizer.ggml.bos_token_id", "bos_token_id"},
                                   {"tokenizer.ggml.eos_token_id", "eos_token_id"},
                                   {"tokenizer.ggml.unknown_token_id", "unk_token_id"},
                                   {"tokenizer.ggml.seperator_token_id", "sep_token_id"}, // as written there
                                   {"tokenizer.ggml.cls_token_id", "cls_token_id"},
                                   {"tokenizer.ggml.mask_token_id", "mask_token_id"}})
        if (const auto at = metadata.find(from); at != metadata.end() && at->second.is_number())
            config[to] = at->second;
    if (architecture == "bert") config["hidden_act"] = "gelu";
    return config.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// A WordPiece token as vocab.txt has it. The conversion turned them round: what begins a word got sentencepiece's mark, the
/// "##" of the others was taken off. Special tokens were left as they are; old conversions call them normal.
std::string word_piece(std::string word, bool is_special)
{
    constexpr std::string_view mark = "\xE2\x96\x81";
    if (word.starts_with(mark)) return word.substr(mark.size());
    const bool in_brackets = word.size() > 2 && word.front() == '[' && word.back() == ']';
    return is_special || in_brackets ? word : "##" + word;
}

/// "type<TAB>token", a line for each id, with the escapes of vocab.tsv.
std::string vocabulary_of(const json& words, const json& types, bool is_word_piece)
{
    constexpr std::uint64_t normal = 1, control = 3;
    std::string text;
    for (std::size_t n = 0; n < words.size(); ++n) {
        const bool has_type =
            n < types.size() && types[n].is_number_integer() && types[n].get<std::int64_t>() >= 0;
        const std::uint64_t type = has_type ? types[n].get<std::uint64_t>() : normal;
        std::string word = words[n].get<std::string>();
        if (is_word_piece) word = word_piece(std::move(word), type == control);
        text += std::to_string(type) + '\t';
        for (const char c : word) {
            constexpr std::string_view meant = "\\\n\r\t", letters = "\\nrt";
            const std::size_t escape = meant.find(c);
            if (escape != std::string_view::npos) text += '\\';
            text += escape == std::string_view::npos ? c : letters[escape];
        }
        text += '\n';
    }
    return text;
}

} // namespace

bool is_gguf(const ByteSource& source)
{
    std::array<char, 4> start{};
    return source.size() >= start.size() && source.read(0, std::as_writable_bytes(std::span(start))) &&
           std::string_view(start.data(), start.size()) == "GGUF";
}

Result<TensorFile> open_gguf(const std::shared_ptr<const ByteSource>& source, const RunContext& ctx)
{
    GgufReader reader(*source);
    if (!is_gguf(*source)) reader.fail("the file does not begin with 'GGUF'");
    const std::uint64_t version = reader.number(4);
    if (!reader.fault && version >= 0x0100'0000 && version <= 0xFF00'0000 && (version & 0xFFFFu) == 0)
        reader.fail("the file is written in big-endian order; little-endian was expected",
                    ErrorCode::unsupported_format);
    else if (!reader.fault && version == 1)
        reader.fail(
            "the file is of GGUF version 1, which nobody writes since 2023; convert it to version 2 or 3",
            ErrorCode::unsupported_format);
    else if (!reader.fault && version != 2 && version != 3)
        reader.fail("the file is of GGUF version " + std::to_string(version) + "; 2 and 3 are read",
                    ErrorCode::unsupported_format);
    const std::uint64_t tensors = reader.number(8), entries = reader.number(8);
    constexpr std::uint64_t least_entry = 13, least_tensor = 24;
    if (!reader.fault && (entries > reader.left() / least_entry || tensors > reader.left() / least_tensor))
        reader.fail("the header claims " + std::to_string(tensors) + " tensors and " +
                    std::to_string(entries) + " metadata entries, but the file has " +
                    std::to_string(reader.left()) + " more bytes");

    std::map<std::string, json, std::less<>> metadata;
    for (std::uint64_t n = 0; n < entries && !reader.fault; ++n) {
        if (ctx.cancelled()) return cancelled_error("opening a checkpoint");
        std::string key = reader.text(longest_name);
        const ValueType type = reader.value_type();
        json value = reader.value(type, key == "tokenizer.ggml.tokens");
        if (!reader.fault) metadata.insert_or_assign(std::move(key), std::move(value));
    }
    std::uint64_t alignment = default_alignment;
    if (const auto at = metadata.find("general.alignment"); at != metadata.end()) {
        alignment = at->second.is_number_unsigned() ? at->second.get<std::uint64_t>() : 0;
        if (alignment == 0 || !std::has_single_bit(alignment) || alignment > 1u << 20u)
            reader.fail("the alignment is " +
                        printable(at->second.dump(-1, ' ', false, json::error_handler_t::replace), 40) +
                        "; a power of two was expected");
    }
    std::string architecture;
    if (const auto at = metadata.find("general.architecture"); at != metadata.end()) {
        if (at->second.is_string())
            architecture = at->second.get<std::string>();
        else
            reader.fail("'general.architecture' is no text");
    }

    TensorFile file;
    file.format = "gguf";
    file.sources.push_back(source);
    std::set<std::string, std::less<>> names;
    for (std::uint64_t n = 0; n < tensors && !reader.fault; ++n) {
        auto info = read_tensor_entry(reader);
        if (!info) break;
        if (!names.insert(info->name).second)
            reader.fail("tensor " + in_quotes(info->name) + " is listed twice");
        file.tensors.push_back(*std::move(info));
    }
    if (reader.fault) return *reader.fault;
    const std::uint64_t data = (reader.position() + alignment - 1) / alignment * alignment;
    for (TensorInfo& info : file.tensors) {
        const std::string tensor = "tensor " + in_quotes(info.name);
        const std::uint64_t room = source->size() > data ? source->size() - data : 0;
        if (info.begin % alignment != 0)
            reader.fail(tensor + " begins at byte " + std::to_string(info.begin) +
                        ", no multiple of the alignment " + std::to_string(alignment));
        else if (info.fault.empty() ? info.end > room : info.begin > room)
            reader.fail(tensor + " claims bytes " + std::to_string(info.begin) + ".." +
                        std::to_string(info.end) + " of the " + std::to_string(room) +
                        " that the file holds; it may be cut short");
        if (reader.fault) return *reader.fault;
        info.begin += data;
        info.end += data;
        if (!info.fault.empty()) {
            file.warnings.push_back(tensor + " in " + in_quotes(source->name()) + " " + info.fault);
            info.end = info.begin;
        }
    }
    const bool gated = std::any_of(names.begin(), names.end(), [](const std::string& name) {
        return name.find(".ffn_gate.") != std::string::npos;
    });
    if (!architecture.empty()) file.enclosed_files["config.json"] = config_of(metadata, architecture, gated);
    const auto words = metadata.find("tokenizer.ggml.tokens");
    if (words != metadata.end() && words->second.is_array() && !words->second.empty() &&
        words->second[0].is_string()) {
        const auto types = metadata.find("tokenizer.ggml.token_type");
        // RoBERTa's converted files are of the architecture "bert", but have GPT-2's tokens.
        const auto kind = metadata.find("tokenizer.ggml.model");
        const bool is_word_piece = kind == metadata.end() ? architecture == "bert" : kind->second == "bert";
        file.enclosed_files["tokenizer.ggml.tokens"] = vocabulary_of(
            words->second, types == metadata.end() ? json::array() : types->second, is_word_piece);
    }
    return file;
}

} // namespace posiscope::core
