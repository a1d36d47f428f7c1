# `cleave tokenize`, `cleave embed`: texts to token numbers and to vectors.
if(NOT Python3_Interpreter_FOUND)
    return()
endif()
foreach(name tokenize embed)
    add_test(NAME cli/${name} COMMAND Python3::Interpreter
        ${CMAKE_CURRENT_SOURCE_DIR}/text_${name}.py $<TARGET_FILE:cleave_command>)
    set_tests_properties(cli/${name} PROPERTIES LABELS cli TIMEOUT 600
        ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
endforeach()
