#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every public header compiles alone, in C11 and in C++17, without a warning.
#
# usage: headers.sh CC CXX INCLUDE GENERATED_INCLUDE
set -eu
cc=$1 cxx=$2 include=$3 generated=$4
warnings="-Wall -Wextra -Wpedantic -Wundef -Werror -fsyntax-only"
failed=0

# headers_alone NAME LANGUAGE COMPILER...
headers_alone()
{
    name=$1 language=$2
    shift 2
    count=0
    for header in "$include"/cleave/*.h "$generated"/cleave/*.h; do
        count=$((count + 1))
        # shellcheck disable=SC2086
        printf '#include <cleave/%s>\ntypedef int not_empty;\n' "${header##*/}" |
            "$@" $warnings -x "$language" -I "$include" -I "$generated" - || {
            echo "$header does not compile alone in $name"
            failed=1
        }
    done
    echo "$name: $count headers tried"
}

headers_alone C11 c "$cc" -std=c11
if command -v "$cxx" > /dev/null; then
    headers_alone C++17 c++ "$cxx" -std=c++17
else
    echo "C++17: not tried, there is no C++ compiler"
fi
exit $failed
