// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/model/architecture.h"
#include "core/model/tensor_names.h"
#include "core/model/vocabulary.h"

namespace posiscope::core {

/// One family of models. To add one: a file in core/model/families and a row in family_table.cpp.
struct ModelFamily {
    std::string_view id;                             ///< stable: written to results and session files
    std::string_view label;                          ///< "BERT"
    std::span<const std::string_view> model_types;   ///< `model_type` of config.json
    std::span<const std::string_view> name_prefixes; ///< in front of canonical tensor names
    std::span<const std::string_view>
        signature; ///< canonical names that together give the family away; empty: none do
    /// Fills the architecture from config and tensor names; reads no weight.
    Result<Architecture> (*read_architecture)(const TensorNames& names);
    /// Marks which words may be drawn and finds the special tokens by their text.
    void (*apply_vocabulary)(Architecture& architecture, std::vector<Vocabulary::Entry>& entries);
};

/// THE list of model families.
std::span<const ModelFamily> model_families();

/// The family of a checkpoint, by `model_type` or, where that is missing, by its tensor names (with a note).
/// @error unsupported_model: lists the families that are known
Result<const ModelFamily*> find_family(const Checkpoint& checkpoint, std::vector<std::string>& notes);

} // namespace posiscope::core
