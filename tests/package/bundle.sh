#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A bundle in a root folder that holds glibc and nothing else, then with PoCL as its driver.
#
#   tests/package/bundle.sh FOLDER    the folder that packaging/bundle.sh filled
set -euo pipefail
bundle=$(ls -d "$1"/cleave-*.tar.gz)
if [ "$(id -u)" != 0 ]; then
    echo "SKIPPED: chroot needs root"
    exit 77
fi
jail=$(mktemp -d)
mounts=()

clean_up()
{
    local place
    for place in "${mounts[@]}"; do umount "$place" || true; done
    rm -rf --one-file-system "$jail"
}
trap clean_up EXIT

fail()
{
    echo "bundle: $1" >&2
    exit 1
}

# glibc alone, by the names that programs ask for.
fill_jail()
{
    local name path
    mkdir -p "$jail"/{lib64,lib/x86_64-linux-gnu,tmp,proc,dev,bundle}
    for name in ld-linux-x86-64.so.2 libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 \
        libresolv.so.2; do
        path=$(ldconfig -p | awk -v name="$name" '$1 == name && /x86-64/ && !f { print $NF; f = 1 }')
        cp -L "$path" "$jail/lib/x86_64-linux-gnu/$name"
    done
    cp -L /lib64/ld-linux-x86-64.so.2 "$jail/lib64/"
    mount --bind /proc "$jail/proc" # where the dynamic linker learns its own place
    mounts+=("$jail/proc")
    tar -C "$jail/bundle" --strip-components=1 -xzf "$bundle"
}

inside()
{
    env -i HOME=/tmp PATH=/bundle/bin "$(command -v chroot)" "$jail" /bundle/bin/cleave "$@"
}

check_alone()
{
    local text status=0
    inside --version || fail "does not start with glibc alone"
    text=$(inside probe --json) || status=$?
    [ "$status" = 0 ] || [ "$status" = 4 ] || fail "probe without a driver: exit code $status"
    echo "$text" | grep -q '"cleave.probe/1"' || fail "probe without a driver: no report"
    inside demo --mode reference -o /tmp/demo > /dev/null || fail "plain C does not work alone"
}

# The bundle on this machine, from a place with a space in its name, with a driver that no .icd
# file names.
check_with_driver()
{
    local place="$jail/another place" driver
    driver=$(ldconfig -p | awk '$1 == "libpocl.so.2" && !f { print $NF; f = 1 }')
    [ -n "$driver" ] || fail "PoCL is not installed"
    mv "$jail/bundle" "$place"
    env -i HOME="$jail/tmp" PATH=/usr/bin:/bin OCL_ICD_VENDORS="$jail/none" \
        "$place/bin/cleave" --icd "$driver" probe --list | grep "Portable Computing" ||
        fail "--icd $driver finds no device"
    env -i HOME="$jail/tmp" PATH=/usr/bin:/bin OCL_ICD_VENDORS="$jail/none" \
        "$place/bin/cleave" --icd "$driver" demo -o "$jail/tmp/demo-pocl" > "$jail/tmp/log" ||
        { cat "$jail/tmp/log" && fail "demo on PoCL"; }
}

fill_jail
check_alone
check_with_driver
echo "bundle: works with glibc alone, and on a driver given by --icd"
