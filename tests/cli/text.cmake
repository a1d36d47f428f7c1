# The commands for texts: `cleave tokenize`, `embed`, `search`, `rank`, `finetune`, `classify` and `generate`.
if(NOT Python3_Interpreter_FOUND)
    return()
endif()
cleave_cli_test(tokenize QUICK text_tokenize.py)
# kernels/encoder, kernels/trainer and python/classifier belong to the quick tier
foreach(name embed search rank finetune classify)
    cleave_cli_test(${name} FULL text_${name}.py)
endforeach()
foreach(platform pocl mesa) # of PoCL as a CPU takes kernels, of Mesa as a card does
    cleave_cli_test(generate_${platform} BRIEF text_generate.py ${platform})
endforeach()
foreach(platform intel reference)
    cleave_cli_test(generate_${platform} FULL text_generate.py ${platform})
endforeach()

# No command writes over what it reads.
cleave_cli_test(own_files QUICK own_files.py)
