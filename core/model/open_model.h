// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/architecture.h"
#include "core/model/vocabulary.h"

namespace posiscope::core {

/// A checkpoint with its network and words recognised: what every analysis starts from. Immutable.
struct OpenModel {
    std::shared_ptr<const Checkpoint> checkpoint;
    Architecture architecture;
    Vocabulary vocabulary;
    std::vector<std::string> warnings; ///< of the checkpoint, the architecture and the vocabulary
};

/// Opens a checkpoint and recognises its network. Reads headers, the config and the vocabulary only.
/// @param location  a folder, a weight file with its config beside it, or "sample:NAME"
/// @error not_found, unreadable, unsupported_format, corrupt_file, unsupported_model, shape_mismatch
Result<std::shared_ptr<const OpenModel>> open_model(const std::string& location, const RunContext& ctx);

} // namespace posiscope::core
