# `cleave tokenize`, `cleave embed`, `cleave finetune`: texts to token numbers, to vectors, learnt from.
if(NOT Python3_Interpreter_FOUND)
    return()
endif()
foreach(name tokenize embed finetune)
    add_test(NAME cli/${name} COMMAND Python3::Interpreter
        ${CMAKE_CURRENT_SOURCE_DIR}/text_${name}.py $<TARGET_FILE:cleave_command>)
    set_tests_properties(cli/${name} PROPERTIES LABELS cli TIMEOUT 600
        ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
endforeach()
