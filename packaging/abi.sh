#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs that were built with a release of the library must run with every later release of the same interface
# (the version's first two numbers before 1.0, the first number later). packaging/abi/INTERFACE.abi describes the
# functions and structs of the last release, and this script compares the sources with it. Additions pass: functions,
# enumerators, and fields at the end of structs that may grow (include/cleave/init.h). Anything that was removed, moved
# or changed is a failure, unless the version in CMakeLists.txt begins a new interface.
#
#   packaging/abi.sh               compare
#   packaging/abi.sh --update      describe the sources: do this for each release
#   packaging/abi.sh --self-test   check that artificial breaks are found, and that artificial additions pass
#
# Needs abidw and abidiff (Debian: abigail-tools). $CLEAVE_ABI_BUILD: the folder to build in [build-abi].
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=${CLEAVE_ABI_BUILD:-$root/build-abi}
version=$(sed -n 's/^project(cleave VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
interface=$(echo "$version" | awk -F. '{ print $1 == 0 ? $1 "." $2 : $1 }')
baseline=$root/packaging/abi/$interface.abi

for tool in abidw abidiff; do
    command -v "$tool" > /dev/null || { echo "abi: there is no $tool: install abigail-tools" >&2; exit 2; }
done

# Writes the suppressions: those of growth.suppr, every struct of the headers in FOLDER that begins with its size, and
# every struct that these headers only declare. Without the last kind, abidw treats such a struct as public if a private
# header has the same name as a public one.
suppressions()
{
    local sized opaque
    cat "$root/packaging/abi/growth.suppr"
    sized=$(awk '/^typedef struct clv_[a-z_]+ \{/ { name = $3 }
                 name && /^ +size_t size;/ { print name }
                 name && /;/ { name = "" }' "$1"/*.h | sort -u | paste -sd '|')
    [ -n "$sized" ] || { echo "abi: no struct in $1 begins with its size" >&2; return 1; }
    printf '[suppress_type]\n  type_kind = struct\n  name_regexp = ^(%s)$\n' "$sized"
    printf '  has_data_member_inserted_at = end\n'
    opaque=$(sed -n -E 's/^typedef struct (clv_[a-z_]+) \1;.*/\1/p' "$1"/*.h | sort -u | paste -sd '|')
    [ -z "$opaque" ] || printf '[suppress_type]\n  type_kind = struct\n  name_regexp = ^(%s)$\n' "$opaque"
}

# describe LIBRARY HEADERS FILE
describe()
{
    abidw --headers-dir "$2" --drop-private-types --no-corpus-path --no-comp-dir-path --no-show-locs \
        --out-file "$3" "$1"
    # The description must not contain the folder in which the sources were built.
    sed -i "s|path='$root/|path='|" "$3"
}

# compare OLD NEW HEADERS: compares two descriptions; fails on every difference that is not an addition.
compare()
{
    local rules
    rules=$(mktemp)
    suppressions "$3" > "$rules"
    local code=0
    abidiff --suppressions "$rules" --no-added-syms "$1" "$2" || code=$?
    rm -f "$rules"
    return $code
}

# Builds the library with debug information about its types, and nothing else.
make_library()
{
    mkdir -p "$build"
    if ! { cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Debug -DBUILD_SHARED_LIBS=ON -DCLEAVE_TESTS=OFF \
        -DCLEAVE_BENCH=OFF -DCLEAVE_COMMAND=OFF && cmake --build "$build" --target cleave --parallel; } \
        > "$build/build.log" 2>&1; then
        tail -n 20 "$build/build.log"
        return 1
    fi
    rm -rf "$build/headers"
    mkdir -p "$build/headers"
    cp "$root"/include/cleave/*.h "$build"/include/cleave/*.h "$build/headers"
    describe "$(find "$build" -name libcleave.so | head -n 1)" "$root/include/cleave" "$build/now.abi"
}

# ---- artificial libraries --------------------------------------------------------------------------

# library NAME [FUNCTION [MEMBERS]]: builds a library whose header comes from standard input; a private header has a
# struct with MEMBERS.
library()
{
    mkdir -p "$work/$1/private"
    { cat; echo 'typedef struct clv_hidden clv_hidden;'; } > "$work/$1/clv.h"
    echo "struct clv_hidden { ${3:-int a;} };" > "$work/$1/private/clv.h"
    printf '#include "clv.h"\n#include "private/clv.h"\nint clv_p(clv_hidden *h) { return h->a; }\n' > "$work/$1/clv.c"
    printf 'int clv_f(clv_grows *g, clv_frozen *f) { return g->a + f->a; }\n%s\n' \
        "${2:-int clv_g(void) { return 1; \}}" >> "$work/$1/clv.c"
    "${CC:-cc}" -g -shared -fPIC -I "$work/$1" -o "$work/$1/libclv.so" "$work/$1/clv.c"
    describe "$work/$1/libclv.so" "$work/$1" "$work/$1.abi"
}

# expect PASSES|FAILS NAME
expect()
{
    local found=PASSES
    compare "$work/old.abi" "$work/$2.abi" "$work/$2" > "$work/said" 2>&1 || found=FAILS
    [ $found = "$1" ] || { echo "abi: $2: $found, but it has to be $1"; cat "$work/said"; exit 1; }
}

self_test()
{
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    local grows='typedef struct clv_grows {
    size_t size;
    int a;' frozen='typedef struct clv_frozen {
    int a;' include='#include <stddef.h>' g='int clv_g(void);'
    printf '%s\n%s\n} clv_grows;\n%s\n} clv_frozen;\n%s\n' "$include" "$grows" "$frozen" "$g" | library old
    printf '%s\n%s\n} clv_grows;\n%s\n} clv_frozen;\n%s\n' "$include" "$grows" "$frozen" "$g" | library same
    expect PASSES same
    printf '%s\n%s\n} clv_grows;\n%s\n} clv_frozen;\n%s\n' "$include" "$grows" "$frozen" "$g" |
        library private '' 'double z; int a;'
    expect PASSES private
    printf '%s\n%s\ndouble b;\n} clv_grows;\n%s\n} clv_frozen;\n%s\n' "$include" "$grows" "$frozen" "$g" | library grown
    expect PASSES grown
    printf '%s\n%s\n} clv_grows;\n%s\n} clv_frozen;\n%sint clv_h(void);\n' "$include" "$grows" "$frozen" "$g" |
        library more 'int clv_g(void) { return 1; } int clv_h(void) { return 2; }'
    expect PASSES more
    printf '%s\n%s\n} clv_grows;\n%s\ndouble b;\n} clv_frozen;\n%s\n' "$include" "$grows" "$frozen" "$g" |
        library thawed
    expect FAILS thawed
    printf '%s\n%s\n} clv_grows;\n%s\n} clv_frozen;\n%s\n' "$include" "${grows/int a/double z; int a}" "$frozen" "$g" |
        library moved
    expect FAILS moved
    printf '%s\n%s\n} clv_grows;\n%s\n} clv_frozen;\n' "$include" "$grows" "$frozen" | library less ' '
    expect FAILS less
    printf '%s\n%s\n} clv_grows;\n%s\n} clv_frozen;\nint clv_g(int);\n' "$include" "$grows" "$frozen" |
        library other 'int clv_g(int x) { return x; }'
    expect FAILS other
    echo "abi: made-up breaks are found, and additions pass"
}

case ${1:-} in
--self-test)
    self_test
    ;;
--update)
    make_library
    cp "$build/now.abi" "$baseline"
    echo "abi: packaging/abi/$interface.abi describes the sources"
    ;;
"")
    make_library
    if [ ! -e "$baseline" ]; then
        echo "abi: interface $interface has no release yet: nothing to compare with"
    elif compare "$baseline" "$build/now.abi" "$build/headers"; then
        echo "abi: programs built with the last release of interface $interface run with these sources"
    else
        echo "abi: that breaks programs built with the last release of interface $interface. Add in place of changing" \
            "(include/cleave/init.h), or begin a new interface: the version in CMakeLists.txt, packaging/cleave.map"
        exit 1
    fi
    ;;
*)
    sed -n '3,14s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
