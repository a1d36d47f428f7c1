#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a Python wheel that carries the library, the command and every library below them.
#
#   packaging/wheel.sh [FOLDER]   FOLDER/cleave-VERSION-py3-none-PLATFORM.whl [build-bundle]
#
# The bundle of packaging/bundle.sh in FOLDER is taken; where there is none it is made first. Install
# the wheel with pip: it needs NumPy, glibc as new as this machine's, and an OpenCL driver.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
-h | --help)
    sed -n '3,8s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac
out=${1:-build-bundle}
version=$(sed -n 's/^project(cleave VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
bundle=$out/cleave-$version-$(uname -m)
[ -d "$bundle" ] || packaging/bundle.sh "$out"
bundle=$(cd "$bundle" && pwd)
out=$(cd "$out" && pwd)
name=$(cd python && CLEAVE_WHEEL_BUNDLE=$bundle PYTHONDONTWRITEBYTECODE=1 python3 -c \
    'import sys, backend; print(backend.build_wheel(sys.argv[1]))' "$out")
echo "$out/$name: $(($(stat -c %s "$out/$name") / 1000000)) MB"
