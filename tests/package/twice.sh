#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the Debian packages, the tarball and the wheel twice, in folders with different names and at different times,
# and compares their bytes.
#
#   tests/package/twice.sh FOLDER    makes FOLDER/first and FOLDER/the-second and leaves them there
set -euo pipefail
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."

make_all()
{
    rm -rf "$1"
    packaging/deb.sh "$1/deb"
    packaging/bundle.sh "$1/bundle"
    packaging/wheel.sh "$1/bundle"
}

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
make_all "$folder/first"
sleep 1 # another time
make_all "$folder/the-second"
different=0 count=0
for file in "$folder"/first/deb/*.deb "$folder"/first/bundle/cleave-*.tar.gz "$folder"/first/bundle/cleave-*.whl; do
    count=$((count + 1))
    cmp "$file" "$folder/the-second${file#"$folder/first"}" || different=$((different + 1))
done
if [ "$different" != 0 ] || [ "$count" -lt 6 ]; then
    echo "twice: $different of $count packages differ" >&2
    exit 1
fi
echo "twice: $count packages have the same bytes"
