// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>

#include "core/metrics/flatness.h"
#include "core/metrics/offset_profile.h"
#include "core/metrics/quantity.h"

namespace posiscope::core {

/// How little a word attends to itself and its nearest neighbours. All NaN where undefined; all 0 where there is no
/// band.
struct WhiteBand {
    double width = 0.0;    ///< number of offsets
    double depth = 0.0;    ///< lower peak - m_0, in the map's own unit
    double depth_sd = 0.0; ///< depth / standard deviation of the profile over |offset| <= within
    double first = 0.0;    ///< first and last offset of the band
    double last = 0.0;
};

/// The white band of a map, from its offset profile m_k, |k| <= within. Each side that exists has a peak, its
/// largest m_k; `peak` is the lower of them. No band where m_0 >= peak; else the longest run of offsets around 0 with
/// m_k < (m_0 + peak) / 2. Too shallow (depth at most a tenth of the range of m_k, or four times the mean standard
/// error of m_k) or too wide (more than within / 2 + 1 offsets) is no band.
/// Source of the property: Wang et al., "On Position Embeddings in BERT", ICLR 2021; the formula is this project's.
WhiteBand white_band(const PositionMap& map, std::size_t within = local_offsets);

/// The same from a profile of a map that is not flat.
WhiteBand white_band(const OffsetProfile& profile, std::size_t within = local_offsets);

/// What a flat map has: every value NaN.
WhiteBand undefined_white_band();

} // namespace posiscope::core
