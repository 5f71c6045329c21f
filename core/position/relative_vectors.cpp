// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/position/relative_vectors.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace posiscope::core {

std::int64_t log_bucket(std::int64_t distance, std::int64_t buckets, std::int64_t furthest)
{
    const std::int64_t middle = buckets / 2, size = std::abs(distance);
    if (size <= middle) return distance;
    // In float32 as the released code, whose rounding decides which offsets share a bucket.
    const float ratio = std::log(static_cast<float>(size) / static_cast<float>(middle)) /
                        std::log(static_cast<float>(furthest - 1) / static_cast<float>(middle));
    const auto further = static_cast<std::int64_t>(std::ceil(ratio * static_cast<float>(middle - 1)));
    return (distance > 0 ? 1 : -1) * (middle + further);
}

std::optional<std::int64_t> relative_vector_row(std::int64_t offset, const RelativeVectors& scheme)
{
    std::int64_t distance = scheme.counts_back ? -offset : offset;
    if (scheme.buckets > 0) distance = log_bucket(distance, scheme.buckets, scheme.furthest);
    const std::int64_t row = distance + scheme.centre;
    if (scheme.rows == 0) return row;
    if (scheme.zero_outside && (row < 0 || row >= scheme.rows)) return std::nullopt;
    return std::clamp<std::int64_t>(row, 0, scheme.rows - 1);
}

HostTensor vectors_of_offsets(const HostTensor& table, const RelativeVectors& scheme, std::int64_t length)
{
    HostTensor vectors({2 * length - 1, scheme.features});
    for (std::int64_t o = 0; o < 2 * length - 1; ++o) {
        const auto row = relative_vector_row(o - (length - 1), scheme);
        if (!row) continue;
        float* out = vectors.data() + o * scheme.features;
        if (scheme.computed) {
            const HostTensor angles =
                sinusoidal_table(scheme.sinusoidal, *row + scheme.first_angle, 1, scheme.features);
            std::copy_n(angles.data(), scheme.features, out);
        } else {
            std::copy_n(table.data() + *row * scheme.features, scheme.features, out);
        }
    }
    return vectors;
}

} // namespace posiscope::core
