// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/checkpoint/byte_source.h"
#include "core/checkpoint/file_store.h"
#include "core/checkpoint/tensor_file.h"

namespace posiscope::core {

/// A file of weights and the place it lies in, for formats that spread over several files.
struct WeightFile {
    std::shared_ptr<const ByteSource> source;
    std::shared_ptr<const FileStore> store;
    std::string name; ///< of the file in that place
};

/// One file format of weights. To add one: a `<name>_format.{h,cpp}` and a row in format_table.cpp.
struct CheckpointFormat {
    std::string_view id;    ///< stable: written to session files
    std::string_view label; ///< shown in the file dialog
    /// How such files are usually called. Never decides what a file is; where no format recognises the content, the
    /// reader of this ending tells what is wrong with it.
    std::string_view ending;
    /// Looks at the content, never at the file's name.
    bool (*recognises)(const ByteSource& source);
    Result<TensorFile> (*open)(const WeightFile& input, const RunContext& ctx);
};

/// THE list of file formats, in the order in which they are tried.
std::span<const CheckpointFormat> checkpoint_formats();

/// Opens a file by its content.
/// @error unsupported_format, corrupt_file, unreadable
Result<TensorFile> open_tensor_file(const WeightFile& input, const RunContext& ctx);

/// What a file that no format recognises seems to be, to follow "is" in a sentence ("a Git LFS pointer, not the file
/// itself; ..."); empty where nothing is known.
std::string describe_unknown_content(const ByteSource& source);

} // namespace posiscope::core
