#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the package and builds and runs the programs of packaging/consumer against it: found by
# CMake and by pkg-config, shared and static; and as a part of another project.
#
# usage: consumers.sh SOURCE BUILD CMAKE CC GENERATOR
set -eu
source=$1 build=$2 cmake=$3 cc=$4
export CC="$cc" CMAKE_GENERATOR="$5"
unset DESTDIR || true
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
consumer=$source/packaging/consumer
jobs=$(nproc 2> /dev/null || echo 2)

# quietly COMMAND...: its output only when it fails
quietly()
{
    "$@" > "$work/log" 2>&1 && return
    cat "$work/log"
    echo "failed: $*"
    exit 1
}

# runs WHAT PROGRAM
runs()
{
    if ! answer=$("$2" 2>&1); then
        echo "$1: the program failed: $answer"
        exit 1
    fi
    case $answer in
    *": 8 squared is 64" | "this machine has no OpenCL device") echo "$1: $answer" ;;
    *) echo "$1: unexpected answer: $answer" && exit 1 ;;
    esac
}

# installed KIND PREFIX: both programs against an installed package
installed()
{
    pc=$(dirname "$(find "$2" -name cleave.pc)")
    lib=${pc%/pkgconfig}
    quietly "$cmake" -S "$consumer/find_package" -B "$work/$1-cmake" -DCMAKE_PREFIX_PATH="$2"
    quietly "$cmake" --build "$work/$1-cmake"
    runs "$1, find_package" "$work/$1-cmake/square"

    mkdir "$work/$1-pc"
    PKG_CONFIG_PATH=$pc LDFLAGS="-Wl,-rpath,$lib" \
        quietly make -C "$work/$1-pc" -f "$consumer/pkg-config/Makefile" \
        SOURCE="$consumer/square.c"
    runs "$1, pkg-config" "$work/$1-pc/square"
}

# nothing of ours is found in the build folder: the package is moved after it was installed
quietly "$cmake" --install "$build" --prefix "$work/first"
mv "$work/first" "$work/moved"
if [ -e "$work/moved/bin/cleave" ]; then
    echo "command: $("$work/moved/bin/cleave" --version)"
fi
installed "as built" "$work/moved"

# how they are found is tested here, not how fast they are
quietly "$cmake" -S "$source" -B "$work/static" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE=-O0 \
    -DBUILD_SHARED_LIBS=OFF -DCLEAVE_TESTS=OFF -DCLEAVE_BENCH=OFF -DCLEAVE_COMMAND=OFF
quietly "$cmake" --build "$work/static" -j "$jobs"
quietly "$cmake" --install "$work/static" --prefix "$work/static-installed"
installed static "$work/static-installed"

quietly "$cmake" -S "$consumer/subdirectory" -B "$work/sub" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE=-O0
quietly "$cmake" --build "$work/sub" -j "$jobs"
runs "add_subdirectory" "$work/sub/square"
quietly "$cmake" -S "$consumer/subdirectory" -B "$work/fetch" -DFETCH=ON
echo "FetchContent: configures"
