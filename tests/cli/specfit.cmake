# `cleave specfit` from files to files: the stars of the reference on every platform, options, unusual input.
if(NOT Python3_Interpreter_FOUND)
    return()
endif()

if(CLEAVE_HAVE_CFITSIO)
    foreach(platform pocl intel mesa reference)
        set(tier FULL) # kernels/spectra compares the drivers with plain C in the quick tier
        if(platform STREQUAL reference)
            set(tier QUICK)
        endif()
        cleave_cli_test(specfit_goldens_${platform} ${tier} specfit_goldens.py ${platform} DRIVER ${platform})
    endforeach()
    foreach(what options tables damage resume readers layouts priors templates acceptance)
        cleave_cli_test(specfit_${what} FULL specfit_${what}.py)
    endforeach()
    if(CLEAVE_HAVE_PNG)
        cleave_cli_test(specfit_pictures FULL specfit_pictures.py ${PROJECT_SOURCE_DIR}/host/io/pictures/font.c)
    endif()
    cleave_cli_test(specfit_library FULL specfit_library.py
        ${PROJECT_SOURCE_DIR}/packaging/rvspecfit_library.py ${PROJECT_SOURCE_DIR}/bench/peers)
endif()
