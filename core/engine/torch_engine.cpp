// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/torch_engine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include <ATen/Context.h>
#include <ATen/Version.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/matmul.h>
#include <c10/core/InferenceMode.h>
#include <torch/version.h>

#include <dlfcn.h>

#include "core/base/random.h"
#include "core/base/text.h"
#include "core/engine/forward_pass.h"
#include "core/engine/torch_bridge.h"
#include "core/model/engine_library.h"

namespace posiscope::core {
namespace {

/// "2024.2" of "Intel(R) oneAPI Math Kernel Library Version 2024.2-Product Build 20240605 for ...".
std::string mkl_version()
{
    const std::string text = at::get_mkl_version();
    constexpr std::string_view before = "Version ";
    const std::size_t at = text.find(before);
    if (at == std::string::npos) return {};
    const std::size_t first = at + before.size();
    return printable(std::string_view(text).substr(first, text.find_first_of(" -\n", first) - first));
}

struct BlasDescription {
    std::string text;
    std::optional<std::string> warning;
};

BlasDescription describe_blas()
{
    if (at::hasMKL()) {
        const std::string number = mkl_version();
        return {number.empty() ? "MKL" : "MKL " + number, std::nullopt};
    }
    using TextFunction = const char* (*)();
    if (const auto core_name = loaded_function<TextFunction>("openblas_get_corename")) {
        const std::string core = printable(core_name());
        std::string name = "OpenBLAS";
        if (const auto config = loaded_function<TextFunction>("openblas_get_config")) {
            // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
            const auto words = split(config(), ' ');
            if (words.size() > 1) name += " " + printable(words[1]);
        }
        BlasDescription blas{name + ", " + core + " kernels", std::nullopt};
#if defined(__x86_64__)
        if (__builtin_cpu_supports("avx2") != 0 && !kernels_use_avx2(core))
            blas.warning =
                name + " runs its " + core +
                " kernels on a processor that has AVX2, at a quarter of the speed; start the program with "
                "OPENBLAS_CORETYPE=Haswell";
#endif
        return blas;
    }
    if (loaded_function<void*>("bli_info_get_version_str") != nullptr) return {"BLIS", std::nullopt};
    if (loaded_function<void*>("ATL_buildinfo") != nullptr) return {"ATLAS", std::nullopt};
    void* product = loaded_function<void*>("sgemm_");
    if (product == nullptr) return {"LibTorch's own kernels", std::nullopt};
    Dl_info library{};
    const std::string file =
        ::dladdr(product, &library) != 0 && library.dli_fname != nullptr ? library.dli_fname : "";
    return {"reference BLAS",
            "LibTorch found no optimised BLAS, only " + in_quotes(file) +
                ": forward passes take some forty times longer than need be; install libopenblas0-pthread"};
}

/// The name the driver gives a GPU. LibTorch's own way to it needs CUDA's headers, which nothing else here does.
std::string cuda_device_name(int number)
{
    void* driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (driver == nullptr) return {};
    using GetDevice = int (*)(int*, int);
    using GetName = int (*)(char*, int, int);
    const auto get_device = reinterpret_cast<GetDevice>(::dlsym(driver, "cuDeviceGet"));
    const auto get_name = reinterpret_cast<GetName>(::dlsym(driver, "cuDeviceGetName"));
    std::array<char, 256> name{};
    int device = 0;
    const bool found = get_device != nullptr && get_name != nullptr && get_device(&device, number) == 0 &&
                       get_name(name.data(), static_cast<int>(name.size()) - 1, device) == 0;
    ::dlclose(driver);
    return found ? printable(name.data()) : std::string{};
}

std::vector<std::string> find_devices()
{
    std::vector<std::string> devices{"cpu"};
    if (!at::hasCUDA()) return devices;
    const int count = at::detail::getCUDAHooks().getNumGPUs();
    for (int n = 0; n < count; ++n) {
        const std::string name = cuda_device_name(n);
        devices.push_back("cuda:" + std::to_string(n) + (name.empty() ? "" : " " + name));
    }
    return devices;
}

HostTensor seeded_matrix(std::int64_t rows, std::int64_t cols, std::uint64_t seed)
{
    HostTensor matrix(Shape{rows, cols});
    Random random(seed);
    for (float& value : matrix.values()) value = static_cast<float>(random.normal());
    return matrix;
}

} // namespace

double product_error(std::int64_t rows, std::int64_t inner, std::int64_t cols)
{
    const c10::InferenceMode guard;
    const HostTensor left = seeded_matrix(rows, inner, 1);
    const HostTensor right = seeded_matrix(inner, cols, 2);
    const HostTensor product = to_host(at::matmul(to_device(left, at::kCPU), to_device(right, at::kCPU)));
    double largest = 0.0;
    for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < cols; ++j) {
            double sum = 0.0;
            for (std::int64_t k = 0; k < inner; ++k)
                sum += static_cast<double>(left.data()[i * inner + k]) *
                       static_cast<double>(right.data()[k * cols + j]);
            const double found = static_cast<double>(product.data()[i * cols + j]);
            // A NaN must not slip through the comparison.
            if (!std::isfinite(found)) return std::numeric_limits<double>::infinity();
            largest = std::max(largest, std::fabs(found - sum));
        }
    // Entries are of the size sqrt(inner); right kernels were found within 4e-6 of that.
    constexpr double allowed = 4e-6;
    return largest / (allowed * std::sqrt(static_cast<double>(inner)));
}

TorchEngine::TorchEngine()
{
    const BlasDescription blas = describe_blas();
    m_kernels = blas.text;
    if (blas.warning) m_warnings.push_back(*blas.warning);
    m_devices = find_devices();
    // Odd sizes reach the edges of a kernel's tiles, the larger one its threads.
    constexpr double far_beyond_rounding = 10.0;
    if (std::max(product_error(37, 67, 53), product_error(129, 257, 131)) > far_beyond_rounding)
        m_warnings.push_back("the matrix products of " + m_kernels +
                             " are wrong on this processor: results of forward passes cannot be trusted; set "
                             "OPENBLAS_CORETYPE to an older kind of processor (Haswell, Nehalem)");
}

std::string TorchEngine::version() const
{
    return "LibTorch " TORCH_VERSION;
}

Result<ForwardResult> TorchEngine::attention_maps(const Network& network, const ForwardOptions& options,
                                                  const RunContext& ctx)
{
    return without_exceptions<ForwardResult>("forward pass", [&]() -> Result<ForwardResult> {
        const c10::InferenceMode guard;
        at::Device device(at::kCPU);
        if (options.device == "cuda") {
            if (!has_cuda())
                return Error{ErrorCode::invalid_argument,
                             "there is no CUDA device: " + version() +
                                 " was built without CUDA or finds no GPU; 'cpu' works",
                             "forward pass"};
            device = at::Device(at::kCUDA, 0);
        } else if (options.device != "cpu") {
            return Error{ErrorCode::invalid_argument,
                         "the device " + in_quotes(options.device) +
                             " is not known; 'cpu' or 'cuda' was expected",
                         "forward pass"};
        }
        auto maps = forward_attention_maps(network, options, device, ctx);
        if (maps) maps->warnings = m_warnings;
        return maps;
    });
}

} // namespace posiscope::core

extern "C" {

__attribute__((visibility("default"))) const char* posiscope_engine_interface()
{
    static const std::string& text = *new std::string(posiscope::core::engine_interface());
    return text.c_str();
}

__attribute__((visibility("default"))) posiscope::core::Engine* posiscope_create_engine()
{
    auto engine = posiscope::core::without_exceptions<posiscope::core::Engine*>(
        "starting LibTorch", []() -> posiscope::core::Result<posiscope::core::Engine*> {
            return static_cast<posiscope::core::Engine*>(new posiscope::core::TorchEngine);
        });
    return engine ? *engine : nullptr;
}
}
