# `cleave tokenize`, `embed`, `finetune`, `classify`: texts to token numbers, to vectors, learnt from, told apart.
if(NOT Python3_Interpreter_FOUND)
    return()
endif()
foreach(name tokenize embed finetune classify)
    add_test(NAME cli/${name} COMMAND Python3::Interpreter
        ${CMAKE_CURRENT_SOURCE_DIR}/text_${name}.py $<TARGET_FILE:cleave_command>)
    set_tests_properties(cli/${name} PROPERTIES LABELS cli TIMEOUT 600
        ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
endforeach()

# No command writes over what it reads.
add_test(NAME cli/own_files COMMAND Python3::Interpreter
    ${CMAKE_CURRENT_SOURCE_DIR}/own_files.py $<TARGET_FILE:cleave_command>)
set_tests_properties(cli/own_files PROPERTIES LABELS cli TIMEOUT 300
    ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
