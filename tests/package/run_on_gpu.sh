#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# packaging/run-on-gpu.sh with a command that answers at once, and fails, waits or leaves something out where it is told
# to: which steps are done, which are repeated, what is left of an interrupted run, and how the time is divided.
#
#   tests/package/run_on_gpu.sh SOURCES
set -euo pipefail
script=$1/packaging/run-on-gpu.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
results="$folder/results of a card"

fail()
{
    echo "run_on_gpu: $1" >&2
    cat "$folder/log" >&2
    exit 1
}

# Notes its arguments. A file `gpu`, `fails`, `waits` or `short` beside it says what it does; the last three contain a
# step's word. `short`: the benchmark writes an incomplete result.
cat > "$folder/cleave" << 'END'
#!/usr/bin/env bash
here=$(dirname "$0")
echo "$*" >> "$here/calls"
has() { [ -e "$here/$1" ] && grep -qF -- "$(cat "$here/$1")" <<< "$2"; }
case $* in
*--list*)
    if [ ! -e "$here/gpu" ]; then echo "no GPU" && exit 4; fi
    echo "0  discrete_gpu    A card (TM) 9000      12.6 GB  A platform"
    ;;
*) if has fails "$*"; then exit 1; fi ;;
esac
echo "reads $HOME/x, writes $PWD/y, is $here/z"
echo '{ "id": "uuid:1234", "uuid": "1234" }'
if has short "$*"; then printf '{\n  "complete": false,\n  "late": true,\n  "late": true\n}\n' > bench-blobs.json; fi
if has waits "$*"; then touch "$here/waiting" && sleep 30; fi
END
chmod +x "$folder/cleave"
export CLEAVE_COMMAND=$folder/cleave "HOME=$folder/home.of.a[user]"

# go EXPECTED ARGUMENT...: runs the script, which has to end with this exit code.
go()
{
    local expected=$1 status=0
    shift
    rm -f "$folder/calls"
    "$script" "$@" > "$folder/log" 2>&1 || status=$?
    [ "$status" = "$expected" ] || fail "run-on-gpu.sh $*: exit code $status, expected $expected"
}

calls()
{
    grep -cv -- '--list\|--version' "$folder/calls" || true
}

go 2 --minutes 0
go 2 --what
go 3 "$results"
[ ! -e "$results" ] || fail "a folder was made without a GPU"
touch "$folder/gpu"
echo "bench blobs" > "$folder/fails"
go 1 "$results" --icd "$folder/driver"
all=$(calls)
[ "$all" -ge 10 ] || fail "only $all steps"
grep -q -- "--icd=$folder/driver bench paco" "$folder/calls" || fail "the driver was not passed on"
grep -qx "reads ~/x, writes RESULTS/y, is $folder/z" "$results/log/probe.txt" || fail "a path was not replaced"
grep -q "1234" -r "$results/log" && fail "the number of a device was not removed"
grep -q "bench-blobs | exit code 1" "$results/SUMMARY.md" || fail "the summary does not name the step that failed"
rm "$folder/fails"
echo "bench blobs" > "$folder/short"
go 0 "$results"
[ "$(calls)" = 1 ] || fail "$(calls) steps were repeated where one had failed"
grep -q "bench-blobs | in part: 2 entries had no time" "$results/SUMMARY.md" || fail "not told: a figure had no time"
rm "$folder/short" "$results/bench-blobs.json"
echo "bench blobs" > "$folder/waits"
"$script" "$results" > "$folder/log" 2>&1 &
running=$!
for _ in $(seq 100); do
    if [ -e "$folder/waiting" ]; then break; fi
    sleep 0.05
done
kill -TERM "$running"
status=0
wait "$running" || status=$?
[ "$status" = 130 ] || fail "interrupted: exit code $status, expected 130"
grep -q "bench-paco | done" "$results/SUMMARY.md" || fail "the summary was not written before the interruption"
grep -q "bench-blobs | interrupted" "$results/SUMMARY.md" || fail "the summary does not list the interrupted step"
rm "$folder/waits"
go 0 "$results"
[ "$(calls)" = 1 ] || fail "$(calls) steps were repeated where one had been interrupted"
grep -q -- "--resume" "$folder/calls" || fail "a repeated benchmark does not take the figures that it has"
[ "$(grep -c '| done |' "$results/SUMMARY.md")" = "$all" ] || fail "the summary does not list $all steps as done"
if grep -q "exit code" "$results/SUMMARY.md"; then fail "the summary still lists a failure"; fi
[ ! -e "$results/cache" ] || fail "the cache of kernels is left"
mkdir -p "$folder/here/drivers"
cd "$folder/here"
go 0 --icd drivers/,missing.so
[ -e gpu-results-a-card-tm-9000/SUMMARY.md ] || fail "the folder is not named after the GPU"
grep -q -- "--icd=$PWD/drivers/,missing.so bench paco" "$folder/calls" || fail "a relative path of a driver was kept"

# A step gets its part of the time that is left, and no more: here the first step takes 3 s of 60.
echo "probe --check" > "$folder/waits"
sed -i 's/sleep 30/sleep 3/' "$folder/cleave"
go 0 --minutes 1 "$folder/short of time"
budgets=$(sed -n 's/.*--budget=\([0-9]*\).*/\1/p' "$folder/calls")
[ "$(wc -w <<< "$budgets")" = 8 ] || fail "budgets of 8 benchmarks expected, got $budgets"
for budget in $budgets; do
    if [ "$budget" -lt 1 ] || [ "$budget" -gt 52 ]; then fail "a benchmark has $budget s of 60"; fi
done
[ "$(head -n 1 <<< "$budgets")" -le 4 ] || fail "the first benchmark takes the time of the others: $budgets"
echo "run_on_gpu: $all steps; those that failed or were interrupted are repeated, and no others"
