// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/tensorflow_format.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <snappy.h>

#include "core/base/checked_math.h"
#include "core/base/text.h"
#include "core/checkpoint/endian.h"
#include "core/checkpoint/protobuf_wire.h"

namespace posiscope::core {
namespace {

constexpr std::size_t footer_size = 48;
constexpr std::size_t block_trailer = 5; // type of compression and check sum
constexpr std::size_t most_dimensions = 32;
constexpr std::uint64_t most_table_bytes = 256'000'000;
constexpr std::string_view index_ending = ".index";

struct TypeCode {
    std::uint64_t code;
    DType dtype;
};
constexpr std::array type_codes{
    TypeCode{1, DType::f32},  TypeCode{2, DType::f64},      TypeCode{3, DType::i32},
    TypeCode{4, DType::u8},   TypeCode{5, DType::i16},      TypeCode{6, DType::i8},
    TypeCode{9, DType::i64},  TypeCode{10, DType::boolean}, TypeCode{14, DType::bf16},
    TypeCode{17, DType::u16}, TypeCode{19, DType::f16},     TypeCode{22, DType::u32},
    TypeCode{23, DType::u64}, TypeCode{24, DType::f8_e5m2}, TypeCode{25, DType::f8_e4m3},
};

/// Endings of names that training adds beside the weights.
bool is_training_state(std::string_view name)
{
    if (name.find(".OPTIMIZER_SLOT") != std::string_view::npos) return true;
    const std::size_t slash = name.rfind('/');
    const std::string_view last = slash == std::string_view::npos ? name : name.substr(slash + 1);
    for (const std::string_view ending :
         {"adam_m", "adam_v", "Adam", "Adam_1", "Momentum", "Adagrad", "RMSProp", "RMSProp_1", "lamb_m",
          "lamb_v", "global_step", "save_counter", "beta1_power", "beta2_power",
          "_CHECKPOINTABLE_OBJECT_GRAPH", "good_steps", "loss_scale"})
        if (last == ending) return true;
    return name.starts_with("save_counter/") || name.starts_with("optimizer/") ||
           name.starts_with("global_step/");
}

/// Little reader over bytes in memory; after the end everything is a fault.
class Cursor {
public:
    explicit Cursor(std::string_view bytes) : m_bytes(bytes) {}

    std::optional<std::uint64_t> varint()
    {
        std::uint64_t value = 0;
        for (unsigned n = 0; n < 10 && !m_bytes.empty(); ++n) {
            const auto byte = static_cast<unsigned char>(m_bytes.front());
            m_bytes.remove_prefix(1);
            value |= static_cast<std::uint64_t>(byte & 0x7Fu) << (7 * n);
            if ((byte & 0x80u) == 0) return value;
        }
        return std::nullopt;
    }
    std::optional<std::string_view> bytes(std::uint64_t count)
    {
        if (count > m_bytes.size()) return std::nullopt;
        const std::string_view out = m_bytes.substr(0, static_cast<std::size_t>(count));
        m_bytes.remove_prefix(out.size());
        return out;
    }
    [[nodiscard]] bool empty() const { return m_bytes.empty(); }

private:
    std::string_view m_bytes;
};

/// Key of one partition of a variable, as TensorFlow orders keys.
std::string partition_key(std::string_view name,
                          const std::vector<std::pair<std::int64_t, std::int64_t>>& slice)
{
    const auto add_number = [](std::string& key, std::uint64_t value) {
        std::string digits;
        for (; value > 0; value >>= 8u) digits.insert(digits.begin(), static_cast<char>(value & 0xFFu));
        key += static_cast<char>(digits.size());
        key += digits;
    };
    const auto add_signed = [](std::string& key, std::int64_t value) {
        const auto magnitude = static_cast<std::uint64_t>(value < 0 ? ~value : value);
        unsigned length = 1;
        while (length < 10 && (length * 7 - 1 >= 64 ? 0 : magnitude >> (length * 7 - 1)) != 0) ++length;
        std::array<unsigned char, 10> all{};
        const auto bits = static_cast<std::uint64_t>(value);
        for (unsigned n = 0; n < 10; ++n)
            all[9 - n] = n < 8 ? static_cast<unsigned char>(bits >> (8 * n)) : value < 0 ? 0xFF : 0;
        constexpr std::array<std::pair<unsigned, unsigned>, 11> headers{{{0, 0},
                                                                         {0x80, 0},
                                                                         {0xc0, 0},
                                                                         {0xe0, 0},
                                                                         {0xf0, 0},
                                                                         {0xf8, 0},
                                                                         {0xfc, 0},
                                                                         {0xfe, 0},
                                                                         {0xff, 0},
                                                                         {0xff, 0x80},
                                                                         {0xff, 0xc0}}};
        all[10 - length] = static_cast<unsigned char>(all[10 - length] ^ headers[length].first);
        if (length > 1)
            all[11 - length] = static_cast<unsigned char>(all[11 - length] ^ headers[length].second);
        for (unsigned n = 10 - length; n < 10; ++n) key += static_cast<char>(all[n]);
    };
    std::string key;
    add_number(key, 0);
    for (const char c : name) {
        key += c;
        if (c == '\0') key += '\xff';
        if (c == '\xff') key += '\0';
    }
    key += std::string_view("\0\x01", 2);
    add_number(key, slice.size());
    for (const auto& [start, length] : slice) {
        add_signed(key, start);
        add_signed(key, length);
    }
    return key;
}

/// One entry of the index.
struct Entry {
    std::uint64_t type = 0;
    Shape shape;
    std::uint64_t shard = 0, offset = 0, size = 0;
    std::optional<std::uint32_t> check_sum;
    std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>>
        slices; ///< (start, length) per axis; length -1: all
};

class BundleReader {
public:
    BundleReader(const WeightFile& input, TensorFile& file)
        : m_input(input), m_source(*input.source), m_file(file)
    {
    }

    Result<void> run(const RunContext& ctx)
    {
        if (auto done = read_table(); !done) return done;
        const auto header = m_entries.find("");
        if (header == m_entries.end()) return fault("the index has no header entry");
        if (auto done = read_header(header->second); !done) return done;
        for (const auto& [name, value] : m_entries) {
            if (ctx.cancelled()) return cancelled_error("opening a checkpoint");
            if (name.empty() || name.front() == '\0' || is_training_state(name)) continue;
            if (auto done = add_variable(name, value); !done) return done;
        }
        return {};
    }

private:
    [[nodiscard]] Error fault(const std::string& what) const
    {
        return Error{ErrorCode::corrupt_file, in_quotes(m_source.name()) + ": " + what, "TensorFlow index"};
    }

    struct Handle {
        std::uint64_t offset = 0, size = 0;
    };

    static std::optional<Handle> read_handle(Cursor& cursor)
    {
        const auto offset = cursor.varint();
        const auto size = offset ? cursor.varint() : std::nullopt;
        if (!size) return std::nullopt;
        return Handle{*offset, *size};
    }

    Result<std::string> read_block(const Handle& handle)
    {
        const std::uint64_t room = m_source.size() - footer_size;
        if (handle.offset > room || handle.size > room - handle.offset ||
            room - handle.offset - handle.size < block_trailer)
            return fault("a block of the index is said to be " + std::to_string(handle.size) +
                         " bytes at byte " + std::to_string(handle.offset) + " of a file of " +
                         std::to_string(m_source.size()));
        std::string block(static_cast<std::size_t>(handle.size + block_trailer), '\0');
        if (auto read = m_source.read(handle.offset, std::as_writable_bytes(std::span(block))); !read)
            return read.error();
        const auto compression = static_cast<unsigned char>(block[static_cast<std::size_t>(handle.size)]);
        block.resize(static_cast<std::size_t>(handle.size));
        if (compression == 0) return block;
        if (compression != 1)
            return fault("a block of the index is packed by the unknown method " +
                         std::to_string(compression));
        std::size_t size = 0;
        std::string unpacked;
        // Snappy packs at most 21 to 1 or so; a claim far beyond that is a fault.
        if (!snappy::GetUncompressedLength(block.data(), block.size(), &size) || size / 64 > block.size() ||
            !snappy::Uncompress(block.data(), block.size(), &unpacked))
            return fault("a packed block of the index is damaged");
        return unpacked;
    }

    /// Keys and values of a block, in order.
    Result<void> read_entries(const std::string& block,
                              std::vector<std::pair<std::string, std::string>>& entries)
    {
        const auto damaged = [&] { return fault("a block of the index is damaged"); };
        if (block.size() < 4) return damaged();
        const auto bytes = std::as_bytes(std::span(block));
        const std::uint64_t restarts = little_endian<4>(bytes, block.size() - 4);
        if (restarts > (block.size() - 4) / 4)
            return fault("a block of the index claims " + std::to_string(restarts) + " restart points");
        Cursor cursor(
            std::string_view(block).substr(0, block.size() - 4 - static_cast<std::size_t>(restarts) * 4));
        std::string key;
        while (!cursor.empty()) {
            const auto shared = cursor.varint();
            const auto own = shared ? cursor.varint() : std::nullopt;
            const auto length = own ? cursor.varint() : std::nullopt;
            if (!length || *shared > key.size()) return damaged();
            const auto rest = cursor.bytes(*own);
            const auto value = rest ? cursor.bytes(*length) : std::nullopt;
            if (!value) return damaged();
            key = key.substr(0, static_cast<std::size_t>(*shared)) + std::string(*rest);
            // Keys share their beginnings: a small block could grow into much text.
            m_table_bytes += key.size() + value->size();
            if (m_table_bytes > most_table_bytes)
                return fault("the index holds more than " + std::to_string(most_table_bytes) + " bytes");
            entries.emplace_back(key, std::string(*value));
        }
        return {};
    }

    Result<void> read_table()
    {
        if (m_source.size() < footer_size)
            return fault("the file has " + std::to_string(m_source.size()) + " bytes; an index ends with " +
                         std::to_string(footer_size) + " bytes of its own; it is cut short");
        std::string footer(footer_size, '\0');
        if (auto read =
                m_source.read(m_source.size() - footer_size, std::as_writable_bytes(std::span(footer)));
            !read)
            return read;
        if (!is_tensorflow_index(m_source)) return fault("the file does not end with the mark of an index");
        Cursor cursor{std::string_view(footer).substr(0, 40)};
        const auto meta = read_handle(cursor);
        const auto index = meta ? read_handle(cursor) : std::nullopt;
        if (!index) return fault("the place of the index block cannot be read");
        const auto block = read_block(*index);
        if (!block) return block.error();
        std::vector<std::pair<std::string, std::string>> blocks, entries;
        if (auto done = read_entries(*block, blocks); !done) return done;
        for (const auto& [last_key, value] : blocks) {
            Cursor place(value);
            const auto handle = read_handle(place);
            if (!handle) return fault("the place of a block cannot be read");
            const auto content = read_block(*handle);
            if (!content) return content.error();
            entries.clear();
            if (auto done = read_entries(*content, entries); !done) return done;
            for (auto& [key, entry] : entries) m_entries.insert_or_assign(std::move(key), std::move(entry));
        }
        return {};
    }

    Result<void> read_header(const std::string& value)
    {
        const auto source = memory_source("header", std::as_bytes(std::span(value)));
        WireReader fields(*source, 0, source->size());
        std::uint64_t order = 0;
        while (const auto field = fields.next()) {
            if (field->number == 1) m_shards = field->value;
            if (field->number == 2) order = field->value;
        }
        if (!fields.fault().empty()) return fault("the header entry " + fields.fault());
        if (m_shards == 0 || m_shards > 100'000)
            return fault("the header entry claims " + std::to_string(m_shards) + " data files");
        m_big_endian = order == 1;
        m_shard_source.assign(static_cast<std::size_t>(m_shards), SIZE_MAX);
        return {};
    }

    Result<Entry> read_entry(const std::string& name, const std::string& value)
    {
        const std::string tensor = "tensor " + in_quotes(name);
        const auto source = memory_source("entry", std::as_bytes(std::span(value)));
        WireReader fields(*source, 0, source->size());
        Entry entry;
        while (const auto field = fields.next()) {
            switch (field->number) {
            case 1: entry.type = field->value; break;
            case 2: {
                if (field->kind != WireField::Kind::bytes) break;
                WireReader shape(*source, field->begin, field->begin + field->size);
                while (const auto dim = shape.next()) {
                    if (dim->number != 2 || dim->kind != WireField::Kind::bytes) continue;
                    WireReader parts(*source, dim->begin, dim->begin + dim->size);
                    std::uint64_t size = 0;
                    while (const auto part = parts.next())
                        if (part->number == 1) size = part->value;
                    if (size > static_cast<std::uint64_t>(INT64_MAX))
                        return fault(tensor + " has a negative size");
                    entry.shape.push_back(static_cast<std::int64_t>(size));
                    if (entry.shape.size() > most_dimensions)
                        return fault(tensor + " has more than " + std::to_string(most_dimensions) +
                                     " dimensions");
                }
                break;
            }
            case 3: entry.shard = field->value; break;
            case 4: entry.offset = field->value; break;
            case 5: entry.size = field->value; break;
            case 6:
                // The sum is stored turned and shifted, so that sums of sums are not taken for plain ones.
                if (field->kind == WireField::Kind::fixed32)
                    entry.check_sum = std::rotl(static_cast<std::uint32_t>(field->value) - 0xa282ead8u, 15);
                break;
            case 7: {
                if (field->kind != WireField::Kind::bytes) break;
                WireReader slice(*source, field->begin, field->begin + field->size);
                std::vector<std::pair<std::int64_t, std::int64_t>> axes;
                while (const auto extent = slice.next()) {
                    if (extent->number != 1 || extent->kind != WireField::Kind::bytes) continue;
                    WireReader parts(*source, extent->begin, extent->begin + extent->size);
                    std::pair<std::int64_t, std::int64_t> axis{0, -1};
                    while (const auto part = parts.next()) {
                        if (part->number == 1) axis.first = static_cast<std::int64_t>(part->value);
                        if (part->number == 2) axis.second = static_cast<std::int64_t>(part->value);
                    }
                    axes.push_back(axis);
                    if (axes.size() > most_dimensions) return fault(tensor + " has too many dimensions");
                }
                entry.slices.push_back(std::move(axes));
                break;
            }
            default: break;
            }
        }
        if (!fields.fault().empty()) return fault(tensor + ": its entry " + fields.fault());
        return entry;
    }

    Result<std::size_t> shard_source(std::uint64_t shard, const std::string& tensor)
    {
        if (shard >= m_shards)
            return fault(tensor + " is in data file " + std::to_string(shard) + " of " +
                         std::to_string(m_shards));
        std::size_t& source = m_shard_source[static_cast<std::size_t>(shard)];
        if (source != SIZE_MAX) return source;
        std::array<char, 64> ending{};
        std::snprintf(ending.data(), ending.size(), ".data-%05u-of-%05u", static_cast<unsigned>(shard),
                      static_cast<unsigned>(m_shards));
        std::string name = m_input.name;
        if (name.ends_with(index_ending)) name.resize(name.size() - index_ending.size());
        auto opened = m_input.store->open(name + ending.data());
        if (!opened)
            return Error{opened.error().code,
                         in_quotes(m_source.name()) + ": " + tensor + ": " + opened.error().message,
                         "TensorFlow checkpoint"};
        source = m_file.sources.size();
        m_file.sources.push_back(*opened);
        m_file.files.push_back(*std::move(opened));
        return source;
    }

    /// Where the bytes of an entry are, held against the data file.
    Result<TensorRun> place(const std::string& name, const Entry& entry, DType dtype)
    {
        const std::string tensor = "tensor " + in_quotes(name);
        const auto count = element_count(entry.shape);
        const auto bytes = count ? stored_bytes(dtype, *count) : std::nullopt;
        if (!bytes)
            return fault(tensor + ": shape " + shape_text(entry.shape) + " is too large for any file");
        if (entry.size != *bytes)
            return fault(tensor + " of shape " + shape_text(entry.shape) + " takes " +
                         std::to_string(*bytes) + " bytes, but " + std::to_string(entry.size) +
                         " are listed");
        const auto source = shard_source(entry.shard, tensor);
        if (!source) return source.error();
        const ByteSource& data = *m_file.sources[*source];
        if (entry.offset > data.size() || *bytes > data.size() - entry.offset)
            return fault(tensor + " claims bytes " + std::to_string(entry.offset) + ".." +
                         std::to_string(entry.offset + *bytes) + " of " + in_quotes(data.name()) +
                         ", which has " + std::to_string(data.size()) + "; it may be cut short");
        return TensorRun{*source, entry.offset, *count};
    }

    Result<void> add_variable(const std::string& name, const std::string& value)
    {
        const std::string tensor = "tensor " + in_quotes(name);
        const auto entry = read_entry(name, value);
        if (!entry) return entry.error();
        const auto* type = std::find_if(type_codes.begin(), type_codes.end(),
                                        [&](const TypeCode& row) { return row.code == entry->type; });
        if (type == type_codes.end()) {
            m_file.absent.emplace(
                name, entry->type == 7 ? "holds text" : "has the data type " + std::to_string(entry->type));
            m_file.warnings.push_back(
                tensor + " in " + in_quotes(m_source.name()) +
                (entry->type == 7 ? " holds text" : " has the data type " + std::to_string(entry->type)) +
                "; it is left out");
            return {};
        }
        TensorInfo info;
        info.name = name;
        info.dtype = type->dtype;
        info.shape = entry->shape;
        info.big_endian = m_big_endian;
        if (entry->slices.empty()) {
            const auto run = place(name, *entry, info.dtype);
            if (!run) return run.error();
            info.source = run->source;
            info.begin = run->begin;
            info.crc32c = entry->check_sum;
            info.end = run->begin + run->elements * dtype_size(info.dtype);
        } else if (auto done = add_partitions(name, *entry, info); !done) {
            return done;
        }
        m_file.tensors.push_back(std::move(info));
        return {};
    }

    /// Puts the partitions of a variable together, which are cut along its first axis.
    Result<void> add_partitions(const std::string& name, const Entry& whole, TensorInfo& info)
    {
        const std::string tensor = "tensor " + in_quotes(name);
        std::map<std::int64_t, TensorRun> parts;
        for (auto slice : whole.slices) {
            const auto found = m_entries.find(partition_key(name, slice));
            if (found == m_entries.end() || slice.size() != whole.shape.size() || slice.empty())
                return fault(tensor + " is stored in parts, one of which is not in the index");
            const auto part = read_entry(name, found->second);
            if (!part) return part.error();
            for (std::size_t axis = 1; axis < slice.size(); ++axis)
                if (slice[axis].first != 0 ||
                    (slice[axis].second != -1 && slice[axis].second != whole.shape[axis])) {
                    info.fault = "is cut along an axis other than the first, which is not read";
                    return {};
                }
            const auto run = place(name, *part, info.dtype);
            if (!run) return run.error();
            parts.emplace(slice[0].first, *run);
        }
        const auto count = element_count(whole.shape);
        std::uint64_t elements = 0;
        const std::uint64_t row =
            whole.shape[0] > 0 && count ? *count / static_cast<std::uint64_t>(whole.shape[0]) : 0;
        for (const auto& [first, run] : parts) {
            if (first < 0 || static_cast<std::uint64_t>(first) * row != elements) break;
            info.runs.push_back(run);
            elements += run.elements;
        }
        if (!count || elements != *count || info.runs.size() != parts.size())
            return fault(tensor + " of shape " + shape_text(whole.shape) +
                         " is stored in parts that do not fit together");
        return {};
    }

    const WeightFile& m_input;
    const ByteSource& m_source;
    TensorFile& m_file;
    std::map<std::string, std::string> m_entries;
    std::uint64_t m_table_bytes = 0;
    std::uint64_t m_shards = 0;
    bool m_big_endian = false;
    std::vector<std::size_t> m_shard_source;
};

} // namespace

bool is_tensorflow_index(const ByteSource& source)
{
    std::array<std::byte, 8> end{};
    return source.size() >= footer_size && source.read(source.size() - end.size(), end) &&
           little_endian<8>(end, 0) == 0xdb4775248b80fb57u;
}

Result<TensorFile> open_tensorflow(const WeightFile& input, const RunContext& ctx)
{
    TensorFile file;
    file.format = "tensorflow";
    file.files.push_back(input.source);
    if (auto done = BundleReader(input, file).run(ctx); !done) return done.error();
    if (file.tensors.empty()) file.warnings.push_back(in_quotes(input.source->name()) + " lists no tensors");
    return file;
}

} // namespace posiscope::core
