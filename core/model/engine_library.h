// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/version.h"
#include "core/model/engine.h"

namespace posiscope::core {

/// File name of the engine library.
inline constexpr std::string_view engine_library_name = "libposiscope_engine.so";

/// What program and engine library must agree on: C++ objects cross between them, so both must be of one build.
/// The number grows with every change of engine.h; the sizes catch a library of another build of the same version.
inline std::string engine_interface()
{
    return std::string(version) + " interface 2." + std::to_string(sizeof(Network)) + "." +
           std::to_string(sizeof(NetworkLayer)) + "." + std::to_string(sizeof(ForwardOptions));
}

/// The two entry points of the engine library, both extern "C".
using EngineInterfaceFunction = const char* (*)(); ///< posiscope_engine_interface: its engine_interface()
using EngineCreateFunction = Engine* (*)(); ///< posiscope_create_engine: an engine that is never destroyed
inline constexpr const char* engine_interface_symbol = "posiscope_engine_interface";
inline constexpr const char* engine_create_symbol = "posiscope_create_engine";

/// Where the engine library is looked for, in this order: beside the executable, in ../lib (an installed program
/// outside a package, the build tree) and in ../lib/posiscope.
std::vector<std::filesystem::path> engine_library_folders();

/// Opens the first engine library in `folders` and makes its engine, which lives as long as the program.
/// @error not_found: no such file, or one that does not load or belongs to another build, with the reason
Result<Engine*> open_engine_library(const std::vector<std::filesystem::path>& folders);

/// Whether a BLAS with these kernels ("Prescott", "Haswell") uses AVX2. OpenBLAS falls back to kernels of very old
/// processors where it does not know the one it runs on.
bool kernels_use_avx2(std::string_view openblas_core);
/// The same for AVX-512.
bool kernels_use_avx512(std::string_view openblas_core);

} // namespace posiscope::core
