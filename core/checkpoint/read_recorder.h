// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "core/tensor/shape.h"

namespace posiscope::core {

/// SHA-256 of what was read of one tensor.
struct TensorDigest {
    Shape shape; ///< of what was read: all of it, or rows
    std::string
        sha256; ///< of the float32 values, little-endian, row-major: the same in every lossless format
};

/// While it lives, notes a digest of every tensor that this thread reads from a checkpoint.
class ReadRecorder {
public:
    ReadRecorder();
    ~ReadRecorder();
    ReadRecorder(const ReadRecorder&) = delete;
    ReadRecorder& operator=(const ReadRecorder&) = delete;

    /// By name; of several readings of one tensor the first.
    [[nodiscard]] const std::map<std::string, TensorDigest>& digests() const { return m_digests; }

    /// Called by Checkpoint for each tensor that it has read.
    static void note(std::string_view name, std::span<const std::int64_t> shape,
                     std::span<const float> values);

private:
    std::map<std::string, TensorDigest> m_digests;
    ReadRecorder* m_before;
};

} // namespace posiscope::core
