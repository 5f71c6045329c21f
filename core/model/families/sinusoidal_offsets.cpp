// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/families/sinusoidal_offsets.h"

namespace posiscope::core {

RelativeVectors read_sinusoidal_offsets(StackReader& reader, const Stack& stack)
{
    RelativeVectors vectors;
    vectors.features = stack.hidden_size;
    vectors.counts_back = true;
    vectors.for_keys = true;
    vectors.computed = true;
    const std::int64_t clamp = reader.integer_or("clamp_len", -1, -1, 1 << 28);
    if (clamp > 0) {
        vectors.rows = 2 * clamp + 1;
        vectors.centre = clamp;
        vectors.first_angle = -clamp;
    }
    return vectors;
}

} // namespace posiscope::core
