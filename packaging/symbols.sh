#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that the library exports exactly what the public headers declare and what packaging/symbols.txt lists. A symbol
# that disappears breaks programs, and one that is exported by mistake would have to stay.
#
# usage: symbols.sh CC LIBRARY GENERATED_INCLUDE            compare
#        symbols.sh CC LIBRARY GENERATED_INCLUDE --update   write the list anew
set -eu
cc=$1 library=$2 generated=$3
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

exported()
{
    nm -D --defined-only "$library" |
        awk '$2 ~ /[A-Z]/ && $2 != "A" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort
}

# Prints every CLV_API function, after the compiler has removed comments and macros.
declared()
{
    for header in "$here"/../include/cleave/*.h "$generated"/cleave/*.h; do
        echo "#include <cleave/${header##*/}>"
    done | "$cc" -E -P -I "$here/../include" -I "$generated" - | tr '\n' ' ' | tr ';' '\n' |
        sed -n 's/.*visibility("default"))) *[^(]*\(clv_[a-z0-9_]*\) *(.*/\1/p' | LC_ALL=C sort
}

# same WHAT FILE FILE
same()
{
    cmp -s "$2" "$3" && return
    echo "$1 (< list or header, > library):"
    diff "$2" "$3" || true
    echo "If this is meant: packaging/symbols.sh CC LIBRARY INCLUDE --update, and a line in CHANGELOG.md"
    exit 1
}

exported > "$work/exported"
declared > "$work/declared"
if [ "${4:-}" = --update ]; then
    cp "$work/exported" "$here/symbols.txt"
fi
same "Declared with CLV_API and exported differ" "$work/declared" "$work/exported"
same "packaging/symbols.txt and the library differ" "$here/symbols.txt" "$work/exported"
echo "$(wc -l < "$work/exported") symbols, all declared with CLV_API and listed"
