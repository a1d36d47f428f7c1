# `cleave paco` from files to files: golden maps, the same bits however the work is split, inputs.
if(NOT Python3_Interpreter_FOUND)
    return()
endif()

foreach(platform pocl intel mesa reference)
    foreach(conv paper vip)
        set(more syn64_shortT)
        if(platform MATCHES "^(pocl|reference)$")
            list(APPEND more syn40_longT)
        endif()
        if(conv STREQUAL paper) # vip-hci refuses values that are not finite
            list(APPEND more syn45x56_bad)
        endif()
        set(tier FULL) # kernels/paco compares the drivers with plain C in the quick tier
        if(conv STREQUAL paper AND platform STREQUAL reference)
            set(tier QUICK)
        endif()
        cleave_cli_test(paco_goldens_${platform}_${conv} ${tier} paco_goldens.py ${platform} ${conv} syn50
            DRIVER ${platform})
        cleave_cli_test(paco_large_${platform}_${conv} FULL paco_goldens.py ${platform} ${conv} ${more}
            DRIVER ${platform})
        cleave_cli_test(paco_third_party_${platform}_${conv} FULL paco_goldens.py ${platform} ${conv} betapic60
            DRIVER ${platform})
    endforeach()
endforeach()
foreach(platform pocl intel mesa)
    cleave_cli_test(paco_bits_${platform} FULL paco_bits.py ${platform} DRIVER ${platform})
endforeach()
cleave_cli_test(paco_inputs FULL paco_inputs.py)
cleave_cli_test(paco_outputs FULL paco_outputs.py)
