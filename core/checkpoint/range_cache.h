// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>

namespace posiscope::core {

/// What is known of a file behind a URL without asking again.
struct CachedFile {
    std::uint64_t size = 0;
    std::string etag;
};

/// The stretches of one remote file that were read before, on disk. A folder for each URL; in it a file for each ETag.
/// Faults of the disk are no errors: what cannot be kept is fetched again. Neither tokens nor queries are written.
class RangeCache {
public:
    /// @param folder  of all caches; empty: nothing is kept
    RangeCache(const std::filesystem::path& folder, const std::string& url);
    ~RangeCache();
    RangeCache(const RangeCache&) = delete;
    RangeCache& operator=(const RangeCache&) = delete;

    /// What the server said when it was asked last.
    [[nodiscard]] std::optional<CachedFile> last_answer() const;
    /// Takes the stretches of this ETag up, and remembers the answer. Files of other ETags go away.
    void open(const CachedFile& file);

    /// Copies bytes from the cache; false where some are missing.
    bool read(std::uint64_t begin, std::span<std::byte> out) const;
    void write(std::uint64_t begin, std::span<const std::byte> bytes);

private:
    void save_map() const;

    std::filesystem::path m_folder;
    std::string m_url;
    int m_descriptor = -1;
    std::filesystem::path m_map_file;
    std::map<std::uint64_t, std::uint64_t> m_ranges; ///< begin -> end, apart from each other
};

} // namespace posiscope::core
