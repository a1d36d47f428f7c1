# CLEAVE_SANITIZE=address,undefined | thread: instruments everything that is built here.
set(CLEAVE_SANITIZE "" CACHE STRING "Sanitizers for all targets: 'address,undefined' or 'thread'")
if(CLEAVE_FUZZ AND NOT CLEAVE_SANITIZE)
    set(CLEAVE_SANITIZE "fuzzer-no-link,address,undefined")
endif()
function(cleave_sanitize target)
    if(CLEAVE_SANITIZE)
        target_compile_options(${target} PUBLIC
            -fsanitize=${CLEAVE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
        target_link_options(${target} PUBLIC -fsanitize=${CLEAVE_SANITIZE})
    endif()
endfunction()
