// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/flax_format.h"

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/checked_math.h"
#include "core/base/text.h"
#include "core/checkpoint/array_dtypes.h"
#include "core/checkpoint/byte_stream.h"

namespace posiscope::core {
namespace {

constexpr int deepest = 64;
constexpr std::uint64_t longest_key = 4'096;
constexpr std::size_t most_dimensions = 32;
constexpr std::size_t most_tensors = 500'000;
constexpr std::string_view chunk_mark = "__msgpack_chunked_array__";

/// What stands at the beginning of a msgpack value.
struct Head {
    enum class Kind { nil, boolean, integer, real, text, bytes, array, map, extension } kind = Kind::nil;
    std::uint64_t size = 0; ///< bytes, or entries; of boolean and integer the value
    int extension_type = 0;
};

class FlaxReader {
public:
    FlaxReader(const ByteSource& source, TensorFile& file)
        : m_source(source), m_file(file), m_stream(source, 0)
    {
    }

    Result<void> run()
    {
        const Head head = read_head();
        if (!m_fault && head.kind != Head::Kind::map)
            fail("the file does not hold a map of parameters at its root");
        if (!m_fault) read_map(head.size, {}, 0);
        if (m_fault) return *m_fault;
        return {};
    }

private:
    void fail(const std::string& what)
    {
        if (m_fault) return;
        m_fault = m_stream.fault() ? *m_stream.fault()
                                   : Error{ErrorCode::corrupt_file,
                                           in_quotes(m_source.name()) + ": " + what + " (at byte " +
                                               std::to_string(m_stream.position()) + ")",
                                           "Flax msgpack"};
    }

    /// msgpack's numbers are big-endian.
    std::uint64_t number(int bytes)
    {
        std::uint64_t value = 0;
        for (int n = 0; n < bytes && !m_fault; ++n) {
            const auto byte = m_stream.next();
            if (!byte)
                fail("the file ends within a value; it is cut short");
            else
                value = (value << 8u) | *byte;
        }
        return m_fault ? 0 : value;
    }

    Head read_head()
    {
        using Kind = Head::Kind;
        const auto code = static_cast<unsigned>(number(1));
        if (m_fault) return {};
        if (code <= 0x7f) return {Kind::integer, code};
        if (code <= 0x8f) return {Kind::map, code & 0xFu};
        if (code <= 0x9f) return {Kind::array, code & 0xFu};
        if (code <= 0xbf) return checked({Kind::text, code & 0x1Fu});
        if (code >= 0xe0) return {Kind::integer, UINT64_MAX}; // a negative one: no size
        const auto extension = [&](std::uint64_t size) {
            const auto type = static_cast<std::int8_t>(number(1));
            return checked({Kind::extension, size, type});
        };
        switch (code) {
        case 0xc0: return {Kind::nil};
        case 0xc2: return {Kind::boolean, 0};
        case 0xc3: return {Kind::boolean, 1};
        case 0xc4: return checked({Kind::bytes, number(1)});
        case 0xc5: return checked({Kind::bytes, number(2)});
        case 0xc6: return checked({Kind::bytes, number(4)});
        case 0xc7: return extension(number(1));
        case 0xc8: return extension(number(2));
        case 0xc9: return extension(number(4));
        case 0xca: number(4); return {Kind::real};
        case 0xcb: number(8); return {Kind::real};
        case 0xcc: return {Kind::integer, number(1)};
        case 0xcd: return {Kind::integer, number(2)};
        case 0xce: return {Kind::integer, number(4)};
        case 0xcf: return {Kind::integer, number(8)};
        case 0xd0: number(1); return {Kind::integer, UINT64_MAX};
        case 0xd1: number(2); return {Kind::integer, UINT64_MAX};
        case 0xd2: number(4); return {Kind::integer, UINT64_MAX};
        case 0xd3: number(8); return {Kind::integer, UINT64_MAX};
        case 0xd4: return extension(1);
        case 0xd5: return extension(2);
        case 0xd6: return extension(4);
        case 0xd7: return extension(8);
        case 0xd8: return extension(16);
        case 0xd9: return checked({Kind::text, number(1)});
        case 0xda: return checked({Kind::text, number(2)});
        case 0xdb: return checked({Kind::text, number(4)});
        case 0xdc: return checked({Kind::array, number(2)});
        case 0xdd: return checked({Kind::array, number(4)});
        case 0xde: return checked({Kind::map, number(2)});
        case 0xdf: return checked({Kind::map, number(4)});
        default: fail("the byte 0xc1 is no msgpack value"); return {};
        }
    }

    /// Every entry takes at least a byte, an entry of a map two.
    Head checked(Head head)
    {
        const std::uint64_t least = head.kind == Head::Kind::map ? head.size * 2 : head.size;
        if (!m_fault && least > m_stream.left())
            fail("a value claims " + std::to_string(head.size) +
                 (head.kind == Head::Kind::map || head.kind == Head::Kind::array ? " entries" : " bytes") +
                 ", but the file has " + std::to_string(m_stream.left()) + " more bytes");
        return m_fault ? Head{} : head;
    }

    std::string read_text(std::uint64_t longest)
    {
        const Head head = read_head();
        std::string text;
        if (m_fault) return text;
        if (head.kind != Head::Kind::text || head.size > longest)
            fail("a text of at most " + std::to_string(longest) + " bytes was expected");
        else if (!m_stream.append(head.size, text))
            fail("the file ends within a text; it is cut short");
        return text;
    }

    void read_map(std::uint64_t entries, const std::string& name, int depth)
    {
        if (depth > deepest)
            return fail("the maps nest more than " + std::to_string(deepest) + " levels deep");
        std::set<std::string> keys;
        for (std::uint64_t n = 0; n < entries && !m_fault; ++n) {
            std::string key = read_text(longest_key);
            if (m_fault) return;
            if (n == 0 && key == chunk_mark) return read_chunked(entries, name);
            if (!keys.insert(key).second) return fail("the key " + in_quotes(key, 60) + " is there twice");
            // States of optimisers hold arrays that are no weights.
            const bool training = name.empty() && (key == "opt_state" || key == "optimizer" || key == "step");
            read_value(training ? std::string{} : name.empty() ? key : name + "/" + key, depth + 1, training);
            if (name.size() > longest_key)
                return fail("a name is longer than " + std::to_string(longest_key) + " bytes");
        }
    }

    void read_value(const std::string& name, int depth, bool skipped)
    {
        const Head head = read_head();
        if (m_fault) return;
        switch (head.kind) {
        case Head::Kind::map:
            if (!skipped) return read_map(head.size, name, depth);
            if (depth > deepest)
                return fail("the maps nest more than " + std::to_string(deepest) + " levels deep");
            for (std::uint64_t n = 0; n < 2 * head.size && !m_fault; ++n) read_value({}, depth + 1, true);
            return;
        case Head::Kind::array:
            if (depth > deepest)
                return fail("the arrays nest more than " + std::to_string(deepest) + " levels deep");
            for (std::uint64_t n = 0; n < head.size && !m_fault; ++n) read_value(name, depth + 1, true);
            return;
        case Head::Kind::text:
        case Head::Kind::bytes:
            if (!m_stream.skip(head.size)) fail("the file ends within a value; it is cut short");
            return;
        case Head::Kind::extension: {
            if (skipped) {
                if (!m_stream.skip(head.size)) fail("the file ends within a value; it is cut short");
                return;
            }
            if (auto info = read_extension(head, name)) add(*std::move(info));
            return;
        }
        default: return;
        }
    }

    void add(TensorInfo info)
    {
        if (m_fault) return;
        if (m_file.tensors.size() >= most_tensors)
            return fail("the file holds more than " + std::to_string(most_tensors) + " arrays");
        m_file.tensors.push_back(std::move(info));
    }

    /// An array, or nothing for numbers (types 2 and 3).
    std::optional<TensorInfo> read_extension(const Head& head, const std::string& name)
    {
        const std::string array = "the array " + in_quotes(name);
        const std::uint64_t end = m_stream.position() + head.size;
        if (head.extension_type == 2 || head.extension_type == 3) {
            if (!m_stream.skip(head.size)) fail("the file ends within a value; it is cut short");
            return std::nullopt;
        }
        if (head.extension_type != 1) {
            fail(array + " has the extension type " + std::to_string(head.extension_type) +
                 "; 1 was expected");
            return std::nullopt;
        }
        const Head tuple = read_head(), sizes = read_head();
        if (m_fault) return std::nullopt;
        if (tuple.kind != Head::Kind::array || tuple.size != 3 || sizes.kind != Head::Kind::array ||
            sizes.size > most_dimensions) {
            fail(array + " is not stored as shape, type and bytes");
            return std::nullopt;
        }
        TensorInfo info;
        info.name = name;
        for (std::uint64_t n = 0; n < sizes.size; ++n) {
            const Head size = read_head();
            if (m_fault) return std::nullopt;
            if (size.kind != Head::Kind::integer || size.size > static_cast<std::uint64_t>(INT64_MAX)) {
                fail(array + " has a size that is negative or no whole number");
                return std::nullopt;
            }
            info.shape.push_back(static_cast<std::int64_t>(size.size));
        }
        const std::string type = read_text(64);
        const Head bytes = read_head();
        if (m_fault) return std::nullopt;
        const auto dtype = dtype_of_array_name(type);
        if (!dtype) {
            fail(array + " has the type " + in_quotes(type, 40) + ", which is not known");
            return std::nullopt;
        }
        info.dtype = *dtype;
        const auto count = element_count(info.shape);
        const auto wanted = count ? stored_bytes(info.dtype, *count) : std::nullopt;
        info.begin = m_stream.position();
        if (bytes.kind != Head::Kind::bytes || !wanted || bytes.size != *wanted ||
            info.begin + bytes.size != end) {
            fail(array + " of shape " + shape_text(info.shape) + " and type " + type + " has " +
                 std::to_string(bytes.size) + " bytes, but " +
                 (wanted ? std::to_string(*wanted) : std::string("more than 2^64")) + " were expected");
            return std::nullopt;
        }
        info.end = end;
        if (!m_stream.skip(bytes.size)) fail("the file ends within an array; it is cut short");
        return info;
    }

    /// {mark: True, "shape": {"0": rows, "1": columns}, "chunks": {"0": array, "1": array, ...}}
    void read_chunked(std::uint64_t entries, const std::string& name)
    {
        const std::string array = "the array " + in_quotes(name) + ", which is stored in chunks,";
        read_value({}, 0, true); // True
        std::map<std::uint64_t, std::uint64_t> sizes;
        std::map<std::uint64_t, TensorInfo> chunks;
        for (std::uint64_t n = 1; n < entries && !m_fault; ++n) {
            const std::string key = read_text(longest_key);
            const Head map = read_head();
            if (m_fault) return;
            if (map.kind != Head::Kind::map || (key != "shape" && key != "chunks"))
                return fail(array + " has the part " + in_quotes(key, 40));
            for (std::uint64_t k = 0; k < map.size && !m_fault; ++k) {
                const std::string number = read_text(20);
                if (number.empty() || number.size() > 9 ||
                    number.find_first_not_of("0123456789") != std::string::npos)
                    return fail(array + " numbers its parts by " + in_quotes(number, 20));
                const std::uint64_t index = std::stoull(number);
                const Head value = read_head();
                if (m_fault) return;
                if (key == "shape") {
                    if (value.kind != Head::Kind::integer ||
                        value.size > static_cast<std::uint64_t>(INT64_MAX))
                        return fail(array + " has a size that is no whole number");
                    sizes[index] = value.size;
                } else {
                    if (value.kind != Head::Kind::extension)
                        return fail(array + " has a chunk that is no array");
                    auto chunk = read_extension(value, name);
                    if (!chunk) return fail(array + " has a chunk that is no array");
                    chunks.insert_or_assign(index, *std::move(chunk));
                }
            }
        }
        if (m_fault) return;
        TensorInfo info;
        info.name = name;
        std::uint64_t stored = 0;
        for (const auto& [index, chunk] : chunks) {
            if (info.runs.empty()) info.dtype = chunk.dtype;
            if (index != info.runs.size() || chunk.dtype != info.dtype)
                return fail(array + " lacks a chunk or mixes types");
            const std::uint64_t elements = *element_count(chunk.shape);
            info.runs.push_back({0, chunk.begin, elements});
            stored += elements;
        }
        for (const auto& [index, size] : sizes) {
            if (index != info.shape.size()) return fail(array + " lacks one of its sizes");
            info.shape.push_back(static_cast<std::int64_t>(size));
        }
        const auto count = element_count(info.shape);
        if (!count || *count != stored || info.runs.empty())
            return fail(array + " has shape " + shape_text(info.shape) + ", but its chunks hold " +
                        std::to_string(stored) + " elements");
        add(std::move(info));
    }

    const ByteSource& m_source;
    TensorFile& m_file;
    ByteStream m_stream;
    std::optional<Error> m_fault;
};

} // namespace

bool is_flax(const ByteSource& source)
{
    std::array<std::byte, 6> start{};
    if (source.size() < start.size() || !source.read(0, start)) return false;
    const auto byte = [&](std::size_t n) { return std::to_integer<unsigned>(start[n]); };
    std::size_t at = 1;
    if (byte(0) == 0xde)
        at = 3;
    else if (byte(0) == 0xdf)
        at = 5;
    else if (byte(0) < 0x81 || byte(0) > 0x8f)
        return false;
    return (byte(at) >= 0xa1 && byte(at) <= 0xbf) || byte(at) == 0xd9 || byte(at) == 0xda || byte(at) == 0xdb;
}

Result<TensorFile> open_flax(const std::shared_ptr<const ByteSource>& source, const RunContext& ctx)
{
    if (ctx.cancelled()) return cancelled_error("opening a checkpoint");
    TensorFile file;
    file.format = "flax_msgpack";
    file.sources.push_back(source);
    if (auto done = FlaxReader(*source, file).run(); !done) return done.error();
    if (file.tensors.empty()) file.warnings.push_back(in_quotes(source->name()) + " holds no arrays");
    return file;
}

} // namespace posiscope::core
