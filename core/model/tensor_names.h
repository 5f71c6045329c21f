// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/checkpoint/checkpoint.h"

namespace posiscope::core {

/// Finds a family's tensors under the many names they travel by. Prefixes such as "module." or "bert." are taken
/// off at the start of a name only, repeatedly; "gamma" and "beta" are read as "weight" and "bias" only where the
/// two stand together in a LayerNorm. For one thread: it remembers what was asked for.
class TensorNames {
public:
    TensorNames(const Checkpoint& checkpoint, std::vector<std::string_view> family_prefixes);

    /// The tensor of this canonical name, or null.
    [[nodiscard]] const TensorInfo* find(std::string_view canonical) const;

    /// The same, of the given shape (-1: any size) and of a floating-point type.
    /// @error not_found: names what was looked for and the nearest names that exist; shape_mismatch
    [[nodiscard]] Result<const TensorInfo*> require(std::string_view canonical, const Shape& shape) const;
    /// The same where the tensor may be missing (null), but not have another shape.
    [[nodiscard]] Result<const TensorInfo*> optional(std::string_view canonical, const Shape& shape) const;

    /// Names in the file of the tensors that nobody asked for so far: heads, poolers, buffers, other networks.
    [[nodiscard]] std::vector<std::string> unmatched() const;
    /// What was taken off in front of names: "model.bert.".
    [[nodiscard]] std::vector<std::string> prefixes() const;

    /// Two tensors of the file that carry the same canonical name, as warnings.
    [[nodiscard]] const std::vector<std::string>& warnings() const { return m_warnings; }
    [[nodiscard]] const Checkpoint& checkpoint() const { return m_checkpoint; }

    /// The error for a tensor that is not there.
    [[nodiscard]] Error missing(std::string_view canonical) const;
    /// The error for tensors of which none is there.
    [[nodiscard]] Error missing(const std::vector<std::string>& canonical) const;

private:
    const Checkpoint& m_checkpoint;
    std::map<std::string, const TensorInfo*, std::less<>> m_by_canonical;
    std::map<std::string, std::string, std::less<>> m_absent; ///< canonical name -> shard that is not there
    std::set<std::string, std::less<>> m_prefixes;
    mutable std::set<const TensorInfo*> m_matched; ///< a record of what was asked for
    std::vector<std::string> m_warnings;
};

} // namespace posiscope::core
