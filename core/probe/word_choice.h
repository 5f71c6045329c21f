// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/model/open_model.h"
#include "core/probe/probe_result.h"

namespace posiscope::core {

/// The words of a probe as entries of the vocabulary that a stack reads, in draw order.
/// @param warnings  told where fewer words exist than were asked for, or a special token was listed
/// @error invalid_argument: an unknown id or word, the padding token, nothing to draw
Result<std::vector<const Vocabulary::Entry*>> choose_words(const OpenModel& model, std::string_view stack,
                                                           const WordSelection& selection, std::uint64_t seed,
                                                           std::vector<std::string>& warnings);

/// Sizes of the groups that `words` fall into by draw order: min(words, most_groups) runs whose sizes differ by one
/// at most, the larger ones first.
std::vector<std::size_t> group_sizes(std::size_t words);

} // namespace posiscope::core
