// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/model/network.h"

namespace posiscope::core {

// Rows of hidden states through the parts of a network, in core's own kernels: enough where identical words stay
// identical at every position, so that one row stands for all of them.

/// Norm of every row [n, features]; sums in double.
void apply_norm(const Norm& norm, HostTensor& rows);

/// The same over every run of `features` values of each row (norms on the heads of queries and keys).
void apply_head_norm(const Norm& norm, std::int64_t features, HostTensor& rows);

/// rows [n, in] -> [n, out]
HostTensor apply_linear(const Linear& linear, const HostTensor& rows);

/// Activation by its name in published configs ("gelu", "gelu_new", "silu", ...), element by element.
/// @error unsupported_model: a name that is not known
Result<void> apply_activation(const std::string& name, HostTensor& rows);

/// Rows as they enter the first layer: embedding norm and map applied. rows [n, embedding size] -> [n, hidden size]
HostTensor enter_first_layer(const Network& network, HostTensor rows);

/// Rows as they enter a layer: four equal neighbours joined to one where the layer merges (Swin).
void enter_layer(const NetworkLayer& layer, HostTensor& rows);

/// One layer on rows that are the same at every position (enter_layer done): attention gives back the row's own value,
/// whatever its probabilities, since they sum to one; cross-attention that of the encoder's row alike.
/// @param encoder_rows  [n, encoder's hidden size], or empty where nothing is read
/// @error unsupported_model (activation)
Result<void> pass_layer(const NetworkLayer& layer, const HostTensor& encoder_rows, HostTensor& rows);

} // namespace posiscope::core
