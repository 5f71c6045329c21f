// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include "core/base/result.h"

namespace posiscope::core {

/// Writes a whole file or leaves what was there: the bytes go to a new file in the same folder, are brought to disk,
/// and take the old file's name and permissions. A symbolic link is followed; a device or a pipe is written to
/// straight away.
/// @error not_found (no such folder), unreadable (a folder of that name, no permission, disk full)
Result<void> write_atomically(const std::filesystem::path& path, std::string_view bytes);

/// Takes bytes of a file in their order.
using ByteSink = std::function<Result<void>(std::string_view)>;

/// The same for what is not held in memory as a whole: `produce` hands the bytes to the sink piece by piece. Where it
/// fails, so does this, and what was there stays.
Result<void> write_atomically(const std::filesystem::path& path,
                              const std::function<Result<void>(const ByteSink&)>& produce);

} // namespace posiscope::core
