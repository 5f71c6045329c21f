// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/remote_store.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/checkpoint/range_cache.h"
#include "core/checkpoint/reading_scope.h"

namespace posiscope::core {
namespace {

constexpr std::uint64_t first_bytes = 32'768; // most headers of small models, and the marks of all formats
constexpr std::uint64_t near_bytes = 32'768;  // what lies between two stretches that are fetched as one
constexpr std::uint64_t largest_request = 16'000'000;

std::string variable(const char* name)
{
    const char* value = std::getenv(name);
    return value == nullptr ? std::string{} : std::string(trimmed(value));
}

/// One client for all files of a store: connections are kept open, and one request is under way at a time.
struct SharedClient {
    std::unique_ptr<HttpClient> client;
    std::timed_mutex mutex;
};

/// Waits for the mutex, but no longer than the run goes on: another thread may hold it through a long download.
/// The lock is not held where the run was stopped.
std::unique_lock<std::timed_mutex> lock_unless_stopped(std::timed_mutex& mutex, const RunContext& ctx)
{
    constexpr std::chrono::milliseconds step{20};
    std::unique_lock lock(mutex, std::defer_lock);
    while (!ctx.cancelled() && !lock.try_lock_for(step)) {
    }
    return lock;
}

Error stopped_reading(const std::string& shown)
{
    return cancelled_error("reading " + in_quotes(shown));
}

class RemoteSource final : public ByteSource {
public:
    RemoteSource(std::shared_ptr<SharedClient> shared, std::string url, std::string shown, std::string token,
                 HttpFile file, std::unique_ptr<RangeCache> cache, bool offline)
        : m_shared(std::move(shared)), m_url(std::move(url)), m_shown(std::move(shown)),
          m_token(std::move(token)), m_file(std::move(file)), m_cache(std::move(cache)), m_offline(offline)
    {
    }

    [[nodiscard]] std::uint64_t size() const override { return m_file.size; }
    [[nodiscard]] std::string name() const override { return m_shown; }

    void keep_start(std::vector<std::byte> start) { m_start = std::move(start); }

private:
    Result<void> read_range(std::uint64_t offset, std::span<std::byte> out) const override
    {
        const ByteRange range{offset, out};
        return read_many({&range, 1});
    }

    Result<void> read_many(std::span<const ByteRange> ranges) const override
    {
        const RunContext& ctx = ReadingScope::current();
        const auto lock = lock_unless_stopped(m_shared->mutex, ctx);
        if (!lock) return stopped_reading(m_shown);
        std::vector<ByteRange> missing;
        for (const ByteRange& range : ranges)
            if (!range.out.empty() && !read_kept(range)) missing.push_back(range);
        if (missing.empty()) return {};
        if (m_offline)
            return Error{ErrorCode::unreadable,
                         in_quotes(m_shown) +
                             " was not read this far before, and HF_HUB_OFFLINE forbids the network; bytes " +
                             std::to_string(missing.front().offset) + " to " +
                             std::to_string(missing.front().offset + missing.front().out.size()) +
                             " are missing",
                         "reading over the network"};
        std::sort(missing.begin(), missing.end(),
                  [](const ByteRange& a, const ByteRange& b) { return a.offset < b.offset; });
        std::vector<HttpRange> wanted;
        for (const ByteRange& range : missing) {
            const std::uint64_t end = range.offset + range.out.size();
            if (!wanted.empty() && range.offset <= wanted.back().begin + wanted.back().size + near_bytes &&
                std::max(end, wanted.back().begin + wanted.back().size) - wanted.back().begin <=
                    largest_request)
                wanted.back().size =
                    std::max(end, wanted.back().begin + wanted.back().size) - wanted.back().begin;
            else
                wanted.push_back({range.offset, range.out.size(), {}});
        }
        // Headers are read in small pieces, one behind the other: a little more now saves requests.
        if (wanted.size() == 1 && wanted[0].size < first_bytes / 2)
            wanted[0].size = std::min(first_bytes / 2, m_file.size - wanted[0].begin);
        if (auto done = m_shared->client->fetch(m_file, m_url, m_token, wanted, ctx); !done) return done;
        for (const HttpRange& got : wanted) {
            m_cache->write(got.begin, got.body);
            for (const ByteRange& range : missing) {
                const std::uint64_t end = range.offset + range.out.size();
                if (range.offset >= got.begin && end <= got.begin + got.size)
                    std::copy_n(got.body.begin() + static_cast<std::ptrdiff_t>(range.offset - got.begin),
                                range.out.size(), range.out.begin());
            }
            if (wanted.size() == 1 && got.body.size() <= first_bytes) {
                m_recent_begin = got.begin;
                m_recent = got.body;
            }
        }
        return {};
    }

    bool read_kept(const ByteRange& range) const
    {
        const auto copy_from = [&](const std::vector<std::byte>& bytes, std::uint64_t begin) {
            if (range.offset < begin || range.offset - begin > bytes.size() ||
                range.out.size() > bytes.size() - (range.offset - begin))
                return false;
            std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(range.offset - begin), range.out.size(),
                        range.out.begin());
            return true;
        };
        return copy_from(m_start, 0) || copy_from(m_recent, m_recent_begin) ||
               m_cache->read(range.offset, range.out);
    }

    std::shared_ptr<SharedClient> m_shared;
    std::string m_url, m_shown, m_token;
    HttpFile m_file;
    std::unique_ptr<RangeCache> m_cache;
    bool m_offline;
    std::vector<std::byte> m_start;
    mutable std::vector<std::byte> m_recent;
    mutable std::uint64_t m_recent_begin = 0;
};

class RemoteStore final : public FileStore {
public:
    RemoteStore(std::shared_ptr<SharedClient> shared, std::string url, std::string shown,
                RemoteSettings settings)
        : m_shared(std::move(shared)), m_url(std::move(url)), m_shown(std::move(shown)),
          m_settings(std::move(settings))
    {
    }

    [[nodiscard]] Result<std::shared_ptr<const ByteSource>> open(std::string_view name) const override
    {
        const auto lock = lock_unless_stopped(m_mutex, ReadingScope::current());
        if (!lock) return stopped_reading(m_shown);
        // Families and vocabularies ask for files again that are not there.
        const auto known = m_opened.find(name);
        if (known != m_opened.end()) return known->second;
        auto opened = open_now(name);
        if (opened || opened.error().code == ErrorCode::not_found)
            m_opened.emplace(std::string(name), opened);
        return opened;
    }

    /// Servers are not asked for lists: there is no interface for it that all have.
    [[nodiscard]] std::vector<std::string> names() const override { return {}; }
    [[nodiscard]] std::string name() const override { return m_shown; }

private:
    [[nodiscard]] Result<std::shared_ptr<const ByteSource>> open_now(std::string_view name) const
    {
        const std::string url = m_url + std::string(name), shown = m_shown + "/" + std::string(name);
        auto cache = std::make_unique<RangeCache>(m_settings.cache, url);
        HttpFile file;
        HttpRange start{0, first_bytes, {}};
        if (m_settings.offline) {
            const auto last = cache->last_answer();
            if (!last)
                return Error{ErrorCode::not_found,
                             in_quotes(shown) +
                                 " was never read before, and HF_HUB_OFFLINE forbids the network",
                             "reading over the network"};
            file.size = last->size;
            file.etag = last->etag;
            cache->open(*last);
        } else {
            const RunContext& ctx = ReadingScope::current();
            const auto lock = lock_unless_stopped(m_shared->mutex, ctx);
            if (!lock) return stopped_reading(shown);
            auto opened = m_shared->client->open(url, m_settings.token, start, ctx);
            if (!opened) return opened.error();
            file = *std::move(opened);
            cache->open({file.size, file.etag});
            cache->write(0, file.whole ? *file.whole : start.body);
        }
        std::vector<std::byte> kept = file.whole ? std::move(*file.whole) : std::move(start.body);
        auto source = std::make_shared<RemoteSource>(m_shared, url, shown, m_settings.token, std::move(file),
                                                     std::move(cache), m_settings.offline);
        source->keep_start(std::move(kept));
        return std::shared_ptr<const ByteSource>(std::move(source));
    }

    std::shared_ptr<SharedClient> m_shared;
    std::string m_url, m_shown;
    RemoteSettings m_settings;
    mutable std::timed_mutex m_mutex;
    mutable std::map<std::string, Result<std::shared_ptr<const ByteSource>>, std::less<>> m_opened;
};

} // namespace

RemoteSettings RemoteSettings::from_environment()
{
    RemoteSettings settings;
    if (const std::string endpoint = variable("HF_ENDPOINT"); !endpoint.empty()) settings.endpoint = endpoint;
    while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
    settings.token = variable("HF_TOKEN");
    std::string offline = variable("HF_HUB_OFFLINE");
    for (char& c : offline)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    settings.offline = offline == "1" || offline == "true" || offline == "yes" || offline == "on";
    if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty())
        settings.cache = std::filesystem::path(cache) / "posiscope" / "remote";
    else if (const std::string home = variable("HOME"); !home.empty())
        settings.cache = std::filesystem::path(home) / ".cache" / "posiscope" / "remote";
    return settings;
}

Result<HubLocation> parse_hub_location(std::string_view location)
{
    const auto fault = [&] {
        return Error{ErrorCode::invalid_argument,
                     in_quotes(location) +
                         " is no model on the Hub; 'hf://org/name' or 'hf://org/name@revision' was expected",
                     "opening a checkpoint"};
    };
    if (!location.starts_with(hub_prefix)) return fault();
    std::string_view rest = location.substr(hub_prefix.size());
    HubLocation out;
    const std::size_t at = rest.find('@');
    std::string_view model = rest.substr(0, at), behind;
    if (at != std::string_view::npos) {
        behind = rest.substr(at + 1);
        const std::size_t slash = behind.find('/');
        out.revision = std::string(behind.substr(0, slash));
        behind = slash == std::string_view::npos ? std::string_view{} : behind.substr(slash + 1);
    } else {
        const auto parts = split(model, '/');
        if (parts.size() > 2) {
            model = model.substr(0, parts[0].size() + 1 + parts[1].size());
            behind = rest.substr(model.size() + 1);
        }
    }
    out.model = std::string(model);
    out.file = std::string(behind);
    const auto is_plain = [](std::string_view text, std::string_view more) {
        return !text.empty() && text != "." && text.find("..") == std::string_view::npos &&
               std::all_of(text.begin(), text.end(), [&](char c) {
                   return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          more.find(c) != std::string_view::npos;
               });
    };
    const auto names = split(out.model, '/');
    if (names.size() > 2 ||
        !std::all_of(names.begin(), names.end(),
                     [&](std::string_view name) { return is_plain(name, "-_."); }) ||
        !is_plain(out.revision, "-_.") || (!out.file.empty() && !is_plain(out.file, "-_./")))
        return fault();
    return out;
}

Result<std::shared_ptr<const FileStore>> remote_store(const std::string& url, const std::string& shown,
                                                      const RemoteSettings& settings)
{
    if (!is_allowed_url(url))
        return Error{ErrorCode::invalid_argument,
                     in_quotes(url.substr(0, url.find_first_of("?#"))) +
                         " is not HTTPS; plain HTTP is for this machine only",
                     "opening a checkpoint"};
    auto shared = std::make_shared<SharedClient>();
    if (!settings.offline) {
        auto client = HttpClient::create(settings.http);
        if (!client) return client.error();
        shared->client = *std::move(client);
    }
    return std::shared_ptr<const FileStore>(
        std::make_shared<RemoteStore>(std::move(shared), url, shown, settings));
}

bool is_remote_location(std::string_view location)
{
    return location.starts_with(hub_prefix) || location.starts_with("https://") ||
           location.starts_with("http://");
}

} // namespace posiscope::core
