// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>

#include "core/position/sinusoidal.h"
#include "core/tensor/host_tensor.h"

namespace posiscope::core {

/// Vectors of offsets that meet queries, keys or values inside the attention. The row of an offset o = j - i is
///     clamp(direction * o (or its bucket) + centre, 0, rows - 1),   direction -1 where `counts_back`, else 1.
/// Source: Shaw et al. 2018, sec. 3.1; Dai et al. 2019, sec. 3.3 (sinusoids); He et al. 2021, sec. 3 (DeBERTa).
struct RelativeVectors {
    std::int64_t rows = 0; ///< 0: as many as the length needs (computed ones only)
    std::int64_t centre = 0;
    bool counts_back = false; ///< rows count i - j
    bool zero_outside =
        false; ///< an offset beyond the rows has no vector; else it has that of the outermost row
    std::int64_t buckets = 0;  ///< DeBERTa-v2's logarithmic buckets; 0: none
    std::int64_t furthest = 0; ///< buckets: offset that the last one reaches
    bool for_keys = false;     ///< met by queries
    bool for_queries = false;  ///< met by keys
    bool for_values = false;   ///< added to values
    std::int64_t features = 0; ///< of a row
    bool computed = false;     ///< sinusoids instead of a table: sinusoidal, of angle row + first_angle
    SinusoidalScheme sinusoidal;
    std::int64_t first_angle = 0;
};

/// The row of offset j - i; nothing where it has no vector. Without a number of rows, the number may be negative.
std::optional<std::int64_t> relative_vector_row(std::int64_t offset, const RelativeVectors& scheme);

/// DeBERTa-v2's bucket of a distance: itself up to buckets / 2, then logarithmic up to `furthest`, in float32.
/// Source: He et al. 2021 (DeBERTaV3) and its released code.
std::int64_t log_bucket(std::int64_t distance, std::int64_t buckets, std::int64_t furthest);

/// Vectors of offsets -(length - 1) .. length - 1.
/// @param table  [rows, features]; not looked at where they are computed
/// @return [2 length - 1, features]; zeros where an offset has no vector
HostTensor vectors_of_offsets(const HostTensor& table, const RelativeVectors& scheme, std::int64_t length);

} // namespace posiscope::core
