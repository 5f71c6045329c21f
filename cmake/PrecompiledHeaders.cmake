# SPDX-License-Identifier: GPL-3.0-or-later
# Headers of libraries are parsed once for a target, or for many targets that compile in the same way. Sources include
# what they need all the same: the tree builds without this.

# posiscope_precompile(target <header>...)
function(posiscope_precompile target)
    if(NOT POSISCOPE_PRECOMPILED_HEADERS)
        return()
    endif()
    target_precompile_headers(${target} PRIVATE ${ARGN})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        target_compile_options(${target} PRIVATE -fpch-preprocess) # for ccache
    endif()
endfunction()

# posiscope_reuse_precompiled(target from): as compiled for another target with the same options and definitions.
function(posiscope_reuse_precompiled target from)
    if(NOT POSISCOPE_PRECOMPILED_HEADERS)
        return()
    endif()
    target_precompile_headers(${target} REUSE_FROM ${from})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        target_compile_options(${target} PRIVATE -fpch-preprocess)
    endif()
endfunction()
