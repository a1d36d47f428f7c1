#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes Debian packages for this machine's release: libcleave0.2, libcleave-dev, cleave and python3-cleave, and plugins
# for the MPIs that are installed here: cleave-openmpi, cleave-mpich.
#
#   packaging/deb.sh [FOLDER]   FOLDER/*.deb [build-deb]
#
# The same sources give the same bytes: SOURCE_DATE_EPOCH is the time of the commit unless it is set, and paths of the
# build are not part of the files. lintian checks the packages where it is installed.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
-h | --help)
    sed -n '3,9s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac
root=$PWD
out=${1:-build-deb}
mkdir -p "$out"
out=$(cd "$out" && pwd)
# shellcheck source=packaging/packages.sh
. packaging/packages.sh
# shellcheck source=packaging/reproducible.sh
. packaging/reproducible.sh
packages_install needed "${packages_needed[@]}" "${packages_deb[@]}"
packages_install useful "${packages_useful[@]}"
reproducible_begin "$root" "$out"
rm -f "$out"/*.deb
# the flags of dpkg-buildflags for packages
flags="$reproducible_flags -fstack-protector-strong -Wformat -Werror=format-security -fcf-protection"
flags+=" -D_FORTIFY_SOURCE=2"
cmake -S . -B "$out/build" -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_C_FLAGS=$flags" -DCMAKE_INSTALL_PREFIX=/usr \
    -DCMAKE_INSTALL_LIBDIR="lib/$(gcc -print-multiarch)" -DCMAKE_INSTALL_LIBEXECDIR=libexec \
    -DCMAKE_SHARED_LINKER_FLAGS="-Wl,-z,relro,-z,now" -DCMAKE_EXE_LINKER_FLAGS="-Wl,-z,relro,-z,now" \
    -DCMAKE_SKIP_RPATH=ON -DCLEAVE_TESTS=OFF -DCLEAVE_BENCH=OFF -DCLEAVE_DEB=ON > "$out/configure.log" ||
    { cat "$out/configure.log" && exit 1; }
cmake --build "$out/build" > "$out/build.log" || { tail -n 40 "$out/build.log" && exit 1; }
(cd "$out/build" && cpack -G DEB -B "$out/packed") > "$out/cpack.log" 2>&1 || { tail -n 40 "$out/cpack.log" && exit 1; }
mv "$out"/packed/*.deb "$out/"
if command -v lintian > /dev/null; then
    lintian --allow-root --fail-on error --tag-display-limit 0 "$out"/*.deb > "$out/lintian.log" ||
        { cat "$out/lintian.log" && exit 1; }
    echo "lintian: no error, $(grep -c '^W:' "$out/lintian.log" || true) warnings ($out/lintian.log)"
fi
for file in "$out"/*.deb; do echo "$file: $(stat -c %s "$file") bytes"; done
