// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/format_table.h"

#include <algorithm>
#include <array>
#include <vector>

#include "core/base/text.h"
#include "core/checkpoint/flax_format.h"
#include "core/checkpoint/gguf_format.h"
#include "core/checkpoint/npz_format.h"
#include "core/checkpoint/onnx_format.h"
#include "core/checkpoint/pytorch_legacy_format.h"
#include "core/checkpoint/pytorch_zip_format.h"
#include "core/checkpoint/safetensors_format.h"
#include "core/checkpoint/sharded_index.h"
#include "core/checkpoint/tensorflow_format.h"

namespace posiscope::core {
namespace {

using SourceReader = Result<TensorFile> (*)(const std::shared_ptr<const ByteSource>& source,
                                            const RunContext& ctx);

/// A reader that needs nothing but the file itself.
template <SourceReader reader>
Result<TensorFile> alone(const WeightFile& input, const RunContext& ctx)
{
    return reader(input.source, ctx);
}

} // namespace

std::span<const CheckpointFormat> checkpoint_formats()
{
    static constexpr std::array formats{
        CheckpointFormat{"sharded_index", "Index of shards", ".index.json", is_sharded_index,
                         open_sharded_index},
        CheckpointFormat{"safetensors", "Safetensors", ".safetensors", is_safetensors,
                         alone<open_safetensors>},
        CheckpointFormat{"npz", "NumPy archive", ".npz", is_npz, alone<open_npz>},
        CheckpointFormat{"pytorch_zip", "PyTorch", ".pt", is_pytorch_zip, alone<open_pytorch_zip>},
        CheckpointFormat{"pytorch_legacy", "PyTorch before 1.6", ".bin", is_pickle,
                         alone<open_pytorch_legacy>},
        CheckpointFormat{"gguf", "GGUF", ".gguf", is_gguf, alone<open_gguf>},
        CheckpointFormat{"npy", "NumPy array", ".npy", is_npy, alone<open_npy>},
        CheckpointFormat{"tensorflow", "TensorFlow", ".index", is_tensorflow_index, open_tensorflow},
        CheckpointFormat{"flax_msgpack", "Flax", ".msgpack", is_flax, alone<open_flax>},
        CheckpointFormat{"onnx", "ONNX", ".onnx", is_onnx, open_onnx},
    };
    return formats;
}

Result<TensorFile> open_tensor_file(const WeightFile& input, const RunContext& ctx)
{
    for (const CheckpointFormat& format : checkpoint_formats())
        if (format.recognises(*input.source)) return format.open(input, ctx);
    const std::string content = describe_unknown_content(*input.source);
    if (content.empty())
        for (const CheckpointFormat& format : checkpoint_formats())
            if (input.name.ends_with(format.ending)) return format.open(input, ctx);
    std::vector<std::string> labels;
    for (const CheckpointFormat& format : checkpoint_formats()) labels.emplace_back(format.label);
    return Error{
        ErrorCode::unsupported_format,
        in_quotes(input.source->name()) +
            (content.empty() ? " is in no format that Posiscope reads" : " is " + content) +
            "; weights in one of these formats were expected: " + join_for_message(labels, labels.size()),
        "opening a checkpoint"};
}

std::string describe_unknown_content(const ByteSource& source)
{
    std::string start(static_cast<std::size_t>(std::min<std::uint64_t>(source.size(), 512)), '\0');
    if (start.empty()) return "an empty file";
    if (!source.read(0, std::as_writable_bytes(std::span(start)))) return {};
    if (start.starts_with("version https://git-lfs"))
        return "a Git LFS pointer, not the file itself; fetch it with 'git lfs pull'";
    const auto text_start = start.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
    if (text_start != std::string::npos && start[text_start] == '<')
        return "a web page, not weights; the download probably failed or needs a login";
    if (start.starts_with("\x89HDF"))
        return "an HDF5 file (Keras), which is not read; save it as safetensors";
    if (start.size() > 262 && std::string_view(start).substr(257, 5) == "ustar")
        return "a tar archive; unpack it and open what it holds";
    if (start.starts_with("\x1f\x8b")) return "a gzip archive; unpack it and open what it holds";
    if (start.starts_with("FUGG")) return "a GGUF file written on a big-endian machine";
    if (start.starts_with("ggml") || start.starts_with("tjgg") || start.starts_with("lmgg"))
        return "a GGML file from before GGUF; convert it with llama.cpp's tools";
    return {};
}

} // namespace posiscope::core
