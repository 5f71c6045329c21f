// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/metrics/quantity.h"

namespace posiscope::core {

/// Energy of the antisymmetric part over the centred energy, off the diagonal, over mirrored pairs that are both
/// defined: 0 symmetric, 1/2 noise, 1 antisymmetric. NaN for a flat map and for a causal one.
/// Source of the property: Wang et al., "On Position Embeddings in BERT", ICLR 2021; the formula is this project's.
double symmetry_violation(const PositionMap& map);

} // namespace posiscope::core
