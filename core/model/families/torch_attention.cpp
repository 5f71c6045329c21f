// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/families/torch_attention.h"

namespace posiscope::core {

TorchAttention read_torch_attention(StackReader& reader, const std::string& prefix, std::int64_t size)
{
    TorchAttention attention;
    LinearNames packed = reader.tensor_linear_if_there(prefix + "in_proj_weight", {3 * size, size});
    if (!packed.empty()) {
        packed.bias = reader.tensor_if_there(prefix + "in_proj_bias", {3 * size});
        attention.query = attention.key = attention.value = packed;
        attention.query.outputs = run_of_outputs(0, size);
        attention.key.outputs = run_of_outputs(size, size);
        attention.value.outputs = run_of_outputs(2 * size, size);
    }
    attention.output = reader.linear_if_there(prefix + "out_proj", size, size);
    return attention;
}

} // namespace posiscope::core
