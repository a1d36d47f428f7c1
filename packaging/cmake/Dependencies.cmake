# Finds what the library stands on; sets CLEAVE_LIBRARIES, CLEAVE_HAVE_* and CLEAVE_SUMMARY.
# A missing optional library means a smaller feature set, which the summary and the probe state.
set(CLEAVE_LIBRARIES "")
set(CLEAVE_SUMMARY "")

find_package(OpenCLICDLoader CONFIG QUIET) # the Khronos loader
if(NOT OpenCLICDLoader_FOUND)
    find_package(OpenCL REQUIRED) # any other
endif()
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)
list(APPEND CLEAVE_LIBRARIES OpenCL::OpenCL Threads::Threads PkgConfig::JANSSON PkgConfig::SODIUM
    m ${CMAKE_DL_LIBS})

function(cleave_optional name what found)
    if(found)
        set(CLEAVE_HAVE_${name} ON PARENT_SCOPE)
        set(CLEAVE_SUMMARY "${CLEAVE_SUMMARY} ${what}" PARENT_SCOPE)
    else()
        set(CLEAVE_HAVE_${name} OFF PARENT_SCOPE)
        set(CLEAVE_SUMMARY "${CLEAVE_SUMMARY} (no ${what})" PARENT_SCOPE)
    endif()
endfunction()

if(CLEAVE_WITH_HWLOC)
    pkg_check_modules(HWLOC QUIET IMPORTED_TARGET hwloc)
endif()
cleave_optional(HWLOC "hwloc" "${HWLOC_FOUND}")
pkg_check_modules(CFITSIO QUIET IMPORTED_TARGET cfitsio)
cleave_optional(CFITSIO "FITS" "${CFITSIO_FOUND}")
pkg_check_modules(PNG QUIET IMPORTED_TARGET libpng)
cleave_optional(PNG "PNG" "${PNG_FOUND}")
