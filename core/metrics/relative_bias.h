// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/metrics/offset_profile.h"
#include "core/metrics/quantity.h"
#include "core/metrics/white_band.h"
#include "core/model/open_model.h"

namespace posiscope::core {

/// What a curve of relative_bias shows.
enum class RelativeBiasKind {
    bias, ///< numbers that the scheme adds to the logits, as they are (T5, MPNet, ALiBi, Swin, BEiT, TUPE)
    constant_term, ///< the part of the offset terms that no word enters: constant queries and keys with the vectors of
                   ///< offsets (Shaw, NEZHA, XLNet, DeBERTa)
    rotation, ///< query . key of two equal vectors whose features all weigh the same: mean cosine of the angles
};
/// "bias", "constant_term", "rotation": stable.
std::string_view relative_bias_kind_name(RelativeBiasKind kind);

/// Offsets that share one number.
struct OffsetBucket {
    std::int64_t bucket = 0;
    std::int64_t first = 0, last = 0; ///< offsets j - i
    bool operator==(const OffsetBucket&) const = default;
};

/// What a relative scheme adds to the logits, before any word is read.
struct RelativeBias {
    RelativeBiasKind kind = RelativeBiasKind::bias;
    std::string scheme; ///< "bucketed relative bias, 32 buckets up to distance 128"
    std::int64_t length = 0;
    std::int64_t layer = 0;
    bool causal = false;
    std::vector<PositionMap>
        heads; ///< [L, L] each; NaN in the future of a decoder and where there is nothing (a prefix)
    PositionMap mean;
    std::vector<OffsetProfile> head_profiles; ///< by offset -(L-1) .. L-1
    OffsetProfile profile;                    ///< of the mean
    WhiteBand white_band;                     ///< of the mean
    std::vector<WhiteBand> head_white_bands;
    std::vector<OffsetBucket>
        buckets; ///< ascending by offset; empty where every offset has a number of its own
    /// Whether two pairs of positions with one offset may differ (a grid, TUPE): the curves are then means of diagonals.
    bool varies_within_offset = false;
    std::int64_t grid_rows = 0, grid_columns = 0; ///< of the patches of a bias on a grid
    std::vector<std::string> notes;               ///< defaults taken for numbers the config lacks
};

/// The buckets of offsets -(length - 1) .. length - 1.
std::vector<OffsetBucket> offset_buckets(const BucketedBias& scheme, std::int64_t length);

/// Reads the bias of one layer; of the model's weights only what the scheme itself needs.
/// @param length  L; a grid has its own
/// @error unsupported_model (no relative scheme: the sentence names the scheme), invalid_argument (no such layer, length
///        below 2), not_found, numeric_failure, unreadable, cancelled
Result<RelativeBias> read_relative_bias(const OpenModel& model, const Stack& stack, int layer,
                                        std::int64_t length, const RunContext& ctx);

/// Why a stack has no relative bias, as a sentence; empty where it has one. Reads nothing.
std::string lack_of_relative_bias(const Stack& stack);

} // namespace posiscope::core
