// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/pytorch_zip_format.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/base/text.h"
#include "core/checkpoint/torch_objects.h"
#include "core/checkpoint/zip_directory.h"

namespace posiscope::core {
namespace {

constexpr std::string_view pickle_record = "data.pkl";

/// The record "PREFIX/data.pkl" with the shortest prefix, or null.
const ZipEntry* find_pickle(const ZipDirectory& directory)
{
    const ZipEntry* found = nullptr;
    for (const ZipEntry& entry : directory.entries) {
        const bool named =
            entry.name == pickle_record || entry.name.ends_with("/" + std::string(pickle_record));
        if (named && (found == nullptr || entry.name.size() < found->name.size())) found = &entry;
    }
    return found;
}

} // namespace

bool is_pytorch_zip(const ByteSource& source)
{
    if (!is_zip(source)) return false;
    const auto directory = read_zip_directory(source);
    if (!directory) return true; // its reader says what is wrong
    return find_pickle(*directory) != nullptr ||
           std::none_of(directory->entries.begin(), directory->entries.end(),
                        [](const ZipEntry& entry) { return entry.name.ends_with(".npy"); });
}

Result<TensorFile> open_pytorch_zip(const std::shared_ptr<const ByteSource>& source, const RunContext& ctx)
{
    if (ctx.cancelled()) return cancelled_error("opening a checkpoint");
    const auto directory = read_zip_directory(*source);
    if (!directory) return directory.error();
    const ZipEntry* pickled = find_pickle(*directory);
    if (pickled == nullptr)
        return Error{ErrorCode::corrupt_file,
                     in_quotes(source->name()) +
                         " is a zip archive without a record 'data.pkl' (PyTorch) or '*.npy' (NumPy)",
                     "PyTorch archive"};
    std::string prefix = pickled->name.substr(0, pickled->name.size() - pickle_record.size());
    const auto pickle = read_pickle(*zip_record(source, *pickled), 0);
    if (!pickle) return pickle.error();

    bool big_endian = false;
    if (const ZipEntry* order = directory->find(prefix + "byteorder")) {
        const auto text = zip_record(source, *order)->read_text(64);
        if (!text) return text.error();
        big_endian = trimmed(*text) == "big";
    }
    TensorFile file;
    file.format = "pytorch_zip";
    file.files.push_back(source);
    std::map<std::string, std::size_t> sources;
    const StorageFinder find_storage = [&](const TorchStorage& storage) -> Result<StoredBytes> {
        const ZipEntry* entry = directory->find(prefix + "data/" + storage.key);
        // TorchScript archives name records of constants and of the model alike.
        if (entry == nullptr) entry = directory->find(prefix + "tensors/" + storage.key);
        if (entry == nullptr)
            return Error{ErrorCode::corrupt_file,
                         "there is no record " + in_quotes(prefix + "data/" + storage.key) +
                             " in the archive",
                         "PyTorch archive"};
        const auto [at, added] = sources.emplace(entry->name, file.sources.size());
        if (added) file.sources.push_back(zip_record(source, *entry));
        return StoredBytes{at->second, 0, entry->size, big_endian};
    };
    if (auto added = add_torch_tensors(*pickle, source->name(), find_storage, file); !added)
        return added.error();
    return file;
}

} // namespace posiscope::core
