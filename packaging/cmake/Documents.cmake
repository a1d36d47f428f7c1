# Man pages and shell completion, which the command writes from its own option tables. Sets CLEAVE_DOCUMENTS to their
# folder, or to nothing if the command cannot run (in cross builds).
set(CLEAVE_DOCUMENTS "")
if(NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR)
    set(CLEAVE_DOCUMENTS ${PROJECT_BINARY_DIR}/documents)
    add_custom_command(OUTPUT ${CLEAVE_DOCUMENTS}/man1/cleave.1
        COMMAND cleave_command documents ${CLEAVE_DOCUMENTS}
        DEPENDS cleave_command COMMENT "Writing man pages and completion" VERBATIM)
    add_custom_target(cleave_documents ALL DEPENDS ${CLEAVE_DOCUMENTS}/man1/cleave.1)
endif()
