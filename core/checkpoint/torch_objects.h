// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/checkpoint/pickle_reader.h"
#include "core/checkpoint/tensor_file.h"

namespace posiscope::core {

/// A storage as a pickle refers to it.
struct TorchStorage {
    std::string key;
    std::size_t element_size = 1;
    std::uint64_t elements = 0;   ///< as the pickle claims
    std::uint64_t view_begin = 0; ///< elements before it in the storage of this key (old files only)
};

/// Where a storage's bytes are.
struct StoredBytes {
    std::size_t source = 0;
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
    bool big_endian = false;
};

using StorageFinder = std::function<Result<StoredBytes>(const TorchStorage&)>;

/// The storage that a persistent value names: ('storage', type, key, device, elements[, view]).
/// @error corrupt_file
Result<TorchStorage> read_torch_storage(const Pickle& pickle, PickleId id, const std::string& where);

/// Adds the tensors of a pickled state dict, of one inside a training checkpoint ("state_dict", "model", ...), or of a
/// pickled module, as far as they are there; optimiser states are left out. Plain settings that lie beside ("args",
/// "cfg", "config") become the enclosed "training_settings.json".
/// @error corrupt_file: a tensor that does not fit its storage; no tensors
Result<void> add_torch_tensors(const Pickle& pickle, const std::string& file_name,
                               const StorageFinder& find_storage, TensorFile& file);

} // namespace posiscope::core
