#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a folder and a tarball that run from any place, on a machine that has only glibc and a driver. They hold the
# command, the library with its headers, the loader, and every library that these need.
#
#   packaging/bundle.sh [FOLDER]   FOLDER/cleave-VERSION-ARCH and .tar.gz beside it [build-bundle]
#
# glibc itself is not included: the folder runs on systems with the glibc of the machine that made it, or with a newer
# one. packaging/older.sh makes such a folder on Debian 11. The same sources, compiler and SOURCE_DATE_EPOCH (the time
# of the commit unless it is set) give the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
out=${1:-build-bundle}
mkdir -p "$out"
out=$(cd "$out" && pwd)
# shellcheck source=packaging/packages.sh
. packaging/packages.sh
# shellcheck source=packaging/reproducible.sh
. packaging/reproducible.sh

# Libraries that every system with glibc has, and that depend on its version.
glibc='^(linux-vdso|ld-linux.*|libc|libm|libdl|libpthread|librt|libresolv|libutil|libnss_.*)\.so'

version()
{
    sed -n 's/^project(cleave VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt"
}

# Prints the paths of all libraries that a program needs, except glibc's.
libraries_of()
{
    ldd "$1" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | while read -r path; do
        basename "$path" | grep -qE "$glibc" || echo "$path"
    done
}

# Copies a library under the name by which other files ask for it.
take_library()
{
    local path=$1 name
    name=$(basename "$path")
    [ -e "$folder/lib/$name" ] || install -m 755 "$(readlink -f "$path")" "$folder/lib/$name"
}

# Prints the path of a library by its name in the linker's cache, for libraries that are opened at run time.
find_library()
{
    ldconfig -p | awk -v name="$1" '$1 == name && !found { print $NF; found = 1 }'
}

build_it()
{
    cmake -S "$root" -B "$out/build" -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_C_FLAGS=$reproducible_flags" \
        -DCLEAVE_TESTS=OFF \
        -DCLEAVE_BENCH=OFF -DCLEAVE_WITH_MPI=OFF -DCMAKE_INSTALL_PREFIX=/opt/cleave -DCMAKE_INSTALL_LIBDIR=lib \
        > "$out/configure.log" || { cat "$out/configure.log" && return 1; }
    cmake --build "$out/build" > "$out/build.log" || { tail -n 40 "$out/build.log" && return 1; }
    cmake --install "$out/build" --prefix "$folder" --strip > /dev/null
}

collect()
{
    local program path name
    for program in "$folder/bin/cleave" "$folder"/lib/libcleave.so.*.*.*; do
        libraries_of "$program"
    done | sort -u | while read -r path; do take_library "$path"; done
    for name in libclblast.so.1 libclFFT.so.2; do
        path=$(find_library "$name")
        [ -n "$path" ] || { echo "bundle: $name is not installed" >&2 && return 1; }
        take_library "$path"
        libraries_of "$path" | while read -r path; do take_library "$path"; done
    done
}

# All programs and libraries look for libraries relative to their own folder.
set_run_paths()
{
    local file
    for file in "$folder"/lib/*.so*; do
        [ -L "$file" ] || patchelf --set-rpath "\$ORIGIN" "$file"
    done
    patchelf --set-rpath "\$ORIGIN/../lib" "$folder/bin/cleave"
    patchelf --set-rpath "\$ORIGIN/../../lib" "$folder/libexec/cleave/cleave-probe-helper"
}

write_notes()
{
    cat > "$folder/README" << END
Cleave $(version) for $(uname -m), for every Linux with glibc $(ldd --version | awk 'NR == 1 { print $NF }') or newer.

  bin/cleave probe       what this machine can compute with
  bin/cleave demo        a first look
  bin/cleave selftest    every operation on every device against its reference
  bin/cleave bench       how fast
  run-on-gpu.sh          all of it on a machine with a GPU, into a folder to be sent to us (20 minutes)

An OpenCL driver is found through /etc/OpenCL/vendors, else in the usual folders, else by
--icd PATH (a library, an .icd file or a folder of them). Move the folder wherever you like.

lib/ holds libraries of others under their own licences: the copyright files lie in share/licences.
END
}

# Copies Debian's copyright file of every package from which a library was copied.
copy_licences()
{
    local file package
    mkdir -p "$folder/share/licences"
    for file in "$folder"/lib/*.so.*; do
        package=$(dpkg-query -S "*/${file##*/}" 2> /dev/null | awk -F: 'NR == 1 { print $1 }') ||
            continue # our own
        if [ -n "$package" ] && [ -e "/usr/share/doc/$package/copyright" ]; then
            cp "/usr/share/doc/$package/copyright" "$folder/share/licences/$package"
        fi
    done
    cp "$root/LICENSE" "$folder/share/licences/cleave"
}

case ${1:-} in
-h | --help)
    sed -n '3,10s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac
packages_install needed "${packages_needed[@]}"
packages_install useful "${packages_useful[@]}" "${packages_bundle[@]}"
name=cleave-$(version)-$(uname -m)
folder=$out/$name
rm -rf "$folder" "$folder.tar.gz"
reproducible_begin "$root" "$out"
build_it
collect
set_run_paths
write_notes
copy_licences
install -m 755 "$root/packaging/run-on-gpu.sh" "$folder/run-on-gpu.sh"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$out" -cf - "$name" |
    gzip -n > "$folder.tar.gz"
size=$(stat -c %s "$folder.tar.gz")
echo "$folder.tar.gz: $((size / 1000000)) MB"
if [ "$size" -gt 40000000 ]; then
    echo "bundle: more than 40 MB" >&2
    exit 1
fi
