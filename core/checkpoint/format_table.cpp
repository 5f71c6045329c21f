// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/format_table.h"

#include <algorithm>
#include <array>
#include <string>

#include "core/checkpoint/safetensors_format.h"

namespace posiscope::core {

std::span<const CheckpointFormat> checkpoint_formats()
{
    static constexpr std::array formats{
        CheckpointFormat{"safetensors", "Safetensors", is_safetensors, open_safetensors},
    };
    return formats;
}

std::string describe_unknown_content(const ByteSource& source)
{
    std::string start(static_cast<std::size_t>(std::min<std::uint64_t>(source.size(), 256)), '\0');
    if (start.empty()) return "an empty file";
    if (!source.read(0, std::as_writable_bytes(std::span(start)))) return {};
    if (start.starts_with("version https://git-lfs"))
        return "a Git LFS pointer, not the file itself; fetch it with 'git lfs pull'";
    const auto text_start = start.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
    if (text_start != std::string::npos && start[text_start] == '<')
        return "a web page, not weights; the download probably failed or needs a login";
    if (start.starts_with("PK\x03\x04")) return "a zip archive (a PyTorch or NumPy file)";
    if (start.starts_with("GGUF")) return "a GGUF file";
    if (start.starts_with("\x89HDF")) return "an HDF5 file";
    if (start.starts_with("\x80\x02") || start.starts_with("\x80\x03") || start.starts_with("\x80\x04"))
        return "a Python pickle (an old PyTorch file)";
    return {};
}

} // namespace posiscope::core
