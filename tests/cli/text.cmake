# The commands for texts: `cleave tokenize`, `embed`, `search`, `rank`, `finetune`, `classify` and `generate`.
if(NOT Python3_Interpreter_FOUND)
    return()
endif()
cleave_cli_test(tokenize QUICK text_tokenize.py)
# kernels/encoder, kernels/trainer and python/classifier belong to the quick tier
foreach(name embed search rank finetune classify)
    cleave_cli_test(${name} FULL text_${name}.py)
endforeach()
# PoCL runs the kernels for CPUs, and Mesa those for cards. With PoCL, the choice among several drivers is tested, too.
cleave_cli_test(generate_pocl BRIEF text_generate.py pocl DRIVER all)
cleave_cli_test(generate_mesa BRIEF text_generate.py mesa DRIVER mesa)
foreach(platform intel reference)
    cleave_cli_test(generate_${platform} FULL text_generate.py ${platform} DRIVER ${platform})
endforeach()

# Tests that no command overwrites its input.
cleave_cli_test(own_files QUICK own_files.py)
