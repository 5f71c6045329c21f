// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/checkpoint/file_store.h"
#include "core/checkpoint/http_client.h"

namespace posiscope::core {

/// How locations on the Hugging Face Hub and elsewhere on the network begin.
inline constexpr std::string_view hub_prefix = "hf://";

/// What the environment says about the network.
struct RemoteSettings {
    std::string endpoint = "https://huggingface.co"; ///< HF_ENDPOINT
    std::string token;                               ///< HF_TOKEN; sent to the endpoint's own host only
    bool offline = false;                            ///< HF_HUB_OFFLINE
    std::filesystem::path cache;                     ///< what was read before; empty: nothing is kept
    HttpOptions http;

    static RemoteSettings from_environment();
};

/// "hf://org/name@revision/file"
struct HubLocation {
    std::string model; ///< "org/name", or "name" of the oldest models
    std::string revision = "main";
    std::string file; ///< empty: the model as a whole
};

/// @error invalid_argument
Result<HubLocation> parse_hub_location(std::string_view location);

/// The files below a URL ("https://host/path/"). Files are read in ranges, and what was read is kept in the cache under the
/// file's mark (ETag), so that it is not fetched twice and can be read without a network.
/// @param shown  the place in messages ("hf://org/name")
Result<std::shared_ptr<const FileStore>> remote_store(const std::string& url, const std::string& shown,
                                                      const RemoteSettings& settings);

/// Whether a location is on the network: "hf://..." or a URL.
bool is_remote_location(std::string_view location);

} // namespace posiscope::core
