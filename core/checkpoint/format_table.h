// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/checkpoint/byte_source.h"
#include "core/checkpoint/checkpoint.h"

namespace posiscope::core {

/// One file format of weights. To add one: a `<name>_format.{h,cpp}` and a row in format_table.cpp.
struct CheckpointFormat {
    std::string_view id;    ///< stable: written to session files
    std::string_view label; ///< shown in the file dialog
    /// Looks at the content, never at the file's name.
    bool (*recognises)(const ByteSource& source);
    Result<TensorFile> (*open)(const std::shared_ptr<const ByteSource>& source, const RunContext& ctx);
};

/// THE list of file formats, in the order in which they are tried.
std::span<const CheckpointFormat> checkpoint_formats();

/// What a file that no format recognises seems to be, to follow "is" in a sentence ("a Git LFS pointer, not the file
/// itself; ..."); empty where nothing is known.
std::string describe_unknown_content(const ByteSource& source);

} // namespace posiscope::core
