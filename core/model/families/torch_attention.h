// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/model/families/stack_reader.h"

namespace posiscope::core {

/// The four matrices of one nn.MultiheadAttention.
struct TorchAttention {
    LinearNames query, key, value, output;
};

/// nn.MultiheadAttention as PyTorch saves it: query, key and value one below the other in `prefix` + "in_proj_weight", and
/// `prefix` + "out_proj". Parts that are missing come back empty.
TorchAttention read_torch_attention(StackReader& reader, const std::string& prefix, std::int64_t size);

} // namespace posiscope::core
