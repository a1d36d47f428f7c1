# cleave_warnings(TARGET): turns on the warnings that all of our targets use, as errors if a preset says so.
option(CLEAVE_WERROR "Treat warnings as errors (the presets do)" OFF)
function(cleave_warnings target)
    target_compile_options(${target} PRIVATE
        -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes
        -Wpointer-arith -Wcast-qual -Wwrite-strings -Wvla -Wundef -Wno-missing-field-initializers
        $<$<BOOL:${CLEAVE_WERROR}>:-Werror>)
endfunction()
