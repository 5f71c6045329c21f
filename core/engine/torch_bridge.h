// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <exception>
#include <functional>
#include <new>
#include <string>
#include <string_view>

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <dlfcn.h>

#include "core/base/result.h"
#include "core/tensor/host_tensor.h"

namespace posiscope::core {

/// The array on `device`; on the CPU it is shared, not copied, and must outlive the tensor. An empty array gives an
/// undefined tensor.
at::Tensor to_device(const HostTensor& array, const at::Device& device);

/// The tensor's values as float32 in memory.
HostTensor to_host(const at::Tensor& tensor);

/// Whether a failure of LibTorch says that memory ran out, on the CPU or on the GPU.
bool is_out_of_memory(const c10::Error& error);

/// A failure of LibTorch as an Error: its own first line, without the backtrace.
Error torch_error(const c10::Error& error, std::string_view where);

/// Calls `work` and turns whatever LibTorch throws into an Error. Nothing that LibTorch does may throw past it.
template <class T>
Result<T> without_exceptions(std::string_view where, const std::function<Result<T>()>& work) noexcept
{
    try {
        try {
            return work();
        } catch (const c10::Error& error) {
            return torch_error(error, where);
        } catch (const std::bad_alloc&) {
            return Error{ErrorCode::out_of_memory, "the memory of this machine does not suffice",
                         std::string(where)};
        } catch (const std::exception& error) {
            return Error{ErrorCode::internal, std::string("LibTorch failed: ") + error.what(),
                         std::string(where)};
        }
    } catch (...) {
        return Error{ErrorCode::internal, {}, {}};
    }
}

/// A function of a library that LibTorch brought along, or null.
template <class Function>
Function loaded_function(const char* name)
{
    return reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
}

/// Whether LibTorch's BLAS makes full use of the processor on one thread: MKL, or OpenBLAS with kernels for AVX-512
/// where the processor has that. Else core's own kernels are quicker there.
bool blas_is_quick();

/// Threads that LibTorch and the BLAS under it use from now on in this thread.
void set_torch_threads(std::size_t threads);

} // namespace posiscope::core
