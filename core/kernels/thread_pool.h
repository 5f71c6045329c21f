// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <functional>

namespace posiscope::core {

/// Threads that core may use: OMP_NUM_THREADS where it is set, else the cores this process may run on.
std::size_t default_thread_count();

/// Sets how many threads parallel_blocks uses from now on (at least 1). Results do not depend on it.
void set_thread_count(std::size_t threads);
std::size_t thread_count();

/// Calls work(block) once for every block 0 .. blocks - 1, on several threads, and returns when all are done.
/// The caller divides the work into blocks that do not depend on the number of threads and writes to places that
/// belong to one block each: then the same inputs give the same bits whatever the thread count.
/// May be called from several threads at once and from inside a block (the inner call then runs on that thread).
/// What a block throws reaches the caller: the first of several, once no block runs any more.
void parallel_blocks(std::size_t blocks, const std::function<void(std::size_t block)>& work);

} // namespace posiscope::core
