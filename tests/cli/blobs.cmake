# `cleave blobs` and `cleave link` from files to files: golden spots on every platform, the same bytes
# however the work is split, options and odd input, tracks.
if(NOT Python3_Interpreter_FOUND)
    return()
endif()

function(cleave_blobs_test name script)
    add_test(NAME cli/blobs_${name} COMMAND Python3::Interpreter
        ${CMAKE_CURRENT_SOURCE_DIR}/${script} $<TARGET_FILE:cleave_command> ${ARGN})
    set_tests_properties(cli/blobs_${name} PROPERTIES LABELS cli SKIP_RETURN_CODE 77 TIMEOUT 900
        ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1;${CLEAVE_TEST_CACHES}")
endfunction()

set(goldens ${PROJECT_SOURCE_DIR}/tests/data/blobs)
foreach(platform pocl intel mesa reference)
    cleave_blobs_test(goldens_${platform} blobs_goldens.py ${goldens} ${platform})
    # the larger cases and the real pictures, where the references are
    cleave_blobs_test(references_${platform} blobs_goldens.py references ${platform})
endforeach()
foreach(platform pocl intel mesa)
    cleave_blobs_test(bits_${platform} blobs_bits.py ${goldens} ${platform})
endforeach()
cleave_blobs_test(options blobs_options.py ${goldens})
cleave_blobs_test(tracks blobs_tracks.py ${goldens})
