# `cleave tokenize`, `embed`, `finetune`, `classify`: texts to token numbers, to vectors, learnt from, told apart; `generate`: gone on with.
if(NOT Python3_Interpreter_FOUND)
    return()
endif()
foreach(name tokenize embed finetune classify)
    cleave_cli_test(${name} QUICK text_${name}.py)
endforeach()
foreach(platform pocl intel mesa reference)
    cleave_cli_test(generate_${platform} QUICK text_generate.py ${platform})
endforeach()

# No command writes over what it reads.
cleave_cli_test(own_files QUICK own_files.py)
