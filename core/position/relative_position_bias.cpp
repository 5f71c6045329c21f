// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/position/relative_position_bias.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace posiscope::core {

std::int64_t relative_position_bucket(std::int64_t offset, const BucketedBias& scheme)
{
    std::int64_t buckets = scheme.buckets;
    std::int64_t first = 0;
    std::int64_t distance = std::max<std::int64_t>(-offset, 0);
    if (scheme.bidirectional) {
        buckets /= 2;
        first = offset > 0 ? buckets : 0;
        distance = std::abs(offset);
    }
    const std::int64_t exact = buckets / 2;
    if (distance < exact) return first + distance;
    // In float32 as the released code, whose edges decide which offsets share a bucket.
    const float range =
        static_cast<float>(std::log(static_cast<double>(scheme.max_distance) / static_cast<double>(exact)));
    const float ratio = std::log(static_cast<float>(distance) / static_cast<float>(exact)) / range;
    const auto further = static_cast<std::int64_t>(ratio * static_cast<float>(buckets - exact));
    return first + std::min(exact + further, buckets - 1);
}

HostTensor bucketed_position_bias(const HostTensor& table, const BucketedBias& scheme, std::int64_t length)
{
    const std::int64_t heads = table.dim(1);
    HostTensor bias({heads, length, length});
    for (std::int64_t i = 0; i < length; ++i)
        for (std::int64_t j = 0; j < length; ++j) {
            const std::int64_t bucket = relative_position_bucket(j - i, scheme);
            for (std::int64_t h = 0; h < heads; ++h)
                bias.data()[(h * length + i) * length + j] = table.data()[bucket * heads + h];
        }
    return bias;
}

std::vector<double> alibi_slopes(std::int64_t heads, double largest_bias, bool cut)
{
    std::int64_t power = 1;
    while (power * 2 <= heads) power *= 2;
    const auto slope = [&](std::int64_t rank, std::int64_t of) {
        return std::exp2(-largest_bias * static_cast<double>(rank) / static_cast<double>(of));
    };
    std::vector<double> slopes;
    if (power == heads || !cut) {
        for (std::int64_t h = 1; h <= power; ++h) slopes.push_back(slope(h, power));
        for (std::int64_t h = 0; h < heads - power; ++h) slopes.push_back(slope(2 * h + 1, 2 * power));
        return slopes;
    }
    for (const std::int64_t start : {2, 1})
        for (std::int64_t rank = start; rank <= 2 * power; rank += 2)
            slopes.push_back(slope(rank, 2 * power));
    slopes.resize(static_cast<std::size_t>(heads));
    return slopes;
}

HostTensor alibi_bias(const std::vector<double>& slopes, bool ends_at_zero, std::int64_t length)
{
    const auto heads = static_cast<std::int64_t>(slopes.size());
    HostTensor bias({heads, length, length});
    for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t i = 0; i < length; ++i)
            for (std::int64_t j = 0; j < length; ++j)
                bias.data()[(h * length + i) * length + j] =
                    static_cast<float>(slopes[static_cast<std::size_t>(h)] *
                                       static_cast<double>(ends_at_zero ? j - (length - 1) : j));
    return bias;
}

} // namespace posiscope::core
