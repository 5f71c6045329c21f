// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
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
    Vocabulary vocabulary; ///< of the default stack and of every other without its own
    std::map<std::string, Vocabulary, std::less<>> stack_vocabularies; ///< of stacks that read other words
    std::vector<std::string> unmatched_tensors; ///< by their names in the file: the family does not know them
    std::vector<std::string> prefixes;          ///< taken off in front of tensor names
    std::vector<std::string> warnings;          ///< of the checkpoint, the architecture and the vocabulary

    /// The words of a stack, by its id.
    [[nodiscard]] const Vocabulary& vocabulary_of(std::string_view stack) const
    {
        const auto own = stack_vocabularies.find(stack);
        return own == stack_vocabularies.end() ? vocabulary : own->second;
    }
};

/// Opens a checkpoint and recognises its network. Reads headers, the config and the vocabulary only.
/// @param location  a folder, a weight file with its config beside it, or "sample:NAME"
/// @error not_found, unreadable, unsupported_format, corrupt_file, unsupported_model, shape_mismatch
Result<std::shared_ptr<const OpenModel>> open_model(const std::string& location, const RunContext& ctx);

} // namespace posiscope::core
