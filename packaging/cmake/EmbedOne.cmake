# Writes OUTPUT: a C file that holds the text of INPUT as SYMBOL, one string literal per line.
file(READ ${INPUT} text)
if(text MATCHES "[^\t\n -~]")
    message(FATAL_ERROR "${NAME}: kernels are ASCII (tab, newline, space to tilde)")
endif()
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
file(WRITE ${OUTPUT}.new
"#include \"cl_embedded.h\"
static const char text[] =
    \"${text}\";
const clv_cl_source ${SYMBOL} = { \"${NAME}\", text, sizeof text - 1 };
")
file(RENAME ${OUTPUT}.new ${OUTPUT})
