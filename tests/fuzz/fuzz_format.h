// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace posiscope::tests {

/// Opens the bytes as a file of one format, whatever they look like, and reads what was found, as far as it is small. The
/// file stands for every file beside it as well (data files, external data, shards).
void fuzz_format(std::string_view id, const std::uint8_t* data, std::size_t size);

} // namespace posiscope::tests
