// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/kernel_set.h"

#include <array>
#include <cstdlib>
#include <vector>

namespace posiscope::core {

#ifdef POSISCOPE_X86_KERNELS
extern const KernelSet kernel_set_v2;
extern const KernelSet kernel_set_v3;
extern const KernelSet kernel_set_v4;
#else
extern const KernelSet kernel_set_plain;
#endif

std::span<const KernelSet* const> available_kernels()
{
    static const std::vector<const KernelSet*> sets = [] {
        std::vector<const KernelSet*> found;
#ifdef POSISCOPE_X86_KERNELS
        __builtin_cpu_init();
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl"))
            found.push_back(&kernel_set_v4);
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
            found.push_back(&kernel_set_v3);
        found.push_back(&kernel_set_v2);
#else
        found.push_back(&kernel_set_plain);
#endif
        return found;
    }();
    return sets;
}

const KernelSet& kernels()
{
    static const KernelSet& chosen = []() -> const KernelSet& {
        if (const char* wanted = std::getenv("POSISCOPE_KERNELS"))
            for (const KernelSet* set : available_kernels())
                if (set->name == wanted) return *set;
        return *available_kernels().front();
    }();
    return chosen;
}

} // namespace posiscope::core
