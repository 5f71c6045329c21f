// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "core/checkpoint/byte_source.h"
#include "core/tensor/shape.h"

namespace posiscope::core {

/// What a .npy array says of itself.
struct NpyHeader {
    std::string type; ///< "<f8"
    bool fortran_order = false;
    Shape shape;
};

/// Reads the header of a .npy array, format versions 1 to 3, by a parser that knows texts, truth values and tuples of
/// whole numbers only; leaves in `offset` where the data begin.
/// Source: NumPy Enhancement Proposal 1, "A Simple File Format for NumPy Arrays", and numpy.lib.format.
/// @error unsupported_format (no .npy, another version, structures), corrupt_file, unreadable
Result<NpyHeader> read_npy_header(const ByteSource& source, std::uint64_t& offset);

} // namespace posiscope::core
