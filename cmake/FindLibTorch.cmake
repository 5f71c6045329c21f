# SPDX-License-Identifier: GPL-3.0-or-later
# Finds the LibTorch that the engine is built with: the one in CMAKE_PREFIX_PATH or Torch_DIR where there is one, else
# the distribution's. Sets LibTorch_FOUND, LibTorch_VERSION, LibTorch_LIBRARY_DIR and the target LibTorch::LibTorch.
#
# Torch's own TorchConfig.cmake is only located, not run. It searches for libc10.so along the default paths, so that a
# libtorch-dev of the distribution is mixed into another LibTorch (the program then aborts with a DispatchKeySet
# assertion), and with a CUDA build it demands the CUDA toolkit, which the engine's headers do not need. Here every
# library comes from the folder of the chosen Torch.
set(_torch_hints ${Torch_DIR} ${CMAKE_PREFIX_PATH})
if(DEFINED ENV{CMAKE_PREFIX_PATH})
    string(REPLACE ":" ";" _torch_environment "$ENV{CMAKE_PREFIX_PATH}")
    list(APPEND _torch_hints ${_torch_environment})
endif()
set(_torch_suffixes Torch share/cmake/Torch lib/cmake/Torch lib64/cmake/Torch)
if(CMAKE_LIBRARY_ARCHITECTURE)
    list(APPEND _torch_suffixes lib/${CMAKE_LIBRARY_ARCHITECTURE}/cmake/Torch)
endif()

# Found afresh at each configure: a changed CMAKE_PREFIX_PATH must not meet the last one's libraries.
unset(LibTorch_CONFIG_DIR CACHE)
find_path(LibTorch_CONFIG_DIR TorchConfig.cmake
    HINTS ${_torch_hints} PATHS /usr/local /usr PATH_SUFFIXES ${_torch_suffixes} NO_DEFAULT_PATH)
mark_as_advanced(LibTorch_CONFIG_DIR)

set(LibTorch_VERSION "")
if(LibTorch_CONFIG_DIR)
    # PREFIX/share/cmake/Torch, PREFIX/lib/cmake/Torch or PREFIX/lib/ARCHITECTURE/cmake/Torch
    get_filename_component(_torch_prefix ${LibTorch_CONFIG_DIR}/../../.. ABSOLUTE)
    if(NOT EXISTS ${_torch_prefix}/include/ATen)
        get_filename_component(_torch_prefix ${_torch_prefix}/.. ABSOLUTE)
    endif()
    set(_torch_library_dirs ${_torch_prefix}/lib ${_torch_prefix}/lib64)
    if(CMAKE_LIBRARY_ARCHITECTURE)
        list(APPEND _torch_library_dirs ${_torch_prefix}/lib/${CMAKE_LIBRARY_ARCHITECTURE})
    endif()

    foreach(_name torch torch_cpu c10 torch_cuda c10_cuda)
        unset(LibTorch_${_name}_LIBRARY CACHE)
        find_library(LibTorch_${_name}_LIBRARY ${_name} PATHS ${_torch_library_dirs} NO_DEFAULT_PATH)
        mark_as_advanced(LibTorch_${_name}_LIBRARY)
    endforeach()
    find_path(LibTorch_INCLUDE_DIR ATen/core/Tensor.h PATHS ${_torch_prefix}/include NO_CACHE NO_DEFAULT_PATH)

    foreach(_header torch/csrc/api/include/torch/version.h torch/version.h torch/headeronly/version.h)
        if(NOT LibTorch_VERSION AND EXISTS ${_torch_prefix}/include/${_header})
            foreach(_part MAJOR MINOR PATCH)
                file(STRINGS ${_torch_prefix}/include/${_header} _line REGEX "define TORCH_VERSION_${_part} [0-9]+")
                string(REGEX REPLACE ".*TORCH_VERSION_${_part} ([0-9]+).*" "\\1" _number "${_line}")
                list(APPEND _torch_version ${_number})
            endforeach()
            string(REPLACE ";" "." LibTorch_VERSION "${_torch_version}")
            unset(_torch_version)
        endif()
    endforeach()

    # std::string and std::vector cross the boundary between core and the engine: both sides need one ABI.
    file(STRINGS ${LibTorch_CONFIG_DIR}/TorchConfig.cmake _torch_old_abi REGEX "_GLIBCXX_USE_CXX11_ABI=0")
    if(_torch_old_abi)
        message(FATAL_ERROR
            "The LibTorch ${LibTorch_VERSION} in ${_torch_prefix} was built with the C++ library's old ABI "
            "(_GLIBCXX_USE_CXX11_ABI=0), which cannot be joined with this program. Take a LibTorch built with the "
            "C++11 ABI (the download marked 'cxx11 ABI', any release from 2.7 on, or the distribution's), or "
            "configure with -DPOSISCOPE_BUILD_ENGINE=OFF.")
    endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
    REQUIRED_VARS LibTorch_torch_LIBRARY LibTorch_torch_cpu_LIBRARY LibTorch_c10_LIBRARY LibTorch_INCLUDE_DIR
    VERSION_VAR LibTorch_VERSION)

if(LibTorch_FOUND AND NOT TARGET LibTorch::LibTorch)
    get_filename_component(LibTorch_LIBRARY_DIR ${LibTorch_torch_LIBRARY} DIRECTORY)
    set(_torch_libraries ${LibTorch_torch_LIBRARY} ${LibTorch_torch_cpu_LIBRARY} ${LibTorch_c10_LIBRARY})
    foreach(_name torch_cuda c10_cuda)
        if(LibTorch_${_name}_LIBRARY)
            list(APPEND _torch_libraries ${LibTorch_${_name}_LIBRARY})
        endif()
    endforeach()
    add_library(LibTorch::LibTorch INTERFACE IMPORTED)
    # Kernels register themselves as their library is loaded: none may be dropped for lack of a symbol that is used.
    set_target_properties(LibTorch::LibTorch PROPERTIES
        INTERFACE_INCLUDE_DIRECTORIES "${LibTorch_INCLUDE_DIR};${LibTorch_INCLUDE_DIR}/torch/csrc/api/include"
        INTERFACE_LINK_LIBRARIES "-Wl,--push-state,--no-as-needed;${_torch_libraries};-Wl,--pop-state")
endif()
