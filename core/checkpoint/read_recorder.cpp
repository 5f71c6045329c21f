// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/read_recorder.h"

#include <bit>
#include <utility>

#include "core/base/sha256.h"

namespace posiscope::core {
namespace {

thread_local ReadRecorder* innermost = nullptr;

} // namespace

ReadRecorder::ReadRecorder() : m_before(std::exchange(innermost, this)) {}

ReadRecorder::~ReadRecorder()
{
    innermost = m_before;
}

void ReadRecorder::note(std::string_view name, std::span<const std::int64_t> shape,
                        std::span<const float> values)
{
    static_assert(std::endian::native == std::endian::little, "digests are those of little-endian values");
    if (innermost == nullptr || innermost->m_digests.contains(std::string(name))) return;
    Sha256 sum;
    sum.add(std::as_bytes(values));
    innermost->m_digests.emplace(std::string(name),
                                 TensorDigest{Shape(shape.begin(), shape.end()), sum.finish()});
}

} // namespace posiscope::core
