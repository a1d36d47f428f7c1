# Finds the dependencies of the library and the command. Sets CLEAVE_LIBRARIES (what libcleave links),
# CLEAVE_FINDS and CLEAVE_REQUIRES (how programs that link it statically find the same) and
# CLEAVE_HAVE_*. A missing optional library means a smaller feature set, which the summary and the
# probe state. Nothing is downloaded.
set(CLEAVE_LIBRARIES "")
set(CLEAVE_FINDS "")
set(CLEAVE_REQUIRES "")
set(CLEAVE_WITH "")
set(CLEAVE_WITHOUT "")

# cleave_uses(TARGET MODULE FIND): libcleave links TARGET, which pkg-config knows as MODULE, and
# which the CMake command FIND brings to a static consumer.
macro(cleave_uses target module find)
    list(APPEND CLEAVE_LIBRARIES ${target})
    list(APPEND CLEAVE_REQUIRES ${module})
    string(APPEND CLEAVE_FINDS "${find}\n")
endmacro()

# cleave_uses_module(NAME MODULE): the same for a library that only pkg-config finds.
macro(cleave_uses_module name module)
    cleave_uses(PkgConfig::${name} ${module}
        "pkg_check_modules(${name} REQUIRED QUIET IMPORTED_TARGET ${module})")
endmacro()

# cleave_optional(NAME WHAT FOUND PACKAGE): CLEAVE_HAVE_NAME, and a word in the summary.
function(cleave_optional name what found)
    if(found)
        set(CLEAVE_HAVE_${name} ON PARENT_SCOPE)
        set(CLEAVE_WITH ${CLEAVE_WITH} "${what}" PARENT_SCOPE)
    else()
        set(CLEAVE_HAVE_${name} OFF PARENT_SCOPE)
        if(ARGN)
            string(APPEND what " (Debian: ${ARGN})")
        endif()
        set(CLEAVE_WITHOUT ${CLEAVE_WITHOUT} "${what}" PARENT_SCOPE)
    endif()
endfunction()

# A project that adds this one links the static library from its own folder, so the static library's dependencies must
# be visible there, too.
function(cleave_show_everywhere target)
    get_target_property(global ${target} IMPORTED_GLOBAL)
    if(NOT global AND NOT PROJECT_IS_TOP_LEVEL)
        set_target_properties(${target} PROPERTIES IMPORTED_GLOBAL TRUE)
    endif()
endfunction()

if(TARGET OpenCL::OpenCL) # the parent project has its own
    set(CLEAVE_LOADER "of the parent project")
else()
    find_package(OpenCLICDLoader CONFIG QUIET) # the Khronos loader
    if(NOT OpenCLICDLoader_FOUND)
        find_package(OpenCL REQUIRED) # any other
    endif()
    cleave_show_everywhere(OpenCL::OpenCL)
    get_target_property(CLEAVE_LOADER OpenCL::OpenCL LOCATION)
endif()
cleave_uses(OpenCL::OpenCL OpenCL "\
find_package(OpenCLICDLoader CONFIG QUIET)
if(NOT OpenCLICDLoader_FOUND)
    find_dependency(OpenCL)
endif()")
if(NOT TARGET Threads::Threads)
    set(THREADS_PREFER_PTHREAD_FLAG ON)
    find_package(Threads REQUIRED)
    cleave_show_everywhere(Threads::Threads)
endif()
find_package(PkgConfig REQUIRED)
pkg_check_modules(JANSSON REQUIRED QUIET IMPORTED_TARGET GLOBAL jansson)
cleave_uses_module(JANSSON jansson)
pkg_check_modules(SODIUM REQUIRED QUIET IMPORTED_TARGET GLOBAL libsodium)
cleave_uses_module(SODIUM libsodium)
pkg_check_modules(UTF8PROC REQUIRED QUIET IMPORTED_TARGET GLOBAL libutf8proc)
cleave_uses_module(UTF8PROC libutf8proc)
list(APPEND CLEAVE_LIBRARIES Threads::Threads m ${CMAKE_DL_LIBS})

if(CLEAVE_WITH_HWLOC)
    pkg_check_modules(HWLOC QUIET IMPORTED_TARGET GLOBAL hwloc)
else()
    set(HWLOC_FOUND OFF) # even if an earlier configuration has found it
endif()
cleave_optional(HWLOC "hwloc" "${HWLOC_FOUND}" libhwloc-dev)
if(CLEAVE_HAVE_HWLOC)
    cleave_uses_module(HWLOC hwloc)
endif()

# Fourier transforms: the drift of a microscope's stage.
if(CLEAVE_WITH_KISSFFT)
    pkg_check_modules(KISSFFT QUIET IMPORTED_TARGET GLOBAL kissfft-float)
else()
    set(KISSFFT_FOUND OFF)
endif()
cleave_optional(KISSFFT "KISS FFT" "${KISSFFT_FOUND}" libkissfft-dev)
if(CLEAVE_HAVE_KISSFFT)
    cleave_uses_module(KISSFFT kissfft-float)
endif()

# Matrix products on GPUs: the build needs only the header; the library is loaded when a GPU needs it.
set(CLEAVE_CLBLAST_HEADER NOTFOUND)
if(CLEAVE_WITH_CLBLAST)
    find_path(CLEAVE_CLBLAST_INCLUDE clblast_c.h)
    mark_as_advanced(CLEAVE_CLBLAST_INCLUDE)
    set(CLEAVE_CLBLAST_HEADER ${CLEAVE_CLBLAST_INCLUDE})
endif()
cleave_optional(CLBLAST "CLBlast" "${CLEAVE_CLBLAST_HEADER}" libclblast-dev)

# Eigenvalues of general matrices: the library is loaded at the first call that needs it.
find_library(CLEAVE_LAPACK_LIBRARY NAMES lapack openblas)
mark_as_advanced(CLEAVE_LAPACK_LIBRARY)
cleave_optional(LAPACK "LAPACK" "${CLEAVE_LAPACK_LIBRARY}" libopenblas-dev)

# File formats, for the command and the tests, not for libcleave.
pkg_check_modules(CFITSIO QUIET IMPORTED_TARGET cfitsio)
pkg_check_modules(ZLIB QUIET IMPORTED_TARGET zlib)
if(CFITSIO_FOUND AND ZLIB_FOUND)
    set(CLEAVE_FITS_FOUND ON)
else()
    set(CLEAVE_FITS_FOUND OFF)
endif()
cleave_optional(CFITSIO "FITS" "${CLEAVE_FITS_FOUND}" "libcfitsio-dev zlib1g-dev")
pkg_check_modules(PNG QUIET IMPORTED_TARGET libpng)
cleave_optional(PNG "PNG" "${PNG_FOUND}" libpng-dev)
pkg_check_modules(TIFF QUIET IMPORTED_TARGET libtiff-4)
cleave_optional(TIFF "TIFF" "${TIFF_FOUND}" libtiff-dev)
pkg_check_modules(ZSTD QUIET IMPORTED_TARGET libzstd)
cleave_optional(ZSTD "Zarr's zstd" "${ZSTD_FOUND}" libzstd-dev)
find_path(CLEAVE_BLOSC_INCLUDE blosc.h)
find_library(CLEAVE_BLOSC_LIBRARY blosc)
mark_as_advanced(CLEAVE_BLOSC_INCLUDE CLEAVE_BLOSC_LIBRARY)
if(CLEAVE_BLOSC_INCLUDE AND CLEAVE_BLOSC_LIBRARY)
    set(CLEAVE_BLOSC_FOUND ON)
else()
    set(CLEAVE_BLOSC_FOUND OFF)
endif()
cleave_optional(BLOSC "Zarr's blosc" "${CLEAVE_BLOSC_FOUND}" libblosc-dev)
