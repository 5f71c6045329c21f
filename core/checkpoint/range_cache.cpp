// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/range_cache.h"

#include <algorithm>
#include <fstream>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "core/base/sha256.h"

namespace posiscope::core {
namespace {

constexpr const char* answer_file = "file.json";

/// Written beside and renamed, so that another process never sees half a file.
void write_whole(const std::filesystem::path& path, const std::string& text)
{
    const std::filesystem::path beside = path.string() + "." + std::to_string(::getpid());
    std::error_code fault;
    {
        std::ofstream out(beside, std::ios::binary | std::ios::trunc);
        out << text;
        out.flush();
        if (!out) {
            out.close();
            std::filesystem::remove(beside, fault);
            return;
        }
    }
    std::filesystem::rename(beside, path, fault);
}

} // namespace

RangeCache::RangeCache(const std::filesystem::path& folder, const std::string& url)
    : m_url(url.substr(0, url.find_first_of("?#")))
{
    if (!folder.empty()) m_folder = folder / sha256_of(m_url).substr(0, 32);
}

RangeCache::~RangeCache()
{
    if (m_descriptor >= 0) ::close(m_descriptor);
}

std::optional<CachedFile> RangeCache::last_answer() const
{
    if (m_folder.empty()) return std::nullopt;
    std::ifstream in(m_folder / answer_file, std::ios::binary);
    std::string text(16'384, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(in.gcount()));
    const auto root = nlohmann::json::parse(text, nullptr, false);
    if (!root.is_object() || !root.contains("size") || !root["size"].is_number_unsigned() ||
        !root.contains("etag") || !root["etag"].is_string())
        return std::nullopt;
    return CachedFile{root["size"].get<std::uint64_t>(), root["etag"].get<std::string>()};
}

void RangeCache::open(const CachedFile& file)
{
    // Without a mark nobody could tell an old stretch from a new one.
    if (m_folder.empty() || file.etag.empty()) return;
    std::error_code fault;
    std::filesystem::create_directories(m_folder, fault);
    const std::string name = sha256_of(file.etag + "\n" + std::to_string(file.size)).substr(0, 32);
    for (std::filesystem::directory_iterator at(m_folder, fault);
         !fault && at != std::filesystem::directory_iterator(); at.increment(fault)) {
        const std::string other = at->path().filename().string();
        std::error_code ignored;
        if (other != answer_file && !other.starts_with(name)) std::filesystem::remove(at->path(), ignored);
    }
    const nlohmann::json answer{{"url", m_url}, {"size", file.size}, {"etag", file.etag}};
    write_whole(m_folder / answer_file, answer.dump(1, ' ', false, nlohmann::json::error_handler_t::replace));
    m_map_file = m_folder / (name + ".ranges");
    m_descriptor = ::open((m_folder / (name + ".data")).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (m_descriptor < 0) return;
    const auto stored = std::filesystem::file_size(m_folder / (name + ".data"), fault);
    std::ifstream in(m_map_file);
    std::uint64_t begin = 0, end = 0;
    while (!fault && in >> begin >> end && m_ranges.size() < 1'000'000)
        if (begin < end && end <= file.size && end <= stored)
            m_ranges[begin] = std::max(m_ranges[begin], end);
}

bool RangeCache::read(std::uint64_t begin, std::span<std::byte> out) const
{
    if (m_descriptor < 0) return false;
    auto at = m_ranges.upper_bound(begin);
    if (at == m_ranges.begin()) return false;
    --at;
    if (at->second < begin + out.size()) return false;
    std::size_t done = 0;
    while (done < out.size()) {
        const ssize_t got =
            ::pread(m_descriptor, out.data() + done, out.size() - done, static_cast<off_t>(begin + done));
        if (got <= 0) return false;
        done += static_cast<std::size_t>(got);
    }
    return true;
}

void RangeCache::write(std::uint64_t begin, std::span<const std::byte> bytes)
{
    if (m_descriptor < 0 || bytes.empty()) return;
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t put = ::pwrite(m_descriptor, bytes.data() + done, bytes.size() - done,
                                     static_cast<off_t>(begin + done));
        if (put <= 0) return;
        done += static_cast<std::size_t>(put);
    }
    // Joined with its neighbours.
    std::uint64_t end = begin + bytes.size();
    auto at = m_ranges.upper_bound(begin);
    if (at != m_ranges.begin() && std::prev(at)->second >= begin) --at;
    while (at != m_ranges.end() && at->first <= end) {
        begin = std::min(begin, at->first);
        end = std::max(end, at->second);
        at = m_ranges.erase(at);
    }
    m_ranges[begin] = end;
    save_map();
}

void RangeCache::save_map() const
{
    std::string text;
    for (const auto& [begin, end] : m_ranges)
        text += std::to_string(begin) + " " + std::to_string(end) + "\n";
    write_whole(m_map_file, text);
}

} // namespace posiscope::core
