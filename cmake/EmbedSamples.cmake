# SPDX-License-Identifier: GPL-3.0-or-later
# posiscope_embed_samples(TARGET NAME...): compiles the files of resources/samples/NAME into TARGET by the
# assembler's .incbin, with a table of them in core/checkpoint/embedded_files.h.
function(posiscope_embed_samples target)
    set(folder ${PROJECT_BINARY_DIR}/generated/core/checkpoint)
    set(assembly "/* made by cmake/EmbedSamples.cmake */\n.section .rodata\n")
    set(declarations "")
    set(rows "")
    set(number 0)
    set(inputs "")
    foreach(sample IN LISTS ARGN)
        file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/resources/samples/${sample}/*)
        list(SORT files)
        foreach(file IN LISTS files)
            get_filename_component(name ${file} NAME)
            set(symbol posiscope_embedded_${number})
            string(APPEND assembly
                ".balign 64\n.global ${symbol}_begin\n${symbol}_begin:\n.incbin \"${file}\"\n"
                ".global ${symbol}_end\n${symbol}_end:\n.byte 0\n")
            string(APPEND declarations "extern \"C\" const std::byte ${symbol}_begin[], ${symbol}_end[];\n")
            string(APPEND rows "        EmbeddedFile{\"${sample}\", \"${name}\", ${symbol}_begin, ${symbol}_end},\n")
            list(APPEND inputs ${file})
            math(EXPR number "${number} + 1")
        endforeach()
    endforeach()
    string(APPEND assembly ".section .note.GNU-stack,\"\",@progbits\n")
    file(CONFIGURE OUTPUT ${folder}/embedded_files.S CONTENT "${assembly}" @ONLY)
    file(CONFIGURE OUTPUT ${folder}/embedded_files.h @ONLY CONTENT
"// SPDX-License-Identifier: GPL-3.0-or-later
// made by cmake/EmbedSamples.cmake
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace posiscope::core {

${declarations}
struct EmbeddedFile {
    std::string_view sample, name;
    const std::byte* begin;
    const std::byte* end;
};

inline std::span<const EmbeddedFile> embedded_files()
{
    static const std::array files{
${rows}    };
    return files;
}

} // namespace posiscope::core
")
    set_source_files_properties(${folder}/embedded_files.S PROPERTIES OBJECT_DEPENDS "${inputs}")
    target_sources(${target} PRIVATE ${folder}/embedded_files.S)
endfunction()
