// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/architecture.h"

namespace posiscope::core {

// What every family checks of its config against its tensors, in one place and one wording.

inline constexpr std::int64_t largest_hidden_size = 1 << 20;
inline constexpr std::int64_t most_layers = 4096;

/// Hidden size: the config's, held against the table's columns; the table's, with a note, where the config has none.
Result<std::int64_t> checked_hidden_size(const ConfigJson& config, std::string_view key,
                                         const TensorInfo& word_table, std::vector<std::string>& notes);

/// Number of heads: never guessed. Must divide `hidden_size`.
Result<std::int64_t> checked_heads(const ConfigJson& config, std::string_view key, std::int64_t hidden_size);

/// Rows of a table that the config also speaks of. More rows than the config says: the table wins, with a note.
/// Fewer: refused, unless `may_be_cut` (a sample that carries a vocab.tsv). `beside_config` rows are not counted by the
/// config (BART's and OPT's first two).
Result<std::int64_t> checked_rows(const ConfigJson& config, std::string_view key, const TensorInfo& table,
                                  bool may_be_cut, std::vector<std::string>& notes,
                                  std::int64_t beside_config = 0);

/// Epsilon of a norm, or the family's published default with a note.
Result<double> checked_epsilon(const ConfigJson& config, std::string_view key, double published_default,
                               std::vector<std::string>& notes);

/// Name of an activation that the forward pass knows.
Result<std::string> checked_activation(const ConfigJson& config, std::string_view key,
                                       std::string_view published_default, std::vector<std::string>& notes);

/// Whether the checkpoint's word table is cut, with a vocab.tsv that says which rows are left.
bool has_cut_vocabulary(const Checkpoint& checkpoint);

} // namespace posiscope::core
