#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Debian's CFITSIO of this release, built so that libFuzzer sees into it and the address sanitizer checks it: the
# fuzzers of FITS files are blind without. Fetches the source package by apt, from a list of its own; the system's
# lists stay as they are.
#
#   tests/fuzz/cfitsio.sh FOLDER
#
# makes FOLDER/lib/libcfitsio.a and FOLDER/lib/pkgconfig, for PKG_CONFIG_PATH. Does nothing where they are there.
set -euo pipefail
mkdir -p "$1"
folder=$(cd "$1" && pwd)
[ -e "$folder/lib/pkgconfig/cfitsio.pc" ] && exit 0
cd "$folder"
mkdir -p lists/partial cache/archives/partial
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
echo "deb-src http://deb.debian.org/debian $release main" > sources.list
options=(-o "Dir::Etc::sourcelist=$folder/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$folder/lists" -o "Dir::Cache=$folder/cache")
apt-get "${options[@]}" -qq update
# Debian's own changes are to its build, which is not used: the original source is enough.
apt-get "${options[@]}" -qq source --download-only cfitsio || [ -e "$(echo cfitsio_*.orig.tar.gz)" ]
mkdir -p source
tar -xf cfitsio_*.orig.tar.gz -C source --strip-components=1
cd source
flags='-g -O1 -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address -fno-sanitize-recover=all -w'
CC=clang CFLAGS=$flags LDFLAGS=-fsanitize=address ./configure --quiet --prefix="$folder" --enable-reentrant \
    --disable-curl > "$folder/log" 2>&1 || { tail -n 20 "$folder/log"; exit 1; }
make -j2 libcfitsio.a >> "$folder/log" 2>&1 || { tail -n 20 "$folder/log"; exit 1; }
mkdir -p "$folder/lib/pkgconfig" "$folder/include"
cp libcfitsio.a "$folder/lib/"
cp fitsio.h longnam.h "$folder/include/"
cat > "$folder/lib/pkgconfig/cfitsio.pc" << END
Name: cfitsio
Description: CFITSIO, instrumented
Version: $(sed -n 's/^#define CFITSIO_VERSION *//p' fitsio.h)
Libs: -L$folder/lib -lcfitsio -lz -lm -lpthread
Cflags: -I$folder/include
END
echo "CFITSIO $(sed -n 's/^#define CFITSIO_VERSION *//p' fitsio.h) is in $folder"
