# `cleave blobs` and `cleave link` from files to files: golden spots on every platform, the same bytes
# however the work is split, options, unusual input, tracks.
if(NOT Python3_Interpreter_FOUND)
    return()
endif()

foreach(platform pocl intel mesa reference)
    set(tier FULL) # kernels/blob compares the drivers with plain C in the quick tier
    if(platform STREQUAL reference)
        set(tier QUICK)
    endif()
    cleave_cli_test(blobs_goldens_${platform} ${tier} blobs_goldens.py ${platform}
        e_border_u16 z_degenerate_u16 DRIVER ${platform})
    set(more a_drift_u16 b_odd_f32 f_scales_f32) # two types of pixels, many scales
    if(platform MATCHES "^(pocl|reference)$")
        list(APPEND more c_saturated_u8 d_merge_u16 e_border4_u16 g_weak_u16)
    endif()
    cleave_cli_test(blobs_large_${platform} FULL blobs_goldens.py ${platform} ${more}
        DRIVER ${platform})
    cleave_cli_test(blobs_third_party_${platform} FULL blobs_goldens.py ${platform}
        real_bulk_water_u8 real_coins_u8 real_hubble_left_u8 real_stuck DRIVER ${platform})
endforeach()
foreach(platform pocl intel mesa)
    cleave_cli_test(blobs_bits_${platform} FULL blobs_bits.py ${platform} DRIVER ${platform})
endforeach()
cleave_cli_test(blobs_options QUICK blobs_options.py)
cleave_cli_test(blobs_stage QUICK blobs_stage.py)
cleave_cli_test(blobs_tracks QUICK blobs_tracks.py)
cleave_cli_test(blobs_volumes FULL blobs_volumes.py)
cleave_cli_test(blobs_inputs FULL blobs_inputs.py)
cleave_cli_test(blobs_forms FULL blobs_forms.py)
cleave_cli_test(blobs_tables FULL blobs_tables.py)
cleave_cli_test(tracks FULL tracks.py)
