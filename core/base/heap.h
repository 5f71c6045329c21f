// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdlib> // defines __GLIBC__ where it is

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace posiscope::core {

/// Called once at the start of a program: freed memory stays with the program instead of going back to the system
/// after every probe, since getting it again, page by page, costs a tenth of a first-layer probe.
inline void keep_freed_memory()
{
#ifdef __GLIBC__
    constexpr int most = 256 * 1024 * 1024;
    mallopt(M_MMAP_THRESHOLD, most / 8);
    mallopt(M_TRIM_THRESHOLD, most);
#endif
}

} // namespace posiscope::core
