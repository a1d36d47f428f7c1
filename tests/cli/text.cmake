# The commands for texts: `cleave tokenize`, `embed`, `search`, `rank`, `finetune`, `classify` and `generate`.
if(NOT Python3_Interpreter_FOUND)
    return()
endif()
cleave_cli_test(tokenize QUICK text_tokenize.py)
# kernels/encoder, kernels/trainer and python/classifier belong to the quick tier
foreach(name embed search rank finetune classify)
    cleave_cli_test(${name} FULL text_${name}.py)
endforeach()
foreach(platform pocl mesa) # PoCL runs the kernels for CPUs, and Mesa those for cards
    cleave_cli_test(generate_${platform} BRIEF text_generate.py ${platform})
endforeach()
foreach(platform intel reference)
    cleave_cli_test(generate_${platform} FULL text_generate.py ${platform})
endforeach()

# Tests that no command overwrites its input.
cleave_cli_test(own_files QUICK own_files.py)
