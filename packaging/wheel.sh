#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a Python wheel that contains the library, the command and every library that these need.
#
#   packaging/wheel.sh [FOLDER]   FOLDER/cleave-VERSION-py3-none-PLATFORM.whl [build-bundle]
#
# The script takes the bundle of packaging/bundle.sh in FOLDER, and makes it first if there is none. Install the wheel
# with pip. It needs NumPy, an OpenCL driver, and the version of glibc that is part of the wheel's name: 2.36 for
# libraries of Debian 12, 2.35 for those of Ubuntu 22.04.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
-h | --help)
    sed -n '3,9s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac
out=${1:-build-bundle}
version=$(sed -n 's/^project(cleave VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
bundle=$out/cleave-$version-$(uname -m)
[ -d "$bundle" ] || packaging/bundle.sh "$out"
bundle=$(cd "$bundle" && pwd)
out=$(cd "$out" && pwd)

# The newest version of glibc's symbols that a file of the bundle needs.
glibc=$({ find "$bundle/bin" "$bundle/lib" "$bundle/libexec" -type f -exec objdump -T {} + 2> /dev/null || true; } |
    grep -o 'GLIBC_2\.[0-9]*' | sort -uV | tail -n 1)
[ -n "$glibc" ] || { echo "wheel: objdump reads none of the files of $bundle" >&2 && exit 1; }
export CLEAVE_WHEEL_GLIBC=${glibc#GLIBC_}
name=$(cd python && CLEAVE_WHEEL_BUNDLE=$bundle PYTHONDONTWRITEBYTECODE=1 python3 -c \
    'import sys, backend; print(backend.build_wheel(sys.argv[1]))' "$out")
echo "$out/$name: $(($(stat -c %s "$out/$name") / 1000000)) MB"
