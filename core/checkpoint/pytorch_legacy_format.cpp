// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/pytorch_legacy_format.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "core/base/checked_math.h"
#include "core/base/text.h"
#include "core/checkpoint/endian.h"
#include "core/checkpoint/torch_objects.h"

namespace posiscope::core {
namespace {

/// The low 8 bytes of 0x1950a86a20f9469cfc6c.
constexpr auto magic_number = static_cast<std::int64_t>(0xA86A20F9469CFC6Cu);

} // namespace

bool is_pickle(const ByteSource& source)
{
    std::array<std::byte, 2> start{};
    if (source.size() < start.size() || !source.read(0, start)) return false;
    return start[0] == std::byte{0x80} && std::to_integer<int>(start[1]) <= 5;
}

Result<TensorFile> open_pytorch_legacy(const std::shared_ptr<const ByteSource>& source, const RunContext& ctx)
{
    if (ctx.cancelled()) return cancelled_error("opening a checkpoint");
    const auto fault = [&](const std::string& what) {
        return Error{ErrorCode::corrupt_file, in_quotes(source->name()) + ": " + what, "old PyTorch file"};
    };
    auto magic = read_pickle(*source, 0);
    if (!magic) return magic.error();
    TensorFile file;
    file.format = "pytorch_legacy";
    file.sources.push_back(source);
    if (magic->integer(magic->root) != magic_number) {
        // A plain pickle has no storages: this says whether there is anything in it.
        const StorageFinder none = [](const TorchStorage&) -> Result<StoredBytes> {
            return Error{ErrorCode::corrupt_file, "the file holds no storages", "old PyTorch file"};
        };
        if (auto added = add_torch_tensors(*magic, source->name(), none, file); !added) return added.error();
        return file;
    }
    std::array<Pickle, 4> parts; // protocol, system, object, storage keys
    std::uint64_t at = magic->end;
    for (Pickle& part : parts) {
        auto read = read_pickle(*source, at);
        if (!read) return read.error();
        part = *std::move(read);
        at = part.end;
    }
    const auto& [protocol, system, object, keys] = parts;
    if (protocol.integer(protocol.root) != 1001)
        return fault("the protocol of an old PyTorch file is not 1001");
    const bool big_endian = system.integer(system.value(system.root, "little_endian")) == 0;

    // What is stored under each key is told where tensors refer to it.
    std::map<std::string, TorchStorage> known;
    for (PickleId id = 0; id < object.nodes.size(); ++id) {
        if (object[id].kind != PickleKind::persistent) continue;
        const auto& identity = object.arguments(id);
        if (identity.empty() || object.text(identity[0]) != "storage") continue; // sources of modules
        auto storage = read_torch_storage(object, id, in_quotes(source->name()) + ": a tensor");
        if (!storage) return storage.error();
        std::string key = storage->key;
        known.emplace(std::move(key), *std::move(storage));
    }
    std::map<std::string, StoredBytes> places;
    for (const PickleId id : keys[keys.root].items) {
        const std::string key(keys.text(id));
        const auto found = known.find(key);
        if (found == known.end())
            return fault("storage " + in_quotes(key, 60) + " is listed, but no tensor tells its type");
        std::array<std::byte, 8> count{};
        if (auto read = source->read(at, count); !read)
            return fault("the file ends before storage " + in_quotes(key, 60));
        if (big_endian) std::reverse(count.begin(), count.end());
        const std::uint64_t elements = little_endian<8>(count, 0);
        const auto bytes = checked_multiply(elements, found->second.element_size);
        at += count.size();
        if (!bytes || *bytes > source->size() - at)
            return fault("storage " + in_quotes(key, 60) + " claims " + std::to_string(elements) +
                         " elements, but the file ends after " + std::to_string(source->size() - at) +
                         " more bytes; it is cut short");
        places[key] = {0, at, *bytes, big_endian};
        at += *bytes;
    }
    const StorageFinder find_storage = [&](const TorchStorage& storage) -> Result<StoredBytes> {
        const auto found = places.find(storage.key);
        if (found == places.end())
            return Error{ErrorCode::corrupt_file,
                         "storage " + in_quotes(storage.key, 60) + " is not in the file", "old PyTorch file"};
        StoredBytes place = found->second;
        const auto before = checked_multiply(storage.view_begin, storage.element_size);
        if (!before || *before > place.size)
            return Error{ErrorCode::corrupt_file,
                         "a view begins beyond storage " + in_quotes(storage.key, 60), "old PyTorch file"};
        place.begin += *before;
        place.size -= *before;
        return place;
    };
    if (auto added = add_torch_tensors(object, source->name(), find_storage, file); !added)
        return added.error();
    return file;
}

} // namespace posiscope::core
