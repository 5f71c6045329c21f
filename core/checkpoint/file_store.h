// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/checkpoint/byte_source.h"

namespace posiscope::core {

/// A place that holds the named files of a checkpoint: a folder on disk or a sample inside the program.
class FileStore {
public:
    virtual ~FileStore() = default;

    /// Opens one file by its plain name.
    /// @error not_found where there is none; unreadable
    [[nodiscard]] virtual Result<std::shared_ptr<const ByteSource>> open(std::string_view name) const = 0;
    /// Names of the files here, sorted.
    [[nodiscard]] virtual std::vector<std::string> names() const = 0;
    /// The place itself, for messages.
    [[nodiscard]] virtual std::string name() const = 0;

    [[nodiscard]] bool contains(std::string_view file) const;
};

/// The files of a folder; links are followed. The folder is not read until asked.
std::shared_ptr<const FileStore> folder_store(std::filesystem::path folder);

/// A place with files in memory in front of those of another: the former win.
std::shared_ptr<const FileStore> layered_store(std::map<std::string, std::string, std::less<>> files,
                                               std::shared_ptr<const FileStore> beneath);

/// Whether a name from a file may be opened beside it: no path, no "..", nothing empty.
bool is_plain_file_name(std::string_view name);

/// The names of the samples inside the program ("minilm-l6-first-layer").
std::vector<std::string> embedded_sample_names();

/// The files of an embedded sample.
/// @error not_found, naming those that exist
Result<std::shared_ptr<const FileStore>> embedded_sample(std::string_view name);

/// How an embedded sample is written as a location: "sample:NAME".
inline constexpr std::string_view sample_prefix = "sample:";

} // namespace posiscope::core
