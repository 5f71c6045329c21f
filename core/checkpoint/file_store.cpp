// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/file_store.h"

#include <algorithm>
#include <span>
#include <system_error>
#include <utility>

#include "core/base/text.h"

namespace posiscope::core {
namespace {

/// Snapshots of the Hugging Face cache are links to "../../blobs/<hash>". A copy that lost its links holds their
/// targets as text: the name of the blob, or nothing where the file is no such text.
std::string lost_link(const ByteSource& file)
{
    constexpr std::string_view start = "../../blobs/";
    constexpr std::uint64_t longest = 200;
    if (file.size() <= start.size() || file.size() > longest) return {};
    const auto read = file.read_text(longest);
    if (!read) return {};
    const std::string& text = *read;
    if (!text.starts_with(start)) return {};
    std::string blob = text.substr(start.size());
    while (!blob.empty() && (blob.back() == '\n' || blob.back() == '\r')) blob.pop_back();
    return is_plain_file_name(blob) ? blob : std::string{};
}

class FolderStore final : public FileStore {
public:
    explicit FolderStore(std::filesystem::path folder) : m_folder(std::move(folder)) {}

    [[nodiscard]] Result<std::shared_ptr<const ByteSource>> open(std::string_view name) const override
    {
        auto file = open_file(m_folder / std::filesystem::path(name));
        if (!file || m_folder.parent_path().filename() != "snapshots") return file;
        const auto blob = lost_link(**file);
        return blob.empty() ? file : open_file(m_folder / "../../blobs" / blob);
    }

    [[nodiscard]] std::vector<std::string> names() const override
    {
        std::vector<std::string> found;
        std::error_code fault;
        std::filesystem::directory_iterator at(m_folder, fault);
        for (; !fault && at != std::filesystem::directory_iterator(); at.increment(fault))
            found.push_back(at->path().filename().string());
        std::sort(found.begin(), found.end());
        return found;
    }

    [[nodiscard]] std::string name() const override { return m_folder.string(); }

private:
    std::filesystem::path m_folder;
};

class LayeredStore final : public FileStore {
public:
    LayeredStore(std::map<std::string, std::string, std::less<>> files,
                 std::shared_ptr<const FileStore> beneath)
        : m_files(std::move(files)), m_beneath(std::move(beneath))
    {
    }

    [[nodiscard]] Result<std::shared_ptr<const ByteSource>> open(std::string_view name) const override
    {
        const auto at = m_files.find(name);
        if (at == m_files.end()) return m_beneath->open(name);
        const auto bytes = std::as_bytes(std::span(at->second));
        return owning_source(m_beneath->name() + "/" + at->first, {bytes.begin(), bytes.end()});
    }

    [[nodiscard]] std::vector<std::string> names() const override
    {
        std::vector<std::string> all = m_beneath->names();
        for (const auto& [name, content] : m_files)
            if (!std::binary_search(all.begin(), all.end(), name))
                all.insert(std::upper_bound(all.begin(), all.end(), name), name);
        return all;
    }

    [[nodiscard]] std::string name() const override { return m_beneath->name(); }

private:
    std::map<std::string, std::string, std::less<>> m_files;
    std::shared_ptr<const FileStore> m_beneath;
};

} // namespace

std::shared_ptr<const FileStore> layered_store(std::map<std::string, std::string, std::less<>> files,
                                               std::shared_ptr<const FileStore> beneath)
{
    return std::make_shared<LayeredStore>(std::move(files), std::move(beneath));
}

bool is_plain_file_name(std::string_view name)
{
    return !name.empty() && name != "." && name != ".." &&
           name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

bool FileStore::contains(std::string_view file) const
{
    const auto all = names();
    return std::binary_search(all.begin(), all.end(), file);
}

std::shared_ptr<const FileStore> folder_store(std::filesystem::path folder)
{
    return std::make_shared<FolderStore>(std::move(folder));
}

} // namespace posiscope::core
