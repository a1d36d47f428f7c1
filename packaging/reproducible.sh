# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: Apache-2.0
# Makes two builds of the same sources give the same bytes. deb.sh and bundle.sh source this file, call
# reproducible_begin, and pass $reproducible_flags to the compiler.

# reproducible_begin ROOT OUT: SOURCE_DATE_EPOCH is the time of the commit unless it is set, new files have the usual
# permissions, and the paths of the sources and of the build do not become part of the files.
reproducible_begin()
{
    local root=$1 out=$2
    if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
        SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct 2> /dev/null || stat -c %Y "$root/CHANGELOG.md")
    fi
    export SOURCE_DATE_EPOCH
    umask 022
    reproducible_flags="-g0 -ffile-prefix-map=$root=. -ffile-prefix-map=$out=build"
}
