// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace posiscope::core {

/// A stretch of a source and where it goes.
struct ByteRange {
    std::uint64_t offset = 0;
    std::span<std::byte> out;
};

/// Bytes that are read in ranges: a file on disk, the samples inside the program, later a file behind HTTPS.
/// Safe to read from several threads at once. Never mapped: a file that shrinks gives an error, not SIGBUS.
class ByteSource {
public:
    virtual ~ByteSource() = default;

    /// Size in bytes when it was opened.
    [[nodiscard]] virtual std::uint64_t size() const = 0;
    /// Where the bytes are, for messages ("models/bert/model.safetensors").
    [[nodiscard]] virtual std::string name() const = 0;

    /// Fills `out` with the bytes from `offset` on.
    /// @error unreadable: outside the source, I/O error, or the source changed since it was opened.
    Result<void> read(std::uint64_t offset, std::span<std::byte> out) const;
    /// Several stretches at once: a source behind a network joins near ones and asks for them together.
    Result<void> read_ranges(std::span<const ByteRange> ranges) const;
    /// The whole source as text; refused where it is longer than `most` bytes.
    Result<std::string> read_text(std::uint64_t most) const;

    /// Bytes read so far.
    [[nodiscard]] std::uint64_t bytes_read() const { return m_bytes_read.load(std::memory_order_relaxed); }

private:
    virtual Result<void> read_range(std::uint64_t offset, std::span<std::byte> out) const = 0;
    virtual Result<void> read_many(std::span<const ByteRange> ranges) const;
    [[nodiscard]] Result<void> check_range(std::uint64_t offset, std::size_t length) const;

    mutable std::atomic<std::uint64_t> m_bytes_read{0};
};

/// Opens a regular file for reading.
/// @error not_found, unreadable (a directory, a device, no permission)
Result<std::shared_ptr<const ByteSource>> open_file(const std::filesystem::path& path);

/// Bytes that live as long as the program.
std::shared_ptr<const ByteSource> memory_source(std::string name, std::span<const std::byte> bytes);

/// Bytes that the source keeps.
std::shared_ptr<const ByteSource> owning_source(std::string name, std::vector<std::byte> bytes);

} // namespace posiscope::core
