// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/run_context.h"

namespace posiscope::core {

/// How patient a client is.
struct HttpOptions {
    std::chrono::milliseconds connect_timeout{15'000};
    std::chrono::milliseconds stall_timeout{30'000}; ///< without a byte
    int attempts = 4;
    std::chrono::milliseconds first_pause{
        500}; ///< before the second attempt; doubled before each further one
    std::chrono::milliseconds longest_pause{20'000};
};

/// A stretch of a file behind a URL.
struct HttpRange {
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
    std::vector<std::byte> body; ///< filled by the client
};

/// What an answer's header says of the file.
struct HttpFile {
    std::uint64_t size = 0;
    std::string etag; ///< empty: none
    std::string url;  ///< where redirections led to
    /// The whole file, where the server sends it whole instead of ranges and it is small.
    std::optional<std::vector<std::byte>> whole;
};

/// Fetches ranges of files over HTTPS (plain HTTP from this very machine only). Redirections are followed by hand: the
/// token goes to the host and port of the first URL only. libcurl is loaded when the first client is made.
/// Not for use by several threads at once.
class HttpClient {
public:
    /// @error unsupported_format: libcurl is not installed
    static Result<std::unique_ptr<HttpClient>> create(const HttpOptions& options = {});
    virtual ~HttpClient() = default;

    /// Asks for the first bytes of a file, and so for its size and its mark (ETag).
    /// @param token  sent as "Authorization: Bearer", or empty
    /// @error not_found (404), unreadable: every other answer has its own sentence
    virtual Result<HttpFile> open(const std::string& url, const std::string& token, HttpRange& first,
                                  const RunContext& ctx) = 0;

    /// Fetches ranges of an opened file, several at once; what was received before a failure is kept and only the rest
    /// is asked for again.
    /// @error unreadable, also where the file has changed since it was opened
    virtual Result<void> fetch(const HttpFile& file, const std::string& first_url, const std::string& token,
                               std::span<HttpRange> ranges, const RunContext& ctx) = 0;
};

/// Whether a URL may be asked: https, or http on this machine.
bool is_allowed_url(std::string_view url);

/// "scheme://host:port" of a URL, in lower case and with the port always; empty where it is no URL.
std::string url_origin(std::string_view url);

} // namespace posiscope::core
