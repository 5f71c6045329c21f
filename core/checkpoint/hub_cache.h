// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/run_context.h"

namespace posiscope::core {

/// The folder in which Hugging Face's programs keep what they downloaded: HF_HUB_CACHE, or HF_HOME/hub, or
/// huggingface/hub below XDG_CACHE_HOME or ~/.cache. Empty where there is no home.
std::filesystem::path hub_cache_folder();

/// A model in that folder.
struct CachedModel {
    std::string name;        ///< "org/name"
    std::string location;    ///< the folder "models--org--name", or a snapshot inside it: opens it
    std::string revision;    ///< the branches and tags that lead to the snapshot ("main"), or its commit
    std::string family;      ///< model_type of its config; empty: unknown
    std::uint64_t bytes = 0; ///< of the weights in the snapshot that would be opened
};

/// The models of a cache, sorted by name, each with the snapshot that its folder opens before its other ones. Folders that
/// hold no snapshot are left out, and so are other snapshots without weights.
/// @error cancelled
Result<std::vector<CachedModel>> list_hub_cache(const std::filesystem::path& folder, const RunContext& ctx);

/// The snapshot that a folder "models--org--name" points to; the folder itself where it has no snapshots.
/// @param revision  a branch or a commit; empty: main, or the only one there
/// @error not_found
Result<std::filesystem::path> snapshot_folder(const std::filesystem::path& folder,
                                              const std::string& revision = {});

/// "org/name" for a folder inside the cache; empty for others.
std::string hub_model_name(const std::filesystem::path& folder);

} // namespace posiscope::core
