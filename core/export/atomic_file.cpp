// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/export/atomic_file.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/text.h"

namespace posiscope::core {
namespace {

constexpr mode_t permission_bits = 0777;

Error failed(const std::filesystem::path& path, int reason)
{
    const bool missing = reason == ENOENT || reason == ENOTDIR;
    return Error{missing ? ErrorCode::not_found : ErrorCode::unreadable,
                 in_quotes(path.string()) + " cannot be written: " + std::generic_category().message(reason),
                 "writing a file"};
}

/// 0, or the reason as errno has it.
int write_all(int descriptor, std::string_view bytes)
{
    while (!bytes.empty()) {
        const ssize_t put = ::write(descriptor, bytes.data(), bytes.size());
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return errno;
        bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return 0;
}

/// Opens a new file beside `target`, whose name is left in `path`.
int create_beside(const std::filesystem::path& target, std::filesystem::path& path)
{
    static std::atomic<std::uint64_t> counter{0};
    constexpr int most_attempts = 100;
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
        path = target.parent_path() / (".posiscope-" + std::to_string(::getpid()) + "-" +
                                       std::to_string(counter.fetch_add(1)) + ".tmp");
        const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor >= 0 || errno != EEXIST) return descriptor;
    }
    return -1;
}

/// Brings a rename to disk. A file system that cannot do this for folders has still done the rename.
void sync_folder(const std::filesystem::path& target)
{
    const std::filesystem::path folder = target.parent_path();
    const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return;
    ::fsync(descriptor);
    ::close(descriptor);
}

using Producer = std::function<Result<void>(const ByteSink&)>;

ByteSink sink_into(int descriptor, const std::filesystem::path& path)
{
    return [descriptor, &path](std::string_view bytes) -> Result<void> {
        const int reason = write_all(descriptor, bytes);
        return reason == 0 ? Result<void>() : Result<void>(failed(path, reason));
    };
}

Result<void> write_to_device(const std::filesystem::path& path, const Producer& produce)
{
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return failed(path, errno);
    Result<void> done = produce(sink_into(descriptor, path));
    ::close(descriptor);
    return done;
}

} // namespace

Result<void> write_atomically(const std::filesystem::path& path, std::string_view bytes)
{
    return write_atomically(path, [bytes](const ByteSink& sink) { return sink(bytes); });
}

Result<void> write_atomically(const std::filesystem::path& path, const Producer& produce)
{
    std::error_code no_such_file;
    std::filesystem::path target = std::filesystem::canonical(path, no_such_file); // follows links
    if (no_such_file) target = path;

    struct stat status {};
    const bool exists = ::stat(target.c_str(), &status) == 0;
    if (exists && S_ISDIR(status.st_mode))
        return Error{ErrorCode::unreadable,
                     in_quotes(path.string()) + " is a folder; a file name was expected", "writing a file"};
    if (exists && !S_ISREG(status.st_mode)) return write_to_device(target, produce);
    // A rename would go around the protection of a file that may not be written.
    if (exists && ::access(target.c_str(), W_OK) != 0) return failed(path, errno);

    std::filesystem::path temporary;
    const int descriptor = create_beside(target, temporary);
    if (descriptor < 0) return failed(path, errno);
    if (auto done = produce(sink_into(descriptor, path)); !done) {
        ::close(descriptor);
        ::unlink(temporary.c_str());
        return done;
    }
    int reason = 0;
    if (exists && ::fchmod(descriptor, status.st_mode & permission_bits) != 0) reason = errno;
    if (reason == 0 && ::fsync(descriptor) != 0) reason = errno;
    if (::close(descriptor) != 0 && reason == 0) reason = errno;
    if (reason == 0 && ::rename(temporary.c_str(), target.c_str()) != 0) reason = errno;
    if (reason != 0) {
        ::unlink(temporary.c_str());
        return failed(path, reason);
    }
    sync_folder(target);
    return {};
}

} // namespace posiscope::core
