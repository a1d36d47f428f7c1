#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the documentation as a site: pages of docs/, the reference of every command, of C and of Python.
#
#   packaging/docs.sh [FOLDER]   FOLDER/html/index.html [build-docs]
#
# CLEAVE_BUILD_DIR is a build of Cleave, from whose command and library the reference is made [build]; if there is none,
# it is made first. Any warning is an error, and so is a broken link between pages.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
-h | --help)
    sed -n '3,8s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac
root=$PWD
out=${1:-build-docs}
build=${CLEAVE_BUILD_DIR:-build}
mkdir -p "$out"
out=$(cd "$out" && pwd)
# shellcheck source=packaging/packages.sh
. packaging/packages.sh
packages_install needed "${packages_docs[@]}"
if [ ! -e "$build/bin/cleave" ]; then
    packages_install needed "${packages_needed[@]}"
    cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCLEAVE_TESTS=OFF -DCLEAVE_BENCH=OFF > "$out/build.log"
    cmake --build "$build" >> "$out/build.log" || { tail -n 40 "$out/build.log" && exit 1; }
fi
build=$(cd "$build" && pwd)
rm -rf "$out/pages" "$out/doctrees" "$out/html" "$out/xml"
mkdir -p "$out/pages"

{
    cat docs/site/Doxyfile
    echo "INPUT = $root/include/cleave $build/include/cleave"
    echo "OUTPUT_DIRECTORY = $out"
    echo "STRIP_FROM_PATH = $root/include $build/include"
} > "$out/Doxyfile"
doxygen "$out/Doxyfile" 2> "$out/doxygen.log" || true
if [ -s "$out/doxygen.log" ]; then
    cat "$out/doxygen.log"
    echo "docs: Doxygen warns" >&2
    exit 1
fi

CLEAVE_VERSION=$(sed -n 's/^project(cleave VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
export CLEAVE_VERSION CLEAVE_DOXYGEN_XML=$out/xml CLEAVE_PYTHON=$root/python PYTHONPATH=$root/python
export CLEAVE_LIBRARY=$build/lib/libcleave.so PYTHONDONTWRITEBYTECODE=1
# Debian's Python, for which the packages are made
/usr/bin/python3 docs/site/stage.py "$root" "$build/bin/cleave" "$out/pages"
/usr/bin/python3 -m sphinx -b html -q -W --keep-going -j 2 -c docs/site -d "$out/doctrees" "$out/pages" "$out/html"
cat > "$out/html/index.html" << END
<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=docs/index.html">
<title>Cleave</title><a href="docs/index.html">Cleave</a>
END
/usr/bin/python3 docs/site/links.py "$out/html"
echo "$out/html/index.html: $(find "$out/html" -name '*.html' | wc -l) pages, no warning"
