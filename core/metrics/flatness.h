// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>

#include "core/metrics/quantity.h"

namespace posiscope::core {

/// A map whose standard deviation is at most this share of its largest magnitude shows no preference at all.
inline constexpr double flat_tolerance = 1e-5;

/// Offsets counted as local: "within 20 offsets" (Wang et al., "On Position Embeddings in BERT", ICLR 2021).
inline constexpr std::size_t local_offsets = 20;

/// No preference at all: standard deviation of the defined entries <= flat_tolerance * largest magnitude; also where
/// no entry is defined. Causal probabilities fall as 1 / (i + 1) by themselves: they go in as `unrolled`.
bool is_flat(const PositionMap& map);

/// is_flat as it must be asked of a quantity: causal probabilities are unrolled first.
bool is_flat(const PositionMap& map, Quantity quantity);

/// Each row times the number of its keys: causal probabilities become 1 everywhere where position does nothing.
PositionMap unrolled(const PositionMap& probabilities);

/// Whether nothing above the diagonal is defined (and there is something above it).
bool is_causal(const PositionMap& map);

/// Largest |entry|, infinities included; NaN where every entry is NaN.
double largest_magnitude(const PositionMap& map);

} // namespace posiscope::core
