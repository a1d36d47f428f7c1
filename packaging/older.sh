#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the tarball of bundle.sh and the wheel of wheel.sh in a fresh Debian 11, for systems with glibc 2.30 or newer:
# Debian 11 and later, Ubuntu 20.04 and later.
#
#   packaging/older.sh [FOLDER [SYSTEM]]   FOLDER/cleave-VERSION-ARCH.tar.gz, FOLDER/cleave-VERSION-*.whl [build-older]
#
# SYSTEM is a folder in which debootstrap has installed Debian 11; the script installs the packages for a build in it.
# Without SYSTEM, the script makes the system in FOLDER/system and keeps it. The sources are those of the commit that is
# checked out. Needs root, debootstrap, pip for a newer CMake than Debian 11 has, and the network.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
-h | --help)
    sed -n '3,11s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac
root=$PWD
out=${1:-build-older}
mkdir -p "$out"
out=$(cd "$out" && pwd)
system=${2:-$out/system}
# shellcheck source=packaging/packages.sh
. packaging/packages.sh
if [ "$(id -u)" != 0 ]; then
    echo "older: chroot needs root" >&2
    exit 1
fi
packages_install needed debootstrap
if [ ! -e "$system/etc/debian_version" ]; then
    debootstrap --variant=minbase --include=ca-certificates bullseye "$system" http://deb.debian.org/debian \
        > "$out/debootstrap.log" || { tail "$out/debootstrap.log" && exit 1; }
fi
if [ ! -e "$system/opt/cmake/bin" ]; then
    python3 -m venv "$out/tools"
    "$out/tools/bin/pip" install --quiet --target "$system/opt/cmake" 'cmake<4'
fi
cp -L /etc/resolv.conf "$system/etc/resolv.conf"
mount -t proc proc "$system/proc"
trap 'umount "$system/proc"' EXIT
rm -rf "$system/src" "$system/out"
git clone --quiet "$root" "$system/src"
env -i HOME=/root LC_ALL=C.UTF-8 PATH=/opt/cmake/cmake/data/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    ${SOURCE_DATE_EPOCH:+"SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH"} chroot "$system" bash -euo pipefail -c '
    . /src/packaging/packages.sh
    packages_install needed git python3
    git config --global --add safe.directory /src
    /src/packaging/bundle.sh /out
    /src/packaging/wheel.sh /out' || { tail "$system/out/build.log" && exit 1; }
cp "$system"/out/cleave-*.tar.gz "$system"/out/cleave-*.whl "$out/"
ls -l "$out"/cleave-*
