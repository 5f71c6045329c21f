// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/checkpoint/byte_source.h"
#include "core/checkpoint/config_json.h"
#include "core/checkpoint/file_store.h"
#include "core/checkpoint/tensor_file.h"
#include "core/tensor/dtype.h"
#include "core/tensor/host_tensor.h"
#include "core/tensor/shape.h"

namespace posiscope::core {

/// An opened checkpoint: names, shapes and byte ranges of tensors, the config, and where the vocabulary lies.
/// Immutable; reading a tensor is const and thread-safe.
class Checkpoint {
public:
    Checkpoint(std::string location, std::string display_name, std::shared_ptr<const FileStore> store,
               TensorFile tensor_file, ConfigJson config);

    /// What was asked for ("sample:minilm-l6-first-layer", "/models/bert"): opens the same checkpoint again.
    [[nodiscard]] const std::string& location() const { return m_location; }
    /// Short name for lists and heads of panels.
    [[nodiscard]] const std::string& display_name() const { return m_display_name; }
    [[nodiscard]] const std::string& format() const { return m_tensor_file.format; }
    [[nodiscard]] const ConfigJson& config() const { return m_config; }
    [[nodiscard]] const FileStore& store() const { return *m_store; }
    /// The file (or first shard) that holds the tensors, for messages.
    [[nodiscard]] std::string weights_name() const;

    [[nodiscard]] std::span<const TensorInfo> tensors() const { return m_tensor_file.tensors; }
    /// The tensor of this very name, or null.
    [[nodiscard]] const TensorInfo* find(std::string_view name) const;

    /// Tensors that cannot be had, and why, to follow "tensor 'x' ".
    [[nodiscard]] const std::map<std::string, std::string, std::less<>>& absent() const
    {
        return m_tensor_file.absent;
    }

    /// The whole tensor as float32, in its own shape.
    /// @error not_found (names it and the file), unreadable
    [[nodiscard]] Result<HostTensor> read(std::string_view name) const;
    /// Rows of a tensor along its last axis, numbered through all axes before: [rows.size(), cols]. Reads those only.
    /// @error not_found, invalid_argument (no such row), unreadable
    [[nodiscard]] Result<HostTensor> read_rows(std::string_view name,
                                               std::span<const std::int64_t> rows) const;

    /// Bytes read so far from the files that hold tensors, headers included.
    [[nodiscard]] std::uint64_t bytes_read() const;
    /// Size of the files that hold tensors.
    [[nodiscard]] std::uint64_t file_size() const;

    /// Soft problems met while opening, as sentences.
    [[nodiscard]] const std::vector<std::string>& warnings() const { return m_warnings; }

private:
    [[nodiscard]] Result<const TensorInfo*> require(std::string_view name) const;
    /// The files that hold tensors.
    [[nodiscard]] const std::vector<std::shared_ptr<const ByteSource>>& files() const;

    std::string m_location;
    std::string m_display_name;
    std::shared_ptr<const FileStore> m_store;
    TensorFile m_tensor_file;
    ConfigJson m_config;
    std::vector<std::string> m_warnings;
    std::map<std::string, std::size_t, std::less<>> m_by_name;
};

/// Opens a checkpoint: a folder with `config.json` and weights, a weight file with the config beside it, or
/// "sample:NAME". Reads headers only.
/// @error not_found, unreadable, unsupported_format, corrupt_file
Result<std::shared_ptr<const Checkpoint>> open_checkpoint(const std::string& location, const RunContext& ctx);

} // namespace posiscope::core
