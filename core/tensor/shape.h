// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace posiscope::core {

/// Sizes of a tensor's axes, outermost first; empty for a scalar. Never negative.
using Shape = std::vector<std::int64_t>;

/// Product of the sizes, or nothing where it does not fit 64 bits or a size is negative.
std::optional<std::uint64_t> element_count(std::span<const std::int64_t> shape);

/// "[512, 384]"
std::string shape_text(std::span<const std::int64_t> shape);

} // namespace posiscope::core
