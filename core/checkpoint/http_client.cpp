// SPDX-License-Identifier: GPL-3.0-or-later
#define CURL_DISABLE_TYPECHECK // options are set through a pointer to the loaded function
#include "core/checkpoint/http_client.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include <curl/curl.h>
#include <dlfcn.h>

#include "core/base/text.h"
#include "core/base/version.h"

// The header's macros of these names only count arguments.
#undef curl_easy_setopt
#undef curl_easy_getinfo

namespace posiscope::core {
namespace {

constexpr std::uint64_t largest_whole = 32'000'000; // of a file that a server does not cut into ranges
constexpr int most_redirections = 6;
constexpr std::size_t most_at_once = 6;

/// The functions of libcurl that are needed. The library is opened on demand: programs that read files only do without.
struct CurlLibrary {
    decltype(&::curl_global_init) global_init = nullptr;
    decltype(&::curl_easy_init) easy_init = nullptr;
    decltype(&::curl_easy_setopt) easy_setopt = nullptr;
    decltype(&::curl_easy_getinfo) easy_getinfo = nullptr;
    decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
    decltype(&::curl_easy_strerror) easy_strerror = nullptr;
    decltype(&::curl_slist_append) slist_append = nullptr;
    decltype(&::curl_slist_free_all) slist_free_all = nullptr;
    decltype(&::curl_multi_init) multi_init = nullptr;
    decltype(&::curl_multi_cleanup) multi_cleanup = nullptr;
    decltype(&::curl_multi_add_handle) multi_add_handle = nullptr;
    decltype(&::curl_multi_remove_handle) multi_remove_handle = nullptr;
    decltype(&::curl_multi_perform) multi_perform = nullptr;
    decltype(&::curl_multi_poll) multi_poll = nullptr;
    decltype(&::curl_multi_info_read) multi_info_read = nullptr;
    bool complete = false;
};

template <class Function>
bool find_function(void* library, const char* name, Function& function)
{
    function = reinterpret_cast<Function>(::dlsym(library, name));
    return function != nullptr;
}

const CurlLibrary& curl_library()
{
    static const CurlLibrary loaded = [] {
        CurlLibrary curl;
        void* library = nullptr;
        for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so"})
            if (library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL); library != nullptr) break;
        if (library == nullptr) return curl;
        curl.complete = find_function(library, "curl_global_init", curl.global_init) &&
                        find_function(library, "curl_easy_init", curl.easy_init) &&
                        find_function(library, "curl_easy_setopt", curl.easy_setopt) &&
                        find_function(library, "curl_easy_getinfo", curl.easy_getinfo) &&
                        find_function(library, "curl_easy_cleanup", curl.easy_cleanup) &&
                        find_function(library, "curl_easy_strerror", curl.easy_strerror) &&
                        find_function(library, "curl_slist_append", curl.slist_append) &&
                        find_function(library, "curl_slist_free_all", curl.slist_free_all) &&
                        find_function(library, "curl_multi_init", curl.multi_init) &&
                        find_function(library, "curl_multi_cleanup", curl.multi_cleanup) &&
                        find_function(library, "curl_multi_add_handle", curl.multi_add_handle) &&
                        find_function(library, "curl_multi_remove_handle", curl.multi_remove_handle) &&
                        find_function(library, "curl_multi_perform", curl.multi_perform) &&
                        find_function(library, "curl_multi_poll", curl.multi_poll) &&
                        find_function(library, "curl_multi_info_read", curl.multi_info_read) &&
                        curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
        return curl;
    }();
    return loaded;
}

std::string lower(std::string_view text)
{
    std::string out(text);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return out;
}

/// A URL without what may be secret: user, query and fragment.
std::string shown_url(std::string_view url)
{
    std::string out(url.substr(0, url.find_first_of("?#")));
    if (const std::size_t scheme = out.find("://"); scheme != std::string::npos) {
        const std::size_t end = std::min(out.find('/', scheme + 3), out.size());
        if (const std::size_t at = out.rfind('@', end); at != std::string::npos && at > scheme)
            out.erase(scheme + 3, at - scheme - 2);
    }
    return in_quotes(out);
}

std::optional<std::uint64_t> whole_number(std::string_view text)
{
    text = trimmed(text);
    std::uint64_t value = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (fault != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// "bytes 0-99/1234"
struct ContentRange {
    std::uint64_t begin = 0, end = 0, total = 0; ///< end: one past the last
};

std::optional<ContentRange> content_range(std::string_view text)
{
    text = trimmed(text);
    if (!text.starts_with("bytes ")) return std::nullopt;
    text.remove_prefix(6);
    const std::size_t dash = text.find('-'), slash = text.find('/');
    if (dash == std::string_view::npos || slash == std::string_view::npos || dash > slash)
        return std::nullopt;
    const auto begin = whole_number(text.substr(0, dash)),
               last = whole_number(text.substr(dash + 1, slash - dash - 1)),
               total = whole_number(text.substr(slash + 1));
    if (!begin || !last || !total || *last < *begin || *last >= *total) return std::nullopt;
    return ContentRange{*begin, *last + 1, *total};
}

/// One request on its way.
struct Transfer {
    std::string url;
    std::uint64_t begin = 0, size = 0;
    bool may_be_whole = false; ///< a whole file in the place of a range is welcome, if it is small
    std::vector<std::byte>* body = nullptr; ///< appended to
    std::size_t body_limit = 0;

    CURL* easy = nullptr;
    curl_slist* headers = nullptr;
    std::map<std::string, std::string, std::less<>>
        answer; ///< header lines of the last answer, names in lower case
    long status = 0;
    CURLcode outcome = CURLE_OK;
    bool too_long = false;
    std::size_t received_before = 0;
    const RunContext* ctx = nullptr;
};

std::size_t take_header(char* text, std::size_t size, std::size_t count, void* user)
{
    auto& transfer = *static_cast<Transfer*>(user);
    const std::string_view line(text, size * count);
    if (line.starts_with("HTTP/")) {
        transfer.answer.clear();
        const std::size_t blank = line.find(' ');
        transfer.status = 0;
        if (blank != std::string_view::npos)
            std::from_chars(line.data() + blank + 1, line.data() + line.size(), transfer.status);
    } else if (const std::size_t colon = line.find(':');
               colon != std::string_view::npos && transfer.answer.size() < 200) {
        transfer.answer[lower(line.substr(0, colon))] = std::string(trimmed(line.substr(colon + 1)));
    }
    return line.size();
}

std::size_t take_body(char* bytes, std::size_t size, std::size_t count, void* user)
{
    auto& transfer = *static_cast<Transfer*>(user);
    const std::size_t length = size * count;
    // Pages that explain an error are not wanted, but must not break the connection either.
    if (transfer.status != 206 && transfer.status != 200) return length;
    if (transfer.status == 200 && !transfer.may_be_whole) {
        transfer.too_long = true;
        return 0;
    }
    // What the server says of the length spares a long wait for the same refusal.
    if (transfer.status == 200) {
        const auto said = transfer.answer.find("content-length");
        const auto total = said == transfer.answer.end() ? std::nullopt : whole_number(said->second);
        if (total && *total > largest_whole) {
            transfer.too_long = true;
            return 0;
        }
    }
    const std::size_t limit =
        transfer.status == 200 ? static_cast<std::size_t>(largest_whole) : transfer.body_limit;
    if (length > limit - std::min(limit, transfer.body->size())) {
        transfer.too_long = true;
        return 0;
    }
    const auto* from = reinterpret_cast<const std::byte*>(bytes);
    transfer.body->insert(transfer.body->end(), from, from + length);
    return length;
}

/// Tells of the bytes received so far, a few times a second at most.
class DownloadProgress {
public:
    explicit DownloadProgress(const RunContext& ctx) : m_ctx(ctx) {}

    void show(std::span<const Transfer> transfers)
    {
        if (!m_ctx.progress) return;
        std::size_t done = 0, total = 0;
        bool known = true;
        for (const Transfer& transfer : transfers) {
            done += transfer.body->size();
            const auto said = transfer.answer.find("content-length");
            const auto length = said == transfer.answer.end() ? std::nullopt : whole_number(said->second);
            // The first request asks for more than a small file has.
            if (length && *length <= largest_whole)
                total += transfer.received_before + static_cast<std::size_t>(*length);
            else if (!transfer.may_be_whole)
                total += transfer.received_before + static_cast<std::size_t>(transfer.size);
            else
                known = false;
        }
        const auto now = std::chrono::steady_clock::now();
        const bool is_news = !m_has_told || (done != m_done && (done == total || now - m_last >= interval));
        if (!is_news || m_ctx.cancelled()) return;
        m_has_told = true;
        m_last = now;
        m_done = done;
        m_ctx.report({"download", done, known ? std::max(done, total) : 0});
    }

private:
    static constexpr std::chrono::milliseconds interval{50};
    const RunContext& m_ctx;
    bool m_has_told = false;
    std::chrono::steady_clock::time_point m_last;
    std::size_t m_done = 0;
};

int look_at_stop(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t)
{
    return static_cast<Transfer*>(user)->ctx->cancelled() ? 1 : 0;
}

class CurlClient final : public HttpClient {
public:
    CurlClient(const CurlLibrary& curl, const HttpOptions& options)
        : m_curl(curl), m_options(options), m_multi(curl.multi_init())
    {
    }
    ~CurlClient() override
    {
        if (m_multi != nullptr) m_curl.multi_cleanup(m_multi);
    }
    CurlClient(const CurlClient&) = delete;
    CurlClient& operator=(const CurlClient&) = delete;

    Result<HttpFile> open(const std::string& url, const std::string& token, HttpRange& first,
                          const RunContext& ctx) override
    {
        Transfer transfer;
        transfer.url = url;
        transfer.begin = first.begin;
        transfer.size = first.size;
        transfer.may_be_whole = true;
        transfer.body = &first.body;
        transfer.body_limit = static_cast<std::size_t>(first.size);
        std::string etag;
        std::optional<std::uint64_t> linked_size;
        for (int hops = 0;; ++hops) {
            if (auto done = run_patiently(transfer, url, token, ctx); !done) return done.error();
            // The Hub tells size and mark of a file before it redirects to where it is kept.
            if (const auto at = transfer.answer.find("x-linked-etag"); at != transfer.answer.end())
                etag = at->second;
            if (const auto at = transfer.answer.find("x-linked-size"); at != transfer.answer.end())
                linked_size = whole_number(at->second);
            if (transfer.status < 300 || transfer.status >= 400) break;
            if (hops == most_redirections)
                return failure(url, "redirects more than " + std::to_string(most_redirections) + " times");
            auto next = redirection(transfer);
            if (!next) return next.error();
            transfer.url = *std::move(next);
            first.body.clear();
        }
        if (auto good = check_status(transfer, url); !good) return good.error();
        HttpFile file;
        file.url = transfer.url;
        file.etag = etag.empty() ? header(transfer, "etag") : etag;
        if (transfer.status == 206) {
            const auto range = content_range(header(transfer, "content-range"));
            if (!range || range->begin != first.begin || range->end - range->begin != first.body.size() ||
                range->end > first.begin + first.size)
                return failure(url, "answers with another range than the one asked for ('" +
                                        printable(header(transfer, "content-range"), 60) + "', " +
                                        std::to_string(first.body.size()) + " bytes)");
            file.size = range->total;
            if (linked_size && *linked_size != file.size)
                return failure(url, "tells two sizes of the file: " + std::to_string(*linked_size) + " and " +
                                        std::to_string(file.size));
            return file;
        }
        file.size = first.body.size();
        file.whole = first.body;
        first.body.resize(static_cast<std::size_t>(std::min<std::uint64_t>(first.size, file.size)));
        return file;
    }

    Result<void> fetch(const HttpFile& file, const std::string& first_url, const std::string& token,
                       std::span<HttpRange> ranges, const RunContext& ctx) override
    {
        int attempt = 1;
        std::string direct_url = file.url;
        for (;;) {
            std::vector<Transfer> transfers;
            for (HttpRange& range : ranges) {
                if (range.body.size() >= range.size) continue;
                Transfer transfer;
                transfer.url = direct_url;
                transfer.begin = range.begin + range.body.size();
                transfer.size = range.size - range.body.size();
                transfer.body = &range.body;
                transfer.body_limit = static_cast<std::size_t>(range.size);
                transfer.received_before = range.body.size();
                transfers.push_back(std::move(transfer));
            }
            if (transfers.empty()) return {};
            run(transfers, token_for(direct_url, first_url, token), ctx);
            if (ctx.cancelled()) return cancelled_error("reading " + shown_url(first_url));
            std::optional<Error> last;
            bool may_retry = true;
            std::chrono::milliseconds wanted_pause{0};
            for (Transfer& transfer : transfers) {
                auto good = check_range(transfer, file, first_url);
                if (good) continue;
                // Links to where a file is kept are signed for a while: a new one is asked for once they have run out.
                const bool ran_out =
                    direct_url != first_url && (transfer.status == 401 || transfer.status == 403 ||
                                                (transfer.status >= 300 && transfer.status < 400));
                if (transfer.status != 206) transfer.body->resize(transfer.received_before);
                if (ran_out) {
                    direct_url = first_url;
                } else if (transfer.status >= 300 && transfer.status < 400) {
                    auto next = redirection(transfer);
                    if (!next) return next.error();
                    direct_url = *std::move(next);
                    last = Error{ErrorCode::unreadable, shown_url(first_url) + " redirects without end",
                                 "reading over the network"};
                    continue;
                } else if (!is_passing(transfer)) {
                    may_retry = false;
                }
                wanted_pause = std::max(wanted_pause, pause_asked_for(transfer));
                last = good.error();
            }
            if (!last) continue; // a range may still lack its end: asked for again
            if (!may_retry || attempt >= m_options.attempts) return *last;
            if (!pause(attempt, wanted_pause, ctx)) return cancelled_error("reading " + shown_url(first_url));
            ++attempt;
        }
    }

private:
    static std::string header(const Transfer& transfer, std::string_view name)
    {
        const auto at = transfer.answer.find(name);
        return at == transfer.answer.end() ? std::string{} : at->second;
    }

    static Error failure(const std::string& url, const std::string& what)
    {
        return Error{ErrorCode::unreadable, shown_url(url) + " " + what, "reading over the network"};
    }

    static std::string token_for(const std::string& url, const std::string& first_url,
                                 const std::string& token)
    {
        return url_origin(url) == url_origin(first_url) ? token : std::string{};
    }

    /// Whether a failure may pass by itself.
    static bool is_passing(const Transfer& transfer)
    {
        if (transfer.too_long) return false;
        if (transfer.outcome != CURLE_OK)
            return transfer.outcome == CURLE_COULDNT_CONNECT ||
                   transfer.outcome == CURLE_OPERATION_TIMEDOUT || transfer.outcome == CURLE_RECV_ERROR ||
                   transfer.outcome == CURLE_SEND_ERROR || transfer.outcome == CURLE_PARTIAL_FILE ||
                   transfer.outcome == CURLE_GOT_NOTHING || transfer.outcome == CURLE_COULDNT_RESOLVE_HOST ||
                   transfer.outcome == CURLE_HTTP2 || transfer.outcome == CURLE_HTTP2_STREAM ||
                   transfer.outcome == CURLE_SSL_CONNECT_ERROR;
        return transfer.status == 429 || transfer.status == 408 || transfer.status >= 500 ||
               transfer.status == 206;
    }

    static std::chrono::milliseconds pause_asked_for(const Transfer& transfer)
    {
        const auto seconds = whole_number(header(transfer, "retry-after"));
        return seconds && *seconds < 100'000 ? std::chrono::milliseconds(*seconds * 1000)
                                             : std::chrono::milliseconds(0);
    }

    /// Waits before another attempt; false where the run was stopped meanwhile.
    [[nodiscard]] bool pause(int attempt, std::chrono::milliseconds wanted, const RunContext& ctx) const
    {
        auto length =
            std::min(std::max(m_options.first_pause * (1 << (attempt - 1)), wanted), m_options.longest_pause);
        constexpr std::chrono::milliseconds step{20};
        for (; length.count() > 0; length -= step) {
            if (ctx.cancelled()) return false;
            std::this_thread::sleep_for(std::min(length, step));
        }
        return !ctx.cancelled();
    }

    Result<std::string> redirection(const Transfer& transfer) const
    {
        std::string target = header(transfer, "location");
        if (target.starts_with("//")) {
            target = transfer.url.substr(0, transfer.url.find(':') + 1) + target;
        } else if (target.starts_with("/")) {
            const std::size_t path = transfer.url.find('/', transfer.url.find("://") + 3);
            target = transfer.url.substr(0, path) + target;
        } else if (target.find("://") == std::string::npos) {
            return failure(transfer.url,
                           "redirects to " + in_quotes(target, 60) + ", which is no full address");
        }
        if (!is_allowed_url(target))
            return failure(transfer.url, "redirects to " + shown_url(target) + ", which is not HTTPS");
        return target;
    }

    /// One request until it is answered, fails for good or the patience ends.
    Result<void> run_patiently(Transfer& transfer, const std::string& first_url, const std::string& token,
                               const RunContext& ctx)
    {
        if (!is_allowed_url(transfer.url))
            return failure(first_url, "is not HTTPS; plain HTTP is for this machine only");
        for (int attempt = 1;; ++attempt) {
            if (ctx.cancelled()) return cancelled_error("reading " + shown_url(first_url));
            transfer.body->clear();
            run({&transfer, 1}, token_for(transfer.url, first_url, token), ctx);
            if (ctx.cancelled()) return cancelled_error("reading " + shown_url(first_url));
            const bool answered = transfer.outcome == CURLE_OK && transfer.status != 429 &&
                                  transfer.status != 408 && transfer.status < 500;
            if (answered) return {};
            if (attempt >= m_options.attempts || !is_passing(transfer)) {
                auto good = check_status(transfer, first_url);
                return good ? failure(first_url, "cannot be read") : good.error();
            }
            if (!pause(attempt, pause_asked_for(transfer), ctx))
                return cancelled_error("reading " + shown_url(first_url));
        }
    }

    /// Turns an answer that is no success into its sentence.
    [[nodiscard]] Result<void> check_status(const Transfer& transfer, const std::string& url) const
    {
        if (transfer.too_long)
            return failure(url,
                           transfer.status == 200
                               ? "is on a server that sends whole files only, and this one is larger than " +
                                     std::to_string(largest_whole / 1'000'000) +
                                     " MB; download it and open the file"
                               : "sends more bytes than were asked for");
        if (transfer.outcome == CURLE_PARTIAL_FILE || transfer.outcome == CURLE_RECV_ERROR ||
            transfer.outcome == CURLE_GOT_NOTHING)
            return failure(url, "broke off: the connection ended before the answer did");
        if (transfer.outcome == CURLE_OPERATION_TIMEDOUT) return failure(url, "does not answer in time");
        if (transfer.outcome == CURLE_COULDNT_RESOLVE_HOST)
            return failure(url, "is on a host that cannot be found; is there a network?");
        if (transfer.outcome == CURLE_COULDNT_CONNECT)
            return failure(url, "is on a host that cannot be reached");
        if (transfer.outcome != CURLE_OK)
            return failure(url, std::string("cannot be read: ") + m_curl.easy_strerror(transfer.outcome));
        switch (transfer.status) {
        case 200:
        case 206: return {};
        case 401: return failure(url, "asks for a login (401): set HF_TOKEN to a token that may read it");
        case 403:
            return failure(url, "may not be read with this token (403): the model may be gated; accept its "
                                "terms on its page");
        case 404:
            return Error{ErrorCode::not_found, shown_url(url) + " does not exist (404)",
                         "reading over the network"};
        case 416: return failure(url, "has no such bytes (416): the file is empty or shorter than before");
        case 429: return failure(url, "is asked too often (429): wait a while, or set HF_TOKEN");
        default:
            if (transfer.status >= 500)
                return failure(url, "is on a server that has trouble of its own (" +
                                        std::to_string(transfer.status) + "); try again later");
            return failure(url, "answers with the status " + std::to_string(transfer.status) +
                                    "; 206 was expected");
        }
    }

    [[nodiscard]] Result<void> check_range(Transfer& transfer, const HttpFile& file,
                                           const std::string& url) const
    {
        const auto changed = [&] {
            return failure(url, "was changed on the server while it was open; open it again");
        };
        if (transfer.too_long && transfer.status == 200)
            return file.etag.empty() || header(transfer, "etag") == file.etag ? check_status(transfer, url)
                                                                              : Result<void>(changed());
        if (transfer.status == 206) {
            const std::string etag = header(transfer, "etag");
            const auto range = content_range(header(transfer, "content-range"));
            const bool same_host = url_origin(transfer.url) == url_origin(url);
            if ((same_host && !etag.empty() && !file.etag.empty() && etag != file.etag) ||
                (range && range->total != file.size)) {
                transfer.body->resize(transfer.received_before);
                transfer.too_long = true; // not to be tried again
                return changed();
            }
            if (!range || range->begin != transfer.begin || range->end > transfer.begin + transfer.size) {
                transfer.body->resize(transfer.received_before);
                transfer.too_long = true;
                return failure(url, "answers with another range than the one asked for ('" +
                                        printable(header(transfer, "content-range"), 60) + "')");
            }
            if (transfer.outcome == CURLE_OK &&
                transfer.body->size() - transfer.received_before < range->end - range->begin)
                return failure(url, "broke off: the connection ended before the answer did");
        }
        if (auto good = check_status(transfer, url); !good) return good;
        if (transfer.status == 206 && transfer.body->size() == transfer.received_before)
            return failure(url, "answers with no bytes");
        return {};
    }

    void set_up(Transfer& transfer, const std::string& token, const RunContext& ctx)
    {
        transfer.easy = m_curl.easy_init();
        transfer.status = 0;
        transfer.too_long = false;
        transfer.answer.clear();
        transfer.ctx = &ctx;
        CURL* easy = transfer.easy;
        const auto set = m_curl.easy_setopt;
        set(easy, CURLOPT_URL, transfer.url.c_str());
        const std::string range =
            std::to_string(transfer.begin) + "-" + std::to_string(transfer.begin + transfer.size - 1);
        set(easy, CURLOPT_RANGE, range.c_str());
        set(easy, CURLOPT_FOLLOWLOCATION, 0L);
        set(easy, CURLOPT_NOSIGNAL, 1L);
        set(easy, CURLOPT_USERAGENT, (std::string("posiscope/") + version).c_str());
        set(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(m_options.connect_timeout.count()));
        // One byte a second counts as a stall; the library counts in seconds.
        set(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
        set(easy, CURLOPT_LOW_SPEED_TIME,
            std::max(1L, static_cast<long>(m_options.stall_timeout.count() / 1000)));
        set(easy, CURLOPT_HEADERFUNCTION, take_header);
        set(easy, CURLOPT_HEADERDATA, &transfer);
        set(easy, CURLOPT_WRITEFUNCTION, take_body);
        set(easy, CURLOPT_WRITEDATA, &transfer);
        set(easy, CURLOPT_XFERINFOFUNCTION, look_at_stop);
        set(easy, CURLOPT_XFERINFODATA, &transfer);
        set(easy, CURLOPT_NOPROGRESS, 0L);
#if LIBCURL_VERSION_NUM >= 0x075700
        // A host name that is still being looked up must not hold up a stop. Older libraries know no such option.
        set(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
        if (url_origin(transfer.url).starts_with("http://"))
            set(easy, CURLOPT_NOPROXY, "*"); // this machine itself
        transfer.headers = nullptr;
        if (!token.empty())
            transfer.headers =
                m_curl.slist_append(transfer.headers, ("Authorization: Bearer " + token).c_str());
        set(easy, CURLOPT_HTTPHEADER, transfer.headers);
    }

    /// Runs transfers, some at a time, until each has ended one way or another.
    void run(std::span<Transfer> transfers, const std::string& token, const RunContext& ctx)
    {
        std::size_t next = 0, running = 0;
        DownloadProgress progress(ctx);
        while (next < transfers.size() || running > 0) {
            while (next < transfers.size() && running < most_at_once) {
                set_up(transfers[next], token, ctx);
                m_curl.multi_add_handle(m_multi, transfers[next].easy);
                ++next;
                ++running;
            }
            int active = 0;
            m_curl.multi_perform(m_multi, &active);
            int waiting = 0;
            while (const CURLMsg* message = m_curl.multi_info_read(m_multi, &waiting)) {
                if (message->msg != CURLMSG_DONE) continue;
                for (Transfer& transfer : transfers) {
                    if (transfer.easy != message->easy_handle) continue;
                    transfer.outcome = message->data.result;
                    m_curl.multi_remove_handle(m_multi, transfer.easy);
                    m_curl.easy_cleanup(transfer.easy);
                    m_curl.slist_free_all(transfer.headers);
                    transfer.easy = nullptr;
                    transfer.headers = nullptr;
                    --running;
                    break;
                }
            }
            progress.show(transfers);
            if (running > 0) m_curl.multi_poll(m_multi, nullptr, 0, 50, nullptr);
        }
    }

    const CurlLibrary& m_curl;
    HttpOptions m_options;
    CURLM* m_multi;
};

} // namespace

Result<std::unique_ptr<HttpClient>> HttpClient::create(const HttpOptions& options)
{
    const CurlLibrary& curl = curl_library();
    if (!curl.complete)
        return Error{ErrorCode::unsupported_format,
                     "reading over the network needs libcurl (the package libcurl4), which is not installed",
                     "reading over the network"};
    return std::unique_ptr<HttpClient>(std::make_unique<CurlClient>(curl, options));
}

std::string url_origin(std::string_view url)
{
    const std::size_t scheme_end = url.find("://");
    if (scheme_end == std::string_view::npos) return {};
    const std::string scheme = lower(url.substr(0, scheme_end));
    std::string_view rest = url.substr(scheme_end + 3);
    rest = rest.substr(0, rest.find_first_of("/?#"));
    if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos) rest.remove_prefix(at + 1);
    std::string host = lower(rest);
    const std::size_t bracket = host.rfind(']');
    const std::size_t colon = host.find(':', bracket == std::string::npos ? 0 : bracket);
    if (colon == std::string::npos) host += scheme == "https" ? ":443" : ":80";
    return scheme + "://" + host;
}

bool is_allowed_url(std::string_view url)
{
    const std::string origin = url_origin(url);
    if (origin.starts_with("https://")) return true;
    for (const std::string_view host : {"http://127.0.0.1:", "http://localhost:", "http://[::1]:"})
        if (origin.starts_with(host)) return true;
    return false;
}

} // namespace posiscope::core
