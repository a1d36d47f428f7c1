#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a kernel test on oclgrind's simulated device: accesses out of bounds, data races and reads of
# what nobody wrote come into its log, which must stay empty (its exit code says nothing).
#
# usage: under_oclgrind.sh ICD TEST [ARGUMENT...]    ICD: liboclgrind-rt-icd.so, or a name ending in
#        NOTFOUND: skipped with exit code 77, unless CLEAVE_TEST_PLATFORMS promises oclgrind
set -eu
icd=$1
shift
case $icd in
*NOTFOUND)
    case ,${CLEAVE_TEST_PLATFORMS-}, in
    *,oclgrind,*) echo "CLEAVE_TEST_PLATFORMS promises oclgrind, which is not here"; exit 1 ;;
    esac
    echo "SKIPPED: no oclgrind"
    exit 77
    ;;
esac
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/vendors"
echo "$icd" > "$folder/vendors/oclgrind.icd"
# each context opens the log anew, and would empty a file: a pipe keeps what was written before
mkfifo "$folder/pipe"
cat "$folder/pipe" > "$folder/log" &
exec 3> "$folder/pipe"
# CLEAVE_OCLGRIND_UNINITIALIZED=0: without the watch on reads, which crashes on some kernels itself, and
# takes memory that was wrapped and upper halves of vectors for never written; once it has told of 20,
# nothing else is told either
# -O0: optimised code holds LLVM's freeze, which oclgrind does not know
env -u CLEAVE_TEST_PLATFORMS OCL_ICD_VENDORS="$folder/vendors" OPENCL_VENDOR_PATH="$folder/vendors" \
    OCLGRIND_BUILD_OPTIONS=-O0 OCLGRIND_UNINITIALIZED="${CLEAVE_OCLGRIND_UNINITIALIZED-1}" \
    OCLGRIND_DATA_RACES=1 \
    OCLGRIND_MAX_ERRORS=20 OCLGRIND_LOG="$folder/pipe" "$@" > "$folder/out" 3>&- || {
    status=$?
    cat "$folder/out"
    exit $status
}
exec 3>&-
wait
cat "$folder/out"
grep -q Oclgrind "$folder/out" || { echo "oclgrind's device was not there"; exit 1; }
if [ -s "$folder/log" ]; then
    echo "oclgrind found:"
    head -c 4000 "$folder/log"
    exit 1
fi
