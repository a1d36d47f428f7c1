# `cleave paco` from files to files: golden maps, the same bits however the work is split, inputs.
if(NOT Python3_Interpreter_FOUND)
    return()
endif()

function(cleave_paco_test name script)
    add_test(NAME cli/paco_${name} COMMAND Python3::Interpreter
        ${CMAKE_CURRENT_SOURCE_DIR}/${script} $<TARGET_FILE:cleave_command> ${ARGN})
    set_tests_properties(cli/paco_${name} PROPERTIES LABELS cli SKIP_RETURN_CODE 77 TIMEOUT 900
        ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1;${CLEAVE_TEST_CACHES}")
endfunction()

set(goldens ${PROJECT_SOURCE_DIR}/tests/data/paco)
foreach(platform pocl intel mesa reference)
    foreach(conv paper vip)
        cleave_paco_test(goldens_${platform}_${conv} paco_goldens.py ${goldens} ${platform} ${conv})
        # the larger cases, where the references are
        cleave_paco_test(references_${platform}_${conv} paco_goldens.py ${goldens} ${platform} ${conv}
            syn64_shortT syn40_longT betapic60)
    endforeach()
endforeach()
foreach(platform pocl intel mesa)
    cleave_paco_test(bits_${platform} paco_bits.py ${platform})
endforeach()
cleave_paco_test(inputs paco_inputs.py ${goldens})
