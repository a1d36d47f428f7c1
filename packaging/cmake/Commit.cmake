# CLEAVE_COMMIT is the commit that is built, for bug reports; "" if it is not known. In a checkout it comes from git,
# and the build is configured again when HEAD changes; it does not show changes that are not committed. In an archive
# made by `git archive` (a download of a release), packaging/commit.txt holds it.
set(CLEAVE_COMMIT "")
if(EXISTS ${PROJECT_SOURCE_DIR}/.git) # in worktrees and submodules a file; without .git, git would search above
    find_package(Git QUIET)
    if(GIT_FOUND)
        execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse HEAD
            --git-path HEAD --git-path logs/HEAD
            WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE answer ERROR_QUIET
            OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
    endif()
    if(GIT_FOUND AND NOT failed)
        string(REPLACE "\n" ";" answer "${answer}")
        list(POP_FRONT answer CLEAVE_COMMIT)
        foreach(path IN LISTS answer) # HEAD changes with the branch, its log with every commit
            get_filename_component(path ${path} ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
            if(EXISTS ${path})
                set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND
                    PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
            endif()
        endforeach()
    endif()
elseif(EXISTS ${PROJECT_SOURCE_DIR}/packaging/commit.txt)
    file(STRINGS ${PROJECT_SOURCE_DIR}/packaging/commit.txt CLEAVE_COMMIT LIMIT_COUNT 1)
endif()
if(NOT CLEAVE_COMMIT MATCHES "^[0-9a-f]+$")
    set(CLEAVE_COMMIT "")
endif()
