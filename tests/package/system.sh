# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
# A fresh Debian in a folder, made by debootstrap, in which a test runs commands as root. deb.sh and older.sh source it.
# $test names the test in messages; `jail` is the folder.
jail=$(mktemp -d)
mounts=()

system_end()
{
    local place
    for place in "${mounts[@]}"; do umount -l "$place" || true; done
    rm -rf --one-file-system "$jail"
}
trap system_end EXIT

fail()
{
    echo "$test: $1" >&2
    exit 1
}

inside()
{
    env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 \
        chroot "$jail" bash -euo pipefail -c "$1"
}

# system_make SUITE [COPY_OF]: the folder COPY_OF has a Debian that debootstrap made, for many runs; it is copied.
system_make()
{
    local suite=$1 copy_of=${2:-} mirror place
    mirror=$(apt-get indextargets --format "\$(REPO_URI)" 'Created-By: Packages' | grep -m 1 'debian/$' || true)
    if [ -n "$copy_of" ]; then
        cp -a "$copy_of/." "$jail/"
    else
        debootstrap --variant=minbase --include=ca-certificates "$suite" "$jail" \
            "${mirror:-http://deb.debian.org/debian}" > "$jail.log" || { tail "$jail.log" && fail "debootstrap"; }
        rm -f "$jail.log"
    fi
    cp -L /etc/resolv.conf "$jail/etc/resolv.conf"
    # apt writes its log to /dev/pts, and /sys describes the processor
    for place in proc dev/pts sys; do
        mount --bind "/$place" "$jail/$place"
        mounts+=("$jail/$place")
    done
}
