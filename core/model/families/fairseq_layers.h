// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/model/families/stack_reader.h"

namespace posiscope::core {

/// How fairseq's Transformer and those that follow its names (BART, Marian, Whisper, OpenNMT) call the layers of the stack
/// `id`, with the norms before each block or behind it; those of "decoder" attend to the encoder.
LayerPattern fairseq_layers(const std::string& id, bool pre_norm);

} // namespace posiscope::core
