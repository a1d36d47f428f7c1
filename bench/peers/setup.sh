#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes private Python environments with the outside programs of `cleave bench --peers`, from PyPI.
#
# usage: bench/peers/setup.sh DIR [arrays] [vip] [torch] [blobs] [rvspecfit] [llamacpp]
#        makes DIR/NAME for each name, or for all of them if none is given
# Then:  cleave bench --peers bench/peers --peers-env DIR/arrays:DIR/vip:DIR/torch:DIR/blobs:DIR/rvspecfit:DIR/llamacpp
set -eu
[ $# -ge 1 ] || { sed -n '5,7s/^# //p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
shift
[ $# -gt 0 ] || set -- arrays vip torch blobs rvspecfit llamacpp
mkdir -p "$folder"
for name; do
    [ -r "$here/requirements-$name.txt" ] || { echo "setup.sh: no peer $name" >&2; exit 2; }
    [ -x "$folder/$name/bin/python" ] || python3 -m venv "$folder/$name"
    "$folder/$name/bin/python" -m pip install --quiet --disable-pip-version-check \
        -r "$here/requirements-$name.txt"
    echo "$folder/$name"
done
