// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/families/stack_reader.h"

namespace posiscope::core {

/// Transformer-XL's vectors of offsets, which XLNet shares: sinusoids of i - j over the features of the hidden states, that
/// meet the queries; distances beyond the config's "clamp_len" count as that.
/// Source: Dai et al. 2019, sec. 3.3, and the released code.
RelativeVectors read_sinusoidal_offsets(StackReader& reader, const Stack& stack);

} // namespace posiscope::core
