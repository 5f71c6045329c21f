# SPDX-License-Identifier: GPL-3.0-or-later
# Linked PRIVATE by every target of our own; third-party headers are SYSTEM and stay quiet.
add_library(posiscope_warnings INTERFACE)
target_compile_options(posiscope_warnings INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wold-style-cast -Wnon-virtual-dtor -Woverloaded-virtual)
if(POSISCOPE_WARNINGS_AS_ERRORS)
    target_compile_options(posiscope_warnings INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC bug 105651: a false alarm on "literal" + std::string.
    target_compile_options(posiscope_warnings INTERFACE -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    # Newer GCC takes the inactive member of a std::variant (our Result) for an uninitialised one.
    target_compile_options(posiscope_warnings INTERFACE -Wno-maybe-uninitialized)
endif()
