# `cleave tokenize`, `embed`, `finetune`, `classify`: texts to token numbers, to vectors, learnt from, told apart.
if(NOT Python3_Interpreter_FOUND)
    return()
endif()
foreach(name tokenize embed finetune classify)
    cleave_cli_test(${name} QUICK text_${name}.py)
endforeach()

# No command writes over what it reads.
cleave_cli_test(own_files QUICK own_files.py)
