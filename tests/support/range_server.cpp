// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/range_server.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string_view>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace posiscope::tests {
namespace {

std::string header_of(const std::string& request, const std::string& name)
{
    std::string low = request;
    for (char& c : low)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    const std::size_t at = low.find("\r\n" + name + ":");
    if (at == std::string::npos) return {};
    const std::size_t begin = request.find_first_not_of(' ', at + name.size() + 3);
    return request.substr(begin, request.find("\r\n", begin) - begin);
}

/// Whether the other side took all.
bool send_all(int connection, std::string_view bytes)
{
    while (!bytes.empty()) {
        const ssize_t put = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (put <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return true;
}

} // namespace

RangeServer::RangeServer()
{
    m_listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof(address);
    if (m_listener < 0 || ::bind(m_listener, generic, size) != 0 || ::listen(m_listener, 16) != 0 ||
        ::getsockname(m_listener, generic, &size) != 0)
        throw std::runtime_error("no server can be set up on 127.0.0.1");
    m_port = ntohs(address.sin_port);
    m_thread = std::thread([this] { accept_all(); });
}

RangeServer::~RangeServer()
{
    m_stopped = true;
    m_thread.join();
    for (std::thread& worker : m_workers) worker.join();
    ::close(m_listener);
}

void RangeServer::serve(const std::string& path, const ServedFile& file)
{
    const std::lock_guard lock(m_mutex);
    m_files[path] = file;
}

std::vector<SeenRequest> RangeServer::requests() const
{
    const std::lock_guard lock(m_mutex);
    return m_requests;
}

void RangeServer::accept_all()
{
    while (!m_stopped) {
        pollfd waiting{m_listener, POLLIN, 0};
        if (::poll(&waiting, 1, 20) <= 0) continue;
        const int connection = ::accept(m_listener, nullptr, nullptr);
        if (connection >= 0) m_workers.emplace_back([this, connection] { answer(connection); });
    }
}

void RangeServer::answer(int connection)
{
    std::string received;
    while (!m_stopped) {
        const std::size_t end = received.find("\r\n\r\n");
        if (end != std::string::npos) {
            if (!answer_one(connection, received.substr(0, end + 2))) break;
            received.erase(0, end + 4);
            continue;
        }
        pollfd waiting{connection, POLLIN, 0};
        if (::poll(&waiting, 1, 20) <= 0) continue;
        std::array<char, 4096> bytes{};
        const ssize_t got = ::recv(connection, bytes.data(), bytes.size(), 0);
        if (got <= 0) break;
        received.append(bytes.data(), static_cast<std::size_t>(got));
    }
    ::close(connection);
}

bool RangeServer::answer_one(int connection, const std::string& request)
{
    const std::size_t begin = request.find(' ') + 1;
    const SeenRequest seen{request.substr(begin, request.find(' ', begin) - begin),
                           header_of(request, "range"), header_of(request, "authorization")};
    ServedFile file;
    {
        const std::lock_guard lock(m_mutex);
        m_requests.push_back(seen);
        const auto at = m_files.find(seen.path);
        if (at == m_files.end()) {
            file.status = 404;
        } else {
            file = at->second;
            ServedFile& kept = at->second;
            if (kept.status != 0 && kept.status_times-- <= 0) file.status = kept.status = 0;
            if (file.status == 0 && kept.cut_times > 0) --kept.cut_times;
            if (file.status == 0 && kept.reset_times > 0) --kept.reset_times;
        }
    }
    while (file.silent && !m_stopped) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (file.status == 0 && file.reset_times > 0) {
        const linger now{1, 0}; // closing sends a reset
        ::setsockopt(connection, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        return false;
    }
    if (file.status == 0 && !file.needs_token.empty() && seen.authorization != "Bearer " + file.needs_token)
        file.status = 401;
    if (file.status != 0) {
        std::string head = "HTTP/1.1 " + std::to_string(file.status) + " No\r\nContent-Length: 2\r\n";
        if (!file.location.empty()) head += "Location: " + file.location + "\r\n";
        if (!file.retry_after.empty()) head += "Retry-After: " + file.retry_after + "\r\n";
        send_all(connection, head + "\r\nno");
        return true;
    }
    std::uint64_t first = 0, last = 0;
    std::string body = file.content, head;
    if (file.ranges && std::sscanf(seen.range.c_str(), "bytes=%lu-%lu", &first, &last) == 2) {
        first += static_cast<std::uint64_t>(file.range_shift);
        last += static_cast<std::uint64_t>(file.range_shift);
        if (first >= file.content.size()) {
            send_all(connection, "HTTP/1.1 416 No\r\nContent-Length: 0\r\n\r\n");
            return true;
        }
        last = std::min<std::uint64_t>(last, file.content.size() - 1);
        body = file.content.substr(first, last - first + 1);
        head = "HTTP/1.1 206 Partial\r\nContent-Range: bytes " + std::to_string(first) + "-" +
               std::to_string(last) + "/" + std::to_string(file.content.size()) + "\r\n";
    } else {
        head = "HTTP/1.1 200 OK\r\n";
    }
    head += "ETag: " + file.etag + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    if (file.cut_times > 0) body.resize(body.size() / 2);
    if (!send_all(connection, head)) return false;
    const std::size_t at_once =
        file.slow_bytes > 0 && first >= file.slow_from ? file.slow_bytes : body.size();
    for (std::size_t done = 0; done < body.size() && !m_stopped; done += at_once) {
        const auto piece = std::string_view(body).substr(done, at_once);
        if (!send_all(connection, piece)) return false;
        m_sent += piece.size();
        if (at_once < body.size()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return file.cut_times == 0;
}

} // namespace posiscope::tests
