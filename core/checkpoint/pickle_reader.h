// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/checkpoint/byte_source.h"

namespace posiscope::core {

/// What a pickled value is. Classes and functions are names only: nothing is imported or called, and what a call would
/// have made is an `object` that remembers what was called with which arguments.
enum class PickleKind : std::uint8_t {
    none,
    boolean,
    integer,
    real,
    text,
    bytes, ///< content dropped
    tuple,
    list,       ///< also sets
    dict,       ///< items: key, value, key, value, ...
    global,     ///< text: "module.name"
    object,     ///< callee, arguments, state; items as those of a dict or list where the class has them
    persistent, ///< arguments: the identity, a tuple in PyTorch's files
};

/// A value by its place in Pickle::nodes. Values refer to each other by these numbers, so that depth and cycles are harmless.
using PickleId = std::uint32_t;
inline constexpr PickleId no_pickle = 0xFFFFFFFF;

struct PickleNode {
    PickleKind kind = PickleKind::none;
    std::uint32_t text_begin = 0, text_size = 0; ///< of text and global, in Pickle::texts
    std::int64_t integer = 0;                    ///< also of boolean; of `real` the bits
    PickleId callee = no_pickle, arguments = no_pickle, state = no_pickle;
    std::vector<PickleId> items;
};

struct Pickle {
    std::vector<PickleNode> nodes;
    std::string texts;
    PickleId root = no_pickle;
    std::uint64_t end = 0; ///< first byte behind the pickle

    [[nodiscard]] const PickleNode& operator[](PickleId id) const { return nodes[id]; }
    [[nodiscard]] std::string_view text(PickleId id) const;
    [[nodiscard]] std::optional<std::int64_t> integer(PickleId id) const;
    [[nodiscard]] double real(PickleId id) const;
    /// "module.name" of what an object was made by; empty for anything else.
    [[nodiscard]] std::string_view made_by(PickleId id) const;
    /// The arguments of an object, or the identity of a persistent value, where they are a tuple; else empty.
    [[nodiscard]] const std::vector<PickleId>& arguments(PickleId id) const;
    /// Value of a text key of a dict (or an object with items), or no_pickle.
    [[nodiscard]] PickleId value(PickleId dict, std::string_view key) const;
};

/// Reads one pickle of protocol 0 to 5 from `begin` on.
/// Source: the opcodes of CPython's Lib/pickletools.py.
/// @error corrupt_file: broken pickles, too large ones, and such as name something that only programs need
///        (os.system, builtins.eval); the message names it
Result<Pickle> read_pickle(const ByteSource& source, std::uint64_t begin);

} // namespace posiscope::core
