# Debian packages by CPack: libcleave0.2, libcleave-dev, cleave and python3-cleave, and, if Open MPI and MPICH are
# installed, cleave-openmpi and cleave-mpich. packaging/deb.sh uses this file with CLEAVE_DEB=ON. The name of the
# library's package contains the version of the interface, so that two interfaces can be installed at the same time.
set(lib libcleave${CLEAVE_INTERFACE})
set(deb_version ${PROJECT_VERSION}-1)
# A placeholder: the project has no e-mail address yet, and example.org is a domain reserved for examples.
set(CLEAVE_DEB_MAINTAINER "Cleave maintainers <cleave@example.org>" CACHE STRING
    "Maintainer field of the Debian packages")
string(TIMESTAMP deb_date "%a, %d %b %Y %H:%M:%S +0000" UTC) # the time in SOURCE_DATE_EPOCH, if it is set
set(written ${PROJECT_BINARY_DIR}/debian)

# Every package has the copyright file and the changelogs.
configure_file(packaging/debian/copyright.in ${written}/copyright @ONLY)
configure_file(packaging/debian/changelog.in ${written}/changelog.Debian @ONLY)
get_property(mpis GLOBAL PROPERTY CLEAVE_MPI)
set(pairs "runtime ${lib}" "development libcleave-dev" "tools cleave" "python python3-cleave")
foreach(mpi IN LISTS mpis)
    list(APPEND pairs "${mpi} cleave-${mpi}")
endforeach()
foreach(pair IN LISTS pairs)
    separate_arguments(pair)
    list(GET pair 0 component)
    list(GET pair 1 package)
    install(FILES ${written}/copyright ${written}/changelog.Debian DESTINATION share/doc/${package}
        COMPONENT ${component})
    install(FILES CHANGELOG.md DESTINATION share/doc/${package} RENAME changelog COMPONENT ${component})
endforeach()
install(DIRECTORY examples/ DESTINATION share/doc/libcleave-dev/examples COMPONENT development
    FILES_MATCHING PATTERN "*.c" PATTERN "*.cl" PATTERN "python" EXCLUDE)

# The Python package, with the metadata by which pip recognises it.
set(python_dir lib/python3/dist-packages)
install(DIRECTORY python/cleave DESTINATION ${python_dir} COMPONENT python
    PATTERN "__pycache__" EXCLUDE PATTERN "bundle" EXCLUDE)
configure_file(packaging/debian/METADATA.in ${written}/METADATA @ONLY)
install(FILES ${written}/METADATA DESTINATION ${python_dir}/cleave-${PROJECT_VERSION}.dist-info COMPONENT python)

# All symbols have existed since the interface began, so a program that was built with it runs with this release or a
# later one.
file(STRINGS packaging/symbols.txt names)
set(symbols "libcleave.so.${CLEAVE_INTERFACE} ${lib} #MINVER#\n")
string(APPEND symbols " CLEAVE_${CLEAVE_INTERFACE}@CLEAVE_${CLEAVE_INTERFACE} ${PROJECT_VERSION}\n")
foreach(name IN LISTS names)
    string(APPEND symbols " ${name}@CLEAVE_${CLEAVE_INTERFACE} ${PROJECT_VERSION}\n")
endforeach()
file(WRITE ${written}/symbols "${symbols}")
file(WRITE ${written}/shlibs "libcleave ${CLEAVE_INTERFACE} ${lib} (>= ${PROJECT_VERSION})\n")
file(WRITE ${written}/triggers "activate-noawait ldconfig\n")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME cleave)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_VENDOR Cleave)
set(CPACK_PACKAGE_CONTACT "${CLEAVE_DEB_MAINTAINER}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
    GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL runtime development tools python ${mpis})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/packaging/cmake/DebianFiles.cmake)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS OFF)

set(what "Cleave finds exoplanets in telescope images, tracks spots in microscope
movies, fits stellar spectra, turns texts into vectors, runs language models,
and computes with arrays, on the OpenCL devices of a machine: processors and
graphics cards. It measures the devices and splits each job across those that
make it faster.")
macro(deb_package component name section summary about)
    string(TOUPPER ${component} upper)
    set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
    set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
    set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${what}\n\n${about}")
endmacro()

deb_package(runtime ${lib} libs "OpenCL runtime with a load balancer and scientific workloads"
    "This package has the shared library.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_PROVIDES "libcleave0 (= ${deb_version})")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "pocl-opencl-icd | opencl-icd, libclblast1, liblapack3")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA "${written}/symbols;${written}/shlibs;${written}/triggers")

deb_package(development libcleave-dev libdevel "development files of the OpenCL runtime Cleave"
    "This package has the headers, and what CMake and pkg-config need.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${lib} (= ${deb_version})")

deb_package(tools cleave science "scientific computations on every OpenCL device of a machine"
    "This package has the command.")
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "pocl-opencl-icd | opencl-icd, libclblast1, liblapack3")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "python3-cleave, libcleave-dev, cleave-openmpi, cleave-mpich")

foreach(mpi IN LISTS mpis)
    deb_package(${mpi} cleave-${mpi} science "plugin with which Cleave runs under the mpirun of ${mpi}"
        "This package has the plugin of the command for ${mpi}.")
    string(TOUPPER ${mpi} upper)
    set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "cleave (= ${deb_version})")
endforeach()

deb_package(python python3-cleave python "Python interface of the OpenCL runtime Cleave"
    "This package has the Python module cleave: NumPy arrays go in and come out.")
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= 3.9), python3-numpy, ${lib} (>= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA # compile the Python files, and remove what was compiled
    "${PROJECT_SOURCE_DIR}/packaging/debian/postinst;${PROJECT_SOURCE_DIR}/packaging/debian/prerm")
set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS "cleave")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "python3-pandas, python3-tqdm")
include(CPack)
