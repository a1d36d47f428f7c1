# Says where `cmake --install` puts the library, public headers, command, documents, and the files by which CMake and
# pkg-config find the library.
#
# Components for packagers: runtime (the library), development, tools (the command).
include(CMakePackageConfigHelpers)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Cleave)
install(TARGETS cleave EXPORT CleaveTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(DIRECTORY include/cleave DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    COMPONENT development FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_BINARY_DIR}/include/cleave/version.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/cleave COMPONENT development)

# CMake: find_package(Cleave).
install(EXPORT CleaveTargets NAMESPACE Cleave:: DESTINATION ${config_dir} COMPONENT development)
configure_package_config_file(packaging/CleaveConfig.cmake.in ${PROJECT_BINARY_DIR}/CleaveConfig.cmake
    INSTALL_DESTINATION ${config_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/CleaveConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/CleaveConfig.cmake ${PROJECT_BINARY_DIR}/CleaveConfigVersion.cmake
    DESTINATION ${config_dir} COMPONENT development)

# pkg-config: paths relative to the file, so that an installed tree can be moved.
set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
foreach(name IN ITEMS LIBDIR INCLUDEDIR)
    if(IS_ABSOLUTE ${CMAKE_INSTALL_${name}})
        set(PC_${name} ${CMAKE_INSTALL_${name}})
    else()
        set(PC_${name} "\${prefix}/${CMAKE_INSTALL_${name}}")
    endif()
endforeach()
if(IS_ABSOLUTE ${pc_dir})
    set(PC_PREFIX ${CMAKE_INSTALL_PREFIX})
else()
    file(RELATIVE_PATH up /${pc_dir} /)
    string(REGEX REPLACE "/$" "" up "${up}")
    set(PC_PREFIX "\${pcfiledir}/${up}")
endif()
set(PC_REQUIRES "")
set(PC_LIBS "")
if(NOT BUILD_SHARED_LIBS) # a program that links the static library must also link its dependencies
    list(JOIN CLEAVE_REQUIRES " " requires)
    set(PC_REQUIRES "Requires: ${requires}\n")
    set(PC_LIBS " -pthread -lm")
endif()
configure_file(packaging/cleave.pc.in ${PROJECT_BINARY_DIR}/cleave.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/cleave.pc DESTINATION ${pc_dir} COMPONENT development)

if(NOT CLEAVE_DEB) # Debian's own copyright file contains the licence
    install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
endif()
if(CLEAVE_COMMAND)
    install(TARGETS cleave_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
endif()
if(CLEAVE_DOCUMENTS)
    install(DIRECTORY ${CLEAVE_DOCUMENTS}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT tools)
    install(FILES ${CLEAVE_DOCUMENTS}/cleave.bash COMPONENT tools RENAME cleave
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${CLEAVE_DOCUMENTS}/_cleave COMPONENT tools
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endif()
