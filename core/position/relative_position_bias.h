// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/host_tensor.h"

namespace posiscope::core {

/// T5's buckets of offsets. Source: Raffel et al. 2020, sec. 2.1, and its released code.
struct BucketedBias {
    std::int64_t buckets = 32;
    std::int64_t max_distance = 128;
    bool bidirectional = true;
};

/// ALiBi. Source: Press et al. 2022.
struct AlibiScheme {
    double largest_bias = 8.0;
    /// The bias is slope * (j - last position), or slope * j; both differ from slope * (j - i) by a query constant.
    bool ends_at_zero = false;
    bool cut_slopes = false; ///< how numbers of heads that are no power of two are served (alibi_slopes)
};

/// T5's bucket of an offset j - i. Half of the exact buckets hold one offset each, the others grow
/// logarithmically up to `max_distance`; bidirectional: the upper half of the buckets is for keys that follow.
/// Source: Raffel et al. 2020, sec. 2.1, and its released code (float32 logarithm, truncated).
std::int64_t relative_position_bucket(std::int64_t offset, const BucketedBias& scheme);

/// Bias of every pair of positions from a table of buckets.
/// @param table  [buckets, heads]
/// @return [heads, length, length]
HostTensor bucketed_position_bias(const HostTensor& table, const BucketedBias& scheme, std::int64_t length);

/// Slopes of ALiBi. For n heads, n a power of two, 2^(-largest_bias (h + 1) / n). For other numbers BLOOM (`cut`
/// false) takes those of the power of two below and then every other one of the power above; MPT (`cut`) those of
/// the power above, the second, fourth, ... first, cut to n.
/// Source: Press et al. 2022, sec. 3, and the released code of BLOOM and MPT.
std::vector<double> alibi_slopes(std::int64_t heads, double largest_bias, bool cut);

/// slope_h * (j - last) where the scheme ends at zero, else slope_h * j.
/// @return [heads, length, length]
HostTensor alibi_bias(const std::vector<double>& slopes, bool ends_at_zero, std::int64_t length);

} // namespace posiscope::core
