# cleave_embed_kernels(TARGET FILE...): makes one symbol of TARGET from every FILE of the calling folder cl/.
#
#   cl/patch/centre.cl  ->  const clv_cl_source clv_cl_patch_centre   (runtime/program/source.h)
#
# A kernel that is missing is a link error. Headers (.clh) are listed in clv_cl_headers[], where
# runtime/program/source.c looks for what a kernel includes.
function(cleave_embed_kernels target)
    set(out ${CMAKE_CURRENT_BINARY_DIR}/cl_embedded)
    set(declarations "")
    set(headers "")
    set(sources ${out}/cl_headers.c)
    set(embed_one ${PROJECT_SOURCE_DIR}/packaging/cmake/EmbedOne.cmake)
    foreach(file IN LISTS ARGN)
        string(REGEX REPLACE "\\.clh?$" "" stem ${file})
        string(MAKE_C_IDENTIFIER "clv_cl_${stem}" symbol)
        set(generated ${out}/${symbol}.c)
        add_custom_command(
            OUTPUT ${generated}
            COMMAND ${CMAKE_COMMAND} -DINPUT=${CMAKE_CURRENT_SOURCE_DIR}/${file} -DNAME=cl/${file}
                -DSYMBOL=${symbol} -DOUTPUT=${generated}
                -P ${embed_one}
            DEPENDS ${file} ${embed_one} COMMENT "Embedding cl/${file}" VERBATIM)
        list(APPEND sources ${generated})
        string(APPEND declarations "extern const clv_cl_source ${symbol};\n")
        if(file MATCHES "\\.clh$")
            string(APPEND headers "    &${symbol},\n")
        endif()
    endforeach()
    file(CONFIGURE OUTPUT ${out}/cl_embedded.h CONTENT
"/* Made by EmbedKernels.cmake: every kernel source in the library. */
#ifndef CLEAVE_CL_EMBEDDED_H
#define CLEAVE_CL_EMBEDDED_H
#include <cleave/runtime.h>
@declarations@extern const clv_cl_source *const clv_cl_headers[]; /* ends with NULL */
#endif
" @ONLY)
    file(CONFIGURE OUTPUT ${out}/cl_headers.c CONTENT
"#include \"cl_embedded.h\"
const clv_cl_source *const clv_cl_headers[] = {
@headers@    0,
};
" @ONLY)
    # a separate library, because targets of other folders cannot use sources that are generated in this folder
    add_library(${target}_kernels OBJECT ${sources})
    target_include_directories(${target}_kernels PUBLIC ${out}
        ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
    set_target_properties(${target}_kernels PROPERTIES
        POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
    target_include_directories(${target} PUBLIC ${out})
endfunction()
