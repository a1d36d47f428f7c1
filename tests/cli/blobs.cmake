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

foreach(platform pocl intel mesa reference)
    cleave_blobs_test(goldens_${platform} blobs_goldens.py ${platform}
        b_odd_f32 c_saturated_u8 e_border_u16 e_border4_u16 g_weak_u16 z_degenerate_u16)
    cleave_blobs_test(large_${platform} blobs_goldens.py ${platform} a_drift_u16 d_merge_u16 f_scales_f32)
    cleave_blobs_test(third_party_${platform} blobs_goldens.py ${platform}
        real_bulk_water_u8 real_coins_u8 real_hubble_left_u8 real_stuck)
endforeach()
foreach(platform pocl intel mesa)
    cleave_blobs_test(bits_${platform} blobs_bits.py ${platform})
endforeach()
cleave_blobs_test(options blobs_options.py)
cleave_blobs_test(tracks blobs_tracks.py)
