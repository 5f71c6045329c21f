// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/engine.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include <dlfcn.h>

#include "core/base/text.h"
#include "core/model/engine_library.h"

namespace posiscope::core {
namespace {

struct LoaderState {
    std::mutex mutex;
    std::shared_ptr<Engine> installed;
    Engine* from_library = nullptr;
};

LoaderState& loader_state()
{
    // Never destroyed: a worker may still hold the engine while the program ends.
    static LoaderState& state = *new LoaderState;
    return state;
}

bool processor_has_avx2()
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
#else
    return false;
#endif
}

/// Whether `name` is among `names`, whatever the case of its letters.
bool is_one_of(std::string_view name, std::span<const std::string_view> names)
{
    const auto same_letter = [](char a, char b) {
        return (static_cast<unsigned char>(a) | 0x20u) == (static_cast<unsigned char>(b) | 0x20u);
    };
    return std::any_of(names.begin(), names.end(), [&](std::string_view one) {
        return std::equal(name.begin(), name.end(), one.begin(), one.end(), same_letter);
    });
}

/// The widest kernels of old OpenBLAS releases that the processor can run.
const char* widest_kernels()
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
        __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
        __builtin_cpu_supports("avx512cd") != 0)
        return "SkylakeX";
#endif
    return "Haswell";
}

/// OpenBLAS reads OPENBLAS_CORETYPE once, as it is loaded. An OpenBLAS older than the processor falls back to kernels
/// without AVX2, at a quarter of the speed (0.3.21 on newer Intel processors); one that knows the processor is left
/// alone. Which of the two it is, is asked of the library itself: it is loaded, read and unloaded, which costs
/// milliseconds beside the time that LibTorch takes.
void choose_blas_kernels()
{
    constexpr const char* variable = "OPENBLAS_CORETYPE";
    if (!processor_has_avx2() || std::getenv(variable) != nullptr) return;
    for (const char* name : {"libblas.so.3", "libopenblas.so.0"}) {
        void* blas = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL);
        if (blas == nullptr) continue;
        bool falls_back = false;
        using CoreName = const char* (*)();
        if (const auto core_name = reinterpret_cast<CoreName>(::dlsym(blas, "openblas_get_corename"))) {
            const char* core = core_name();
            falls_back = core != nullptr && !kernels_use_avx2(core);
        }
        ::dlclose(blas);
        if (falls_back) ::setenv(variable, widest_kernels(), 0);
        return;
    }
}

std::string loader_reason()
{
    const char* reason = ::dlerror();
    return reason != nullptr ? printable(reason, 300) : "no reason given";
}

Error not_loaded(const std::filesystem::path& file, const std::string& what)
{
    return Error{ErrorCode::not_found, "the engine library " + in_quotes(file.string()) + " " + what,
                 "loading LibTorch"};
}

} // namespace

std::vector<std::filesystem::path> engine_library_folders()
{
    std::error_code failed;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
    if (failed) return {};
    const std::filesystem::path beside = program.parent_path();
    const std::filesystem::path above = beside.parent_path();
    return {beside, above / "lib", above / "lib" / "posiscope"};
}

bool kernels_use_avx2(std::string_view openblas_core)
{
    constexpr std::array<std::string_view, 3> others{"Haswell", "Zen", "Excavator"};
    return is_one_of(openblas_core, others) || kernels_use_avx512(openblas_core);
}

bool kernels_use_avx512(std::string_view openblas_core)
{
    constexpr std::array<std::string_view, 3> with_avx512{"SkylakeX", "Cooperlake", "Sapphirerapids"};
    return is_one_of(openblas_core, with_avx512);
}

Result<Engine*> open_engine_library(const std::vector<std::filesystem::path>& folders)
{
    std::vector<std::string> looked_in;
    for (const std::filesystem::path& folder : folders) {
        const std::filesystem::path file = folder / engine_library_name;
        looked_in.push_back(in_quotes(folder.string()));
        std::error_code failed;
        if (!std::filesystem::exists(file, failed)) continue;

        choose_blas_kernels();
        void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) return not_loaded(file, "does not load: " + loader_reason());
        const auto interface =
            reinterpret_cast<EngineInterfaceFunction>(::dlsym(library, engine_interface_symbol));
        const auto create = reinterpret_cast<EngineCreateFunction>(::dlsym(library, engine_create_symbol));
        if (interface == nullptr || create == nullptr)
            return not_loaded(file, "is no engine of this program: it lacks its entry points");
        if (interface() != engine_interface())
            return not_loaded(file, "belongs to another build: it says " + in_quotes(interface()) + ", " +
                                        in_quotes(engine_interface()) + " was expected");
        Engine* engine = create();
        if (engine == nullptr) return not_loaded(file, "could not start LibTorch");
        return engine;
    }
    return Error{
        ErrorCode::not_found,
        std::string(engine_library_name) + " was not found in " + join_for_message(looked_in) +
            "; forward passes (deeper layers, CUDA) need it: this program was built without LibTorch, or "
            "the library was moved",
        "loading LibTorch"};
}

Result<Engine*> load_engine()
{
    LoaderState& state = loader_state();
    const std::scoped_lock lock(state.mutex);
    if (state.installed) return state.installed.get();
    if (state.from_library == nullptr) {
        auto opened = open_engine_library(engine_library_folders());
        if (!opened) return opened.error();
        state.from_library = *opened;
    }
    return state.from_library;
}

void install_engine(std::shared_ptr<Engine> engine)
{
    LoaderState& state = loader_state();
    const std::scoped_lock lock(state.mutex);
    state.installed = std::move(engine);
}

} // namespace posiscope::core
