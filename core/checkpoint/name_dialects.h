// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/tensor_file.h"

namespace posiscope::core {

/// Gives tensors the names and the orientation that PyTorch's files have, wherever a file follows the customs of another
/// program: slashes and kernels [in, out] (TensorFlow, Keras, Flax, JAX), short names (GGUF). Rules, not models: what
/// nobody knows keeps its name. The name in the file stays in `stored_name`. Families then see one set of names.
void translate_names(TensorFile& file);

} // namespace posiscope::core
