# CPack runs this script on the files of the packages before it packs them. Debian requires manual pages and changelogs
# to be compressed by gzip, without file names and times.
file(GLOB_RECURSE paths LIST_DIRECTORIES false "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*")
foreach(path IN LISTS paths)
    if(path MATCHES "/share/man/.*[.]1$" OR path MATCHES "/share/doc/[^/]*/changelog([.]Debian)?$")
        execute_process(COMMAND gzip -9nf "${path}" COMMAND_ERROR_IS_FATAL ANY)
    endif()
endforeach()
