# `cleave specfit` from files to files: the reference's stars on every platform, options, odd input.
if(NOT Python3_Interpreter_FOUND)
    return()
endif()

function(cleave_specfit_test name script)
    add_test(NAME cli/specfit_${name} COMMAND Python3::Interpreter
        ${CMAKE_CURRENT_SOURCE_DIR}/${script} $<TARGET_FILE:cleave_command> ${ARGN})
    set_tests_properties(cli/specfit_${name} PROPERTIES LABELS cli SKIP_RETURN_CODE 77 TIMEOUT 900
        ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1;${CLEAVE_TEST_CACHES}")
endfunction()

if(CLEAVE_HAVE_CFITSIO)
    foreach(platform pocl intel mesa reference)
        cleave_specfit_test(goldens_${platform} specfit_goldens.py ${platform})
    endforeach()
    foreach(what options tables damage resume)
        cleave_specfit_test(${what} specfit_${what}.py)
    endforeach()
    cleave_specfit_test(library specfit_library.py
        ${PROJECT_SOURCE_DIR}/packaging/rvspecfit_library.py ${PROJECT_SOURCE_DIR}/bench/peers)
endif()
