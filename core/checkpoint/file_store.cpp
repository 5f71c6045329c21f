// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/file_store.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "core/base/text.h"

namespace posiscope::core {
namespace {

class FolderStore final : public FileStore {
public:
    explicit FolderStore(std::filesystem::path folder) : m_folder(std::move(folder)) {}

    [[nodiscard]] Result<std::shared_ptr<const ByteSource>> open(std::string_view name) const override
    {
        return open_file(m_folder / std::filesystem::path(name));
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

} // namespace

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
