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

foreach(platform pocl intel mesa reference)
    foreach(conv paper vip)
        set(cases syn50)
        if(conv STREQUAL paper) # vip-hci refuses what is not finite
            list(APPEND cases syn45x56_bad)
        endif()
        cleave_paco_test(goldens_${platform}_${conv} paco_goldens.py ${platform} ${conv} ${cases})
        cleave_paco_test(large_${platform}_${conv} paco_goldens.py ${platform} ${conv} syn64_shortT syn40_longT)
        cleave_paco_test(third_party_${platform}_${conv} paco_goldens.py ${platform} ${conv} betapic60)
    endforeach()
endforeach()
foreach(platform pocl intel mesa)
    cleave_paco_test(bits_${platform} paco_bits.py ${platform})
endforeach()
cleave_paco_test(inputs paco_inputs.py)
