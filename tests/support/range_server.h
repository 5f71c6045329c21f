// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace posiscope::tests {

/// A file that the server has, and how it misbehaves with it.
struct ServedFile {
    std::string content;
    std::string etag = "\"one\"";
    bool ranges = true; ///< false: the whole file, whatever was asked for
    int status = 0;     ///< answered instead of the file, `status_times` times; 0: none
    int status_times = 1'000'000;
    std::string location{}; ///< of a redirection (with a status of 302)
    std::string retry_after{};
    std::string needs_token{};    ///< 401 without it
    int cut_times = 0;            ///< answers that end after half of their body
    int reset_times = 0;          ///< answers that are a reset of the connection
    bool silent = false;          ///< never answers
    std::int64_t range_shift = 0; ///< the answer's range begins so much later than the one asked for
    std::size_t slow_bytes = 0;   ///< sent at a time, with a pause of 20 ms behind them; 0: all at once
    std::uint64_t slow_from = 0;  ///< slow only in ranges that begin there or later
};

struct SeenRequest {
    std::string path, range, authorization;
};

/// A small HTTP server on a free port of 127.0.0.1, for tests of reading over a network.
class RangeServer {
public:
    RangeServer();
    ~RangeServer();
    RangeServer(const RangeServer&) = delete;
    RangeServer& operator=(const RangeServer&) = delete;

    [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(m_port); }
    void serve(const std::string& path, const ServedFile& file);
    [[nodiscard]] std::vector<SeenRequest> requests() const;
    /// Bytes of file content that were sent.
    [[nodiscard]] std::uint64_t bytes_sent() const { return m_sent; }

private:
    void accept_all();
    void answer(int connection);
    bool answer_one(int connection, const std::string& request);

    int m_listener = -1;
    std::uint16_t m_port = 0;
    std::atomic<bool> m_stopped{false};
    std::atomic<std::uint64_t> m_sent{0};
    mutable std::mutex m_mutex;
    std::map<std::string, ServedFile> m_files;
    std::vector<SeenRequest> m_requests;
    std::vector<std::thread> m_workers;
    std::thread m_thread;
};

} // namespace posiscope::tests
