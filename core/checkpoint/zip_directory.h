// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/checkpoint/byte_source.h"

namespace posiscope::core {

/// One record of a zip archive, as its central directory tells.
struct ZipEntry {
    std::string name;
    std::uint64_t header_offset = 0;   ///< of the record's local header
    std::uint64_t compressed_size = 0; ///< bytes in the file
    std::uint64_t size = 0;            ///< bytes of the content
    std::uint32_t crc = 0;
    bool deflated = false;
};

struct ZipDirectory {
    std::vector<ZipEntry> entries; ///< in the directory's order, names unique

    [[nodiscard]] const ZipEntry* find(std::string_view name) const;
};

/// Whether a source begins like a zip archive.
bool is_zip(const ByteSource& source);

/// Reads the central directory, which alone is trusted: sizes in local headers may be missing (data descriptors) and
/// 64-bit sizes stand in its extra fields.
/// Source: PKWARE, ".ZIP File Format Specification" 6.3.10, sections 4.3.12 to 4.3.16 and 4.5.3.
/// @error corrupt_file: no directory, sizes and offsets outside the file, a record twice, encrypted records, an unknown
///        compression
Result<ZipDirectory> read_zip_directory(const ByteSource& source);

/// The content of a record. Nothing is read before its content is; small records are held against their check sum, and
/// so are large ones that are read whole at once. Deflated content is unpacked as it is read, never as a whole.
std::shared_ptr<const ByteSource> zip_record(std::shared_ptr<const ByteSource> archive,
                                             const ZipEntry& entry);

} // namespace posiscope::core
