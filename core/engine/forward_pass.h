// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/model/engine.h"

namespace posiscope::core {

/// Names of the activations of the feed-forward part that forward passes know, as configs write them.
std::vector<std::string> known_activations();

/// The activation of that name, or an undefined tensor where it is not known.
/// Source: the formulas that Hugging Face transformers gives these names (ACT2FN).
at::Tensor activation(const std::string& name, const at::Tensor& input);

/// Runs a post-norm stack on the identical words of `model` and averages the last layer's attention over words.
///     x0 = LN(word + position);  for each layer: x' = LN(x + Wo attention(x) + bo),  x = LN(x' + W2 f(W1 x'))
/// Source: Vaswani et al. 2017, sec. 3.1 to 3.3 (post-norm); Devlin et al. 2019 (BERT) for the input and the activation.
/// Logits are summed as computed, without the causal mask; probabilities with it. Sums are double.
/// Which batch a thread takes is left to chance, so the last bits of the double sums may differ between runs.
/// The caller has set the inference guard and catches what LibTorch throws.
/// @error shape_mismatch (an array of another shape than the model says), invalid_argument, unsupported_model
///        (activation), out_of_memory, numeric_failure, cancelled
Result<ForwardResult> forward_attention_maps(const Network& network, const ForwardOptions& options,
                                             const at::Device& device, const RunContext& ctx);

} // namespace posiscope::core
