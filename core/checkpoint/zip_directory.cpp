// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/zip_directory.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include <zlib.h>

#include "core/base/text.h"
#include "core/checkpoint/endian.h"

namespace posiscope::core {
namespace {

constexpr std::uint64_t end_record_size = 22;
constexpr std::uint64_t locator_size = 20;
constexpr std::uint64_t end_record_64_size = 56;
constexpr std::uint64_t entry_size = 46;
constexpr std::uint64_t local_header_size = 30;
constexpr std::uint64_t longest_comment = 65'535;
constexpr std::uint64_t small_record = 65'536;

Error zip_error(const ByteSource& source, const std::string& what)
{
    return Error{ErrorCode::corrupt_file, in_quotes(source.name()) + ": " + what, "zip directory"};
}

bool has_signature(std::span<const std::byte> bytes, std::size_t at, char third, char fourth)
{
    return bytes.size() >= at + 4 && bytes[at] == std::byte{'P'} && bytes[at + 1] == std::byte{'K'} &&
           bytes[at + 2] == static_cast<std::byte>(third) && bytes[at + 3] == static_cast<std::byte>(fourth);
}

Result<std::vector<std::byte>> read_bytes(const ByteSource& source, std::uint64_t offset, std::uint64_t size)
{
    std::vector<std::byte> bytes(static_cast<std::size_t>(size));
    if (auto read = source.read(offset, bytes); !read) return read.error();
    return bytes;
}

struct DirectoryPlace {
    std::uint64_t offset = 0, size = 0, entries = 0;
};

/// What the end record at `at` (absolute) says, through its 64-bit kin where there is one.
Result<DirectoryPlace> directory_place(const ByteSource& source, std::span<const std::byte> record,
                                       std::uint64_t at)
{
    DirectoryPlace place{little_endian<4>(record, 16), little_endian<4>(record, 12),
                         little_endian<2>(record, 10)};
    std::uint64_t limit = at;
    if (at >= locator_size) {
        auto locator = read_bytes(source, at - locator_size, locator_size);
        if (!locator) return locator.error();
        if (has_signature(*locator, 0, 6, 7)) {
            const std::uint64_t record_64 = little_endian<8>(*locator, 8);
            if (record_64 > at - locator_size || at - locator_size - record_64 < end_record_64_size)
                return zip_error(source, "the 64-bit end record is said to be at byte " +
                                             std::to_string(record_64) + ", where it cannot be");
            auto wide = read_bytes(source, record_64, end_record_64_size);
            if (!wide) return wide.error();
            if (!has_signature(*wide, 0, 6, 6))
                return zip_error(source,
                                 "there is no 64-bit end record at byte " + std::to_string(record_64));
            place = {little_endian<8>(*wide, 48), little_endian<8>(*wide, 40), little_endian<8>(*wide, 32)};
            limit = record_64;
        }
    }
    if (place.offset > limit || place.size > limit - place.offset)
        return zip_error(source, "the directory is said to be " + std::to_string(place.size) +
                                     " bytes at byte " + std::to_string(place.offset) +
                                     ", but it must end before byte " + std::to_string(limit));
    if (place.entries > place.size / entry_size)
        return zip_error(source, "the directory claims " + std::to_string(place.entries) + " records in " +
                                     std::to_string(place.size) + " bytes");
    return place;
}

Result<DirectoryPlace> find_directory(const ByteSource& source)
{
    const std::uint64_t size = source.size();
    if (size < end_record_size)
        return zip_error(source, "the file ends before the directory of the zip archive");
    const std::uint64_t tail_size = std::min(size, end_record_size + longest_comment);
    // Most archives have no comment: a short look comes first.
    for (const std::uint64_t look : {std::min<std::uint64_t>(size, 4096), tail_size}) {
        auto tail = read_bytes(source, size - look, look);
        if (!tail) return tail.error();
        for (std::size_t at = tail->size() - end_record_size + 1; at-- > 0;) {
            if (!has_signature(*tail, at, 5, 6)) continue;
            // Bytes that only look like an end record rarely have a comment that ends with the file.
            if (at + end_record_size + little_endian<2>(*tail, at + 20) != tail->size()) continue;
            return directory_place(source, std::span(*tail).subspan(at), size - look + at);
        }
        if (look == tail_size) break;
    }
    return zip_error(source, "the zip archive has no directory at its end; the file is cut short");
}

/// The 64-bit values of an extra field, for those of the three that need one.
bool apply_extra_field(std::span<const std::byte> extra, ZipEntry& entry)
{
    constexpr std::uint64_t elsewhere = 0xFFFFFFFF;
    std::array<std::uint64_t*, 3> wanted{&entry.size, &entry.compressed_size, &entry.header_offset};
    const bool needs_more =
        std::any_of(wanted.begin(), wanted.end(), [&](auto* value) { return *value == elsewhere; });
    if (!needs_more) return true;
    for (std::size_t at = 0; at + 4 <= extra.size();) {
        const std::uint64_t id = little_endian<2>(extra, at), length = little_endian<2>(extra, at + 2);
        at += 4;
        if (length > extra.size() - at) return false;
        if (id == 1) {
            std::size_t value_at = at;
            for (std::uint64_t* value : wanted) {
                if (*value != elsewhere) continue;
                if (value_at + 8 > at + length) return false;
                *value = little_endian<8>(extra, value_at);
                value_at += 8;
            }
            return true;
        }
        at += static_cast<std::size_t>(length);
    }
    return false;
}

/// The content of one record, stored or deflated.
class ZipRecord final : public ByteSource {
public:
    ZipRecord(std::shared_ptr<const ByteSource> archive, const ZipEntry& entry)
        : m_archive(std::move(archive)), m_entry(entry)
    {
    }
    ~ZipRecord() override
    {
        if (m_inflating) ::inflateEnd(&m_stream);
    }
    ZipRecord(const ZipRecord&) = delete;
    ZipRecord& operator=(const ZipRecord&) = delete;

    [[nodiscard]] std::uint64_t size() const override { return m_entry.size; }
    [[nodiscard]] std::string name() const override { return m_archive->name() + "/" + m_entry.name; }

private:
    [[nodiscard]] Error fault(const std::string& what) const
    {
        return zip_error(*m_archive, "record " + in_quotes(m_entry.name) + " " + what);
    }

    Result<void> read_range(std::uint64_t offset, std::span<std::byte> out) const override
    {
        const ByteRange range{offset, out};
        return read_many({&range, 1});
    }

    Result<void> read_many(std::span<const ByteRange> ranges) const override
    {
        {
            const std::lock_guard lock(m_mutex);
            if (auto found = find_content(); !found) return found;
            // A look at the header of an array is no reason to read it whole.
            const bool wants_most = std::any_of(ranges.begin(), ranges.end(), [&](const ByteRange& range) {
                return range.out.size() >= m_entry.size / 2;
            });
            if (m_loaded || (m_entry.size <= small_record && wants_most)) {
                if (auto loaded = load_small(); !loaded) return loaded;
                for (const ByteRange& range : ranges)
                    if (!range.out.empty())
                        std::memcpy(range.out.data(), m_content.data() + range.offset, range.out.size());
                return {};
            }
            if (m_entry.deflated) {
                for (const ByteRange& range : ranges)
                    if (auto done = inflate_range(range.offset, range.out); !done) return done;
                return {};
            }
        }
        std::vector<ByteRange> moved(ranges.begin(), ranges.end());
        for (ByteRange& range : moved) range.offset += m_begin;
        if (auto done = m_archive->read_ranges(moved); !done) return done;
        for (const ByteRange& range : ranges)
            if (range.out.size() == m_entry.size)
                if (auto right = check_sum(range.out); !right) return right;
        return {};
    }

    Result<void> find_content() const
    {
        if (m_begin != 0) return {};
        std::array<std::byte, local_header_size> header{};
        if (auto read = m_archive->read(m_entry.header_offset, header); !read) return read;
        if (!has_signature(header, 0, 3, 4))
            return fault("has no header at byte " + std::to_string(m_entry.header_offset));
        const std::uint64_t begin = m_entry.header_offset + local_header_size + little_endian<2>(header, 26) +
                                    little_endian<2>(header, 28);
        if (begin > m_archive->size() || m_entry.compressed_size > m_archive->size() - begin)
            return fault("claims " + std::to_string(m_entry.compressed_size) + " bytes from byte " +
                         std::to_string(begin) + " on, beyond the end of the file");
        m_begin = begin;
        return {};
    }

    [[nodiscard]] Result<void> check_sum(std::span<const std::byte> content) const
    {
        const auto sum = ::crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size());
        if (static_cast<std::uint32_t>(sum) != m_entry.crc)
            return fault("does not match its check sum; the file is damaged");
        return {};
    }

    Result<void> load_small() const
    {
        if (m_loaded) return {};
        std::vector<std::byte> content(static_cast<std::size_t>(m_entry.size));
        if (m_entry.deflated) {
            if (auto done = inflate_range(0, content); !done) return done;
        } else if (auto done = m_archive->read(m_begin, content); !done) {
            return done;
        }
        if (auto right = check_sum(content); !right) return right;
        m_content = std::move(content);
        m_loaded = true;
        return {};
    }

    Result<void> inflate_range(std::uint64_t offset, std::span<std::byte> out) const
    {
        if (!m_inflating || offset < m_position) {
            if (m_inflating) ::inflateEnd(&m_stream);
            m_stream = {};
            m_inflating = ::inflateInit2(&m_stream, -MAX_WBITS) == Z_OK; // raw deflate data
            if (!m_inflating) return fault("cannot be unpacked: there is too little memory");
            m_position = 0;
            m_taken = 0;
        }
        std::array<std::byte, 32'768> skipped{};
        while (m_position < offset) {
            const auto step = std::min<std::uint64_t>(skipped.size(), offset - m_position);
            if (auto done = inflate_next(std::span(skipped).first(static_cast<std::size_t>(step))); !done)
                return done;
        }
        return inflate_next(out);
    }

    Result<void> inflate_next(std::span<std::byte> out) const
    {
        constexpr std::size_t most_at_once = 1u << 30u; // the library counts in 32 bits
        while (!out.empty()) {
            if (m_stream.avail_in == 0) {
                const auto step = std::min<std::uint64_t>(65'536, m_entry.compressed_size - m_taken);
                m_packed.resize(static_cast<std::size_t>(step));
                if (auto read = m_archive->read(m_begin + m_taken, m_packed); !read) return read;
                m_taken += step;
                m_stream.next_in = reinterpret_cast<Bytef*>(m_packed.data());
                m_stream.avail_in = static_cast<uInt>(step);
            }
            const std::size_t room = std::min(out.size(), most_at_once);
            m_stream.next_out = reinterpret_cast<Bytef*>(out.data());
            m_stream.avail_out = static_cast<uInt>(room);
            const int outcome = ::inflate(&m_stream, Z_NO_FLUSH);
            const std::size_t got = room - m_stream.avail_out;
            m_position += got;
            out = out.subspan(got);
            const bool ended =
                outcome == Z_STREAM_END || (m_stream.avail_in == 0 && m_taken == m_entry.compressed_size);
            if ((outcome != Z_OK && outcome != Z_STREAM_END && outcome != Z_BUF_ERROR) ||
                (ended && got == 0 && !out.empty())) {
                ::inflateEnd(&m_stream);
                m_inflating = false;
                return fault("is damaged: its packed content cannot be unpacked");
            }
        }
        return {};
    }

    std::shared_ptr<const ByteSource> m_archive;
    ZipEntry m_entry;
    mutable std::mutex m_mutex;
    mutable std::uint64_t m_begin = 0; // of the content; 0: not looked up yet
    mutable bool m_loaded = false;
    mutable std::vector<std::byte> m_content; // of a small record
    mutable z_stream m_stream{};
    mutable bool m_inflating = false;
    mutable std::vector<std::byte> m_packed;
    mutable std::uint64_t m_position = 0, m_taken = 0; // in the content; in the packed bytes
};

} // namespace

const ZipEntry* ZipDirectory::find(std::string_view name) const
{
    const auto at = std::find_if(entries.begin(), entries.end(),
                                 [&](const ZipEntry& entry) { return entry.name == name; });
    return at == entries.end() ? nullptr : &*at;
}

bool is_zip(const ByteSource& source)
{
    std::array<std::byte, 4> start{};
    return source.size() >= start.size() && source.read(0, start) &&
           (has_signature(start, 0, 3, 4) || has_signature(start, 0, 5, 6));
}

Result<ZipDirectory> read_zip_directory(const ByteSource& source)
{
    const auto place = find_directory(source);
    if (!place) return place.error();
    const auto bytes = read_bytes(source, place->offset, place->size);
    if (!bytes) return bytes.error();
    const std::span<const std::byte> all(*bytes);
    ZipDirectory directory;
    std::set<std::string, std::less<>> names;
    std::size_t at = 0;
    for (std::uint64_t n = 0; n < place->entries; ++n) {
        if (at + entry_size > all.size() || !has_signature(all, at, 1, 2))
            return zip_error(source, "the directory is damaged at its record " + std::to_string(n));
        const auto name_size = static_cast<std::size_t>(little_endian<2>(all, at + 28));
        const auto extra_size = static_cast<std::size_t>(little_endian<2>(all, at + 30));
        const auto comment_size = static_cast<std::size_t>(little_endian<2>(all, at + 32));
        if (name_size + extra_size + comment_size > all.size() - at - entry_size)
            return zip_error(source, "the directory ends within its record " + std::to_string(n));
        ZipEntry entry;
        entry.name.assign(reinterpret_cast<const char*>(all.data() + at + entry_size), name_size);
        entry.compressed_size = little_endian<4>(all, at + 20);
        entry.size = little_endian<4>(all, at + 24);
        entry.header_offset = little_endian<4>(all, at + 42);
        entry.crc = static_cast<std::uint32_t>(little_endian<4>(all, at + 16));
        const std::string record = "record " + in_quotes(entry.name);
        if (!apply_extra_field(all.subspan(at + entry_size + name_size, extra_size), entry))
            return zip_error(source, record + " has no valid 64-bit sizes");
        if ((little_endian<2>(all, at + 8) & 1u) != 0) return zip_error(source, record + " is encrypted");
        const std::uint64_t method = little_endian<2>(all, at + 10);
        if (method != 0 && method != 8)
            return zip_error(source, record + " is packed by method " + std::to_string(method) +
                                         "; stored and deflated records are read");
        entry.deflated = method == 8;
        if (entry.header_offset > source.size() || source.size() - entry.header_offset < local_header_size ||
            entry.compressed_size > source.size() - entry.header_offset - local_header_size)
            return zip_error(source, record + " claims " + std::to_string(entry.compressed_size) +
                                         " bytes at byte " + std::to_string(entry.header_offset) +
                                         " of a file of " + std::to_string(source.size()));
        if (!entry.deflated && entry.size != entry.compressed_size)
            return zip_error(source, record + " is stored, but has two different sizes");
        // Deflate packs at most 1032 to 1.
        if (entry.size / 1032 > entry.compressed_size)
            return zip_error(source, record + " claims " + std::to_string(entry.size) +
                                         " bytes unpacked from " + std::to_string(entry.compressed_size));
        if (!names.insert(entry.name).second) return zip_error(source, record + " is there twice");
        directory.entries.push_back(std::move(entry));
        at += entry_size + name_size + extra_size + comment_size;
    }
    return directory;
}

std::shared_ptr<const ByteSource> zip_record(std::shared_ptr<const ByteSource> archive, const ZipEntry& entry)
{
    return std::make_shared<ZipRecord>(std::move(archive), entry);
}

} // namespace posiscope::core
