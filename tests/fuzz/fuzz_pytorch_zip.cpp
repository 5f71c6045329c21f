// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/fuzz/fuzz_format.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    posiscope::tests::fuzz_format("pytorch_zip", data, size);
    return 0;
}
