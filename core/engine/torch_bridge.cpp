// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/torch_bridge.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>

#include "core/base/text.h"
#include "core/model/engine_library.h"

namespace posiscope::core {
namespace {

std::string_view first_line(std::string_view text)
{
    return trimmed(text.substr(0, text.find('\n')));
}

} // namespace

at::Tensor to_device(const HostTensor& array, const at::Device& device)
{
    if (array.empty()) return {};
    // from_blob has no form for const memory; nothing writes to weights.
    const at::Tensor shared = at::from_blob(const_cast<float*>(array.data()), array.shape(), at::kFloat);
    return device.is_cpu() ? shared : shared.to(device);
}

HostTensor to_host(const at::Tensor& tensor)
{
    const at::Tensor values = tensor.to(at::kCPU, at::kFloat).contiguous();
    const float* first = values.data_ptr<float>();
    return HostTensor(values.sizes().vec(), std::vector<float>(first, first + values.numel()));
}

bool is_out_of_memory(const c10::Error& error)
{
    if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
    // The CPU's allocator throws a plain c10::Error, as do cuBLAS's workspaces.
    const std::string_view message = error.what_without_backtrace();
    for (const std::string_view sign :
         {"out of memory", "can't allocate memory", "not enough memory", "CUBLAS_STATUS_ALLOC_FAILED"})
        if (message.find(sign) != std::string_view::npos) return true;
    return false;
}

Error torch_error(const c10::Error& error, std::string_view where)
{
    const bool memory = is_out_of_memory(error);
    return Error{memory ? ErrorCode::out_of_memory : ErrorCode::internal,
                 "LibTorch says: " + printable(first_line(error.what_without_backtrace()), 300),
                 std::string(where)};
}

void set_torch_threads(std::size_t threads)
{
    constexpr std::size_t most = 1024;
    const int count = static_cast<int>(std::clamp<std::size_t>(threads, 1, most));
    at::set_num_threads(count);
    // OpenBLAS on its own threads is not reached by LibTorch's setting.
    using SetThreads = void (*)(int);
    if (const auto set = loaded_function<SetThreads>("openblas_set_num_threads")) set(count);
}

bool blas_is_quick()
{
    static const bool quick = [] {
        if (at::hasMKL()) return true;
#if defined(__x86_64__)
        const auto core_name = loaded_function<const char* (*)()>("openblas_get_corename");
        const char* name = core_name != nullptr ? core_name() : nullptr;
        if (name != nullptr && __builtin_cpu_supports("avx512f") != 0) return kernels_use_avx512(name);
#endif
        return false;
    }();
    return quick;
}

} // namespace posiscope::core
