// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/byte_source.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/text.h"
#include "core/checkpoint/reading_scope.h"

namespace posiscope::core {
namespace {

/// pread on an open file. The file's time stamp is compared on every read: a checkpoint that is rewritten in place
/// while it is open would otherwise give a mixture of two files.
class FileSource final : public ByteSource {
public:
    FileSource(int descriptor, const struct stat& status, std::string name)
        : m_descriptor(descriptor), m_size(static_cast<std::uint64_t>(status.st_size)),
          m_modified(status.st_mtim), m_name(std::move(name))
    {
    }
    ~FileSource() override { ::close(m_descriptor); }
    FileSource(const FileSource&) = delete;
    FileSource& operator=(const FileSource&) = delete;

    [[nodiscard]] std::uint64_t size() const override { return m_size; }
    [[nodiscard]] std::string name() const override { return m_name; }

private:
    Result<void> read_range(std::uint64_t offset, std::span<std::byte> out) const override
    {
        // In pieces, so that a table of gigabytes, or a slow disk, can be left in the middle.
        constexpr std::size_t piece = 4'000'000;
        const RunContext& ctx = ReadingScope::current();
        std::size_t done = 0;
        while (done < out.size()) {
            if (ctx.cancelled()) return cancelled_error("reading " + in_quotes(m_name));
            const ssize_t got = ::pread(m_descriptor, out.data() + done, std::min(piece, out.size() - done),
                                        static_cast<off_t>(offset + done));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) return unreadable("cannot be read: " + std::generic_category().message(errno));
            if (got == 0)
                return unreadable("ends at byte " + std::to_string(offset + done) + ", but had " +
                                  std::to_string(m_size) + " bytes when it was opened; open it again");
            done += static_cast<std::size_t>(got);
        }
        struct stat now {};
        if (::fstat(m_descriptor, &now) != 0 || static_cast<std::uint64_t>(now.st_size) != m_size ||
            now.st_mtim.tv_sec != m_modified.tv_sec || now.st_mtim.tv_nsec != m_modified.tv_nsec)
            return unreadable("was changed while it was open; open it again");
        return {};
    }

    [[nodiscard]] Error unreadable(const std::string& what) const
    {
        return Error{ErrorCode::unreadable, in_quotes(m_name) + " " + what, "reading a file"};
    }

    int m_descriptor;
    std::uint64_t m_size;
    timespec m_modified;
    std::string m_name;
};

class MemorySource final : public ByteSource {
public:
    MemorySource(std::string name, std::span<const std::byte> bytes) : m_name(std::move(name)), m_bytes(bytes)
    {
    }

    [[nodiscard]] std::uint64_t size() const override { return m_bytes.size(); }
    [[nodiscard]] std::string name() const override { return m_name; }

private:
    Result<void> read_range(std::uint64_t offset, std::span<std::byte> out) const override
    {
        std::memcpy(out.data(), m_bytes.data() + offset, out.size());
        return {};
    }

    std::string m_name;
    std::span<const std::byte> m_bytes;
};

class OwningSource final : public ByteSource {
public:
    OwningSource(std::string name, std::vector<std::byte> bytes)
        : m_name(std::move(name)), m_bytes(std::move(bytes))
    {
    }

    [[nodiscard]] std::uint64_t size() const override { return m_bytes.size(); }
    [[nodiscard]] std::string name() const override { return m_name; }

private:
    Result<void> read_range(std::uint64_t offset, std::span<std::byte> out) const override
    {
        std::memcpy(out.data(), m_bytes.data() + offset, out.size());
        return {};
    }

    std::string m_name;
    std::vector<std::byte> m_bytes;
};

} // namespace

Result<void> ByteSource::check_range(std::uint64_t offset, std::size_t length) const
{
    if (offset <= size() && length <= size() - offset) return {};
    return Error{ErrorCode::unreadable,
                 in_quotes(name()) + " has " + std::to_string(size()) + " bytes; bytes " +
                     std::to_string(offset) + " to " + std::to_string(offset + length) + " were asked for",
                 "reading a file"};
}

Result<void> ByteSource::read(std::uint64_t offset, std::span<std::byte> out) const
{
    if (auto inside = check_range(offset, out.size()); !inside) return inside;
    if (out.empty()) return {};
    m_bytes_read.fetch_add(out.size(), std::memory_order_relaxed);
    return read_range(offset, out);
}

Result<void> ByteSource::read_ranges(std::span<const ByteRange> ranges) const
{
    std::uint64_t total = 0;
    for (const ByteRange& range : ranges) {
        if (auto inside = check_range(range.offset, range.out.size()); !inside) return inside;
        total += range.out.size();
    }
    if (total == 0) return {};
    m_bytes_read.fetch_add(total, std::memory_order_relaxed);
    return read_many(ranges);
}

Result<void> ByteSource::read_many(std::span<const ByteRange> ranges) const
{
    for (const ByteRange& range : ranges)
        if (!range.out.empty())
            if (auto done = read_range(range.offset, range.out); !done) return done;
    return {};
}

Result<std::string> ByteSource::read_text(std::uint64_t most) const
{
    if (size() > most)
        return Error{ErrorCode::corrupt_file,
                     in_quotes(name()) + " has " + std::to_string(size()) + " bytes; at most " +
                         std::to_string(most) + " are expected of such a file",
                     "reading a text file"};
    std::string text(static_cast<std::size_t>(size()), '\0');
    auto read_all = read(0, std::as_writable_bytes(std::span(text)));
    if (!read_all) return read_all.error();
    return text;
}

Result<std::shared_ptr<const ByteSource>> open_file(const std::filesystem::path& path)
{
    const std::string shown = in_quotes(path.string());
    // O_NONBLOCK: a named pipe must not hang the program; it is refused below.
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        const int reason = errno;
        const bool missing = reason == ENOENT || reason == ENOTDIR;
        return Error{missing ? ErrorCode::not_found : ErrorCode::unreadable,
                     missing ? shown + " does not exist"
                             : shown + " cannot be opened: " + std::generic_category().message(reason),
                     "opening a file"};
    }
    struct stat status {};
    if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
        const bool directory = S_ISDIR(status.st_mode);
        ::close(descriptor);
        return Error{ErrorCode::unreadable,
                     shown + " is " + (directory ? "a folder" : "not a regular file") +
                         "; a file was expected",
                     "opening a file"};
    }
    return std::shared_ptr<const ByteSource>(std::make_shared<FileSource>(descriptor, status, path.string()));
}

std::shared_ptr<const ByteSource> memory_source(std::string name, std::span<const std::byte> bytes)
{
    return std::make_shared<MemorySource>(std::move(name), bytes);
}

std::shared_ptr<const ByteSource> owning_source(std::string name, std::vector<std::byte> bytes)
{
    return std::make_shared<OwningSource>(std::move(name), std::move(bytes));
}

} // namespace posiscope::core
