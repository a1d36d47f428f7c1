#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures a machine with a GPU: one command, no network, 20 minutes at most. Part of the relocatable bundle.
#
#   run-on-gpu.sh [FOLDER] [--minutes N] [--icd PATH]
#
# FOLDER [gpu-results-NAME-OF-THE-GPU] receives the results: the probe's report with its check and its measurements, the
# self-test, and the benchmark of every workload on the GPU, on the CPU and on both, compared with Cleave's plain C. If
# bench/peers and $CLEAVE_PEERS_ENV exist, other programs are measured, too. SUMMARY.md lists the steps.
#
# The most valuable steps come first. Each has a share of the remaining time, and a benchmark leaves out what does not
# fit. Every figure is saved when it is measured. To measure what is missing, also after an interruption, run the same
# command again: it repeats no finished step and no figure. Please send the folder as it is. It contains the names of
# the machine's devices and drivers. Your home folder, the folder of the bundle and the unique numbers of devices are
# replaced.
#
# Exit codes: 0 all steps have results; 1 a step failed, or no time was left for it; 2 wrong usage; 3 no GPU;
# 130 interrupted.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
usage()
{
    sed -n '3,20s/^# \{0,1\}//p' "$here/${0##*/}"
}
wrong()
{
    echo "run-on-gpu.sh: $1" >&2
    exit 2
}

# absolute SEPARATOR LIST: prints the list of paths, the relative ones with the current folder before them.
absolute()
{
    local path paths list=""
    IFS=$1 read -ra paths <<< "$2"
    for path in "${paths[@]}"; do
        if [[ $path != /* ]] && [ -e "$path" ]; then path=$PWD/$path; fi
        list+=${list:+$1}$path
    done
    printf '%s' "$list"
}

out="" minutes=20 icd=()
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) usage && exit 0 ;;
    --minutes | --icd)
        [ $# -gt 1 ] || wrong "$1 needs a value"
        if [ "$1" = --icd ]; then icd=("--icd=$(absolute , "$2")"); else minutes=$2; fi
        shift
        ;;
    --minutes=*) minutes=${1#*=} ;;
    --icd=*) icd=("--icd=$(absolute , "${1#*=}")") ;;
    -*) wrong "unknown option $1 (use --minutes N, --icd PATH or a folder)" ;;
    *)
        [ -z "$out" ] || wrong "two folders given: $out and $1"
        out=$1
        ;;
    esac
    shift
done
[[ $minutes =~ ^[1-9][0-9]{0,3}$ ]] || wrong "--minutes is $minutes, expected 1 to 9999"
cleave=${CLEAVE_COMMAND:-$here/bin/cleave}
[ -x "$cleave" ] || wrong "$cleave: no such program (run this script from the unpacked bundle)"
if ! gpus=$("$cleave" "${icd[@]}" probe --list --device=gpu 2>&1); then
    printf '%s\n' "$gpus"
    echo "run-on-gpu.sh: no GPU is usable here (a driver in an unusual place: --icd PATH)" >&2
    exit 3
fi
printf '%s\n' "$gpus"
if [ -z "$out" ]; then
    name=$(sed -E '1!d; s/^ *[0-9]+ +[a-z_]+ +//; s/ +[0-9.]+ [kMGT]?B .*//; s/[^A-Za-z0-9]+/-/g; s/-$//' <<< "$gpus")
    out=gpu-results-${name,,}
fi
rm -rf "$out/tried" # the steps of this run
mkdir -p "$out/done" "$out/log" "$out/tried" || exit 1
out=$(cd "$out" && pwd)
version=$("$cleave" --version)
reserve=30 # seconds for steps that take longer than their share
if [ "$minutes" -lt 5 ]; then reserve=$((6 * minutes)); fi
export CLEAVE_CACHE_DIR=$out/cache
mkdir -p "$CLEAVE_CACHE_DIR" && chmod 700 "$CLEAVE_CACHE_DIR"
peers_env=$(absolute : "${CLEAVE_PEERS_ENV:-}") # the steps run in the folder of results
cd "$out" || exit 1

failed=0 missing=0 running="" name="" began=0
# Ends the running step, which does not count as done: the same command starts it again.
# shellcheck disable=SC2317 # a trap calls it
interrupted()
{
    [ -z "$running" ] || kill "$running" 2> /dev/null
    wait
    make_public
    if [ -n "$running" ]; then row "$name" "interrupted; what it saved until then is kept" $((SECONDS - began)); fi
    echo "run-on-gpu.sh: interrupted; the same command goes on: ${out}" >&2
    exit 130
}
trap interrupted INT TERM
touch rows && sed -i "/. done ./!d" rows # failed steps are tried again
row()
{
    echo "| $1 | $2 | $3 s |" >> rows
    printf '%-24s %s (%s s)\n' "$1" "$2" "$3"
    summary
}

# Writes the list of steps, which is complete up to the last one that ended.
summary()
{
    {
        sed -E '1!d; s/^ *[0-9]+ +[a-z_]+ +/# /; s/ {2,}/, /g' <<< "$gpus"
        printf '\n%s\n\n| step | result | time |\n| --- | --- | --: |\n' "$version"
        cat rows
    } > SUMMARY.md
}

# Prints a path as a pattern for sed.
pattern()
{
    printf '%s' "$1" | sed 's/[][\\.*^$|]/\\&/g'
}
private=(-e "s|$(pattern "$out")|RESULTS|g" -e "s|$(pattern "$here")|BUNDLE|g")
if [ "${#HOME}" -gt 1 ]; then
    private+=(-e "s|$(pattern "$HOME")|~|g")
fi
private+=(-e 's/"uuid": *"[^"]*"/"uuid": null/g' -e 's/"uuid:[^"]*"/"uuid:removed"/g')

# Replaces in all results what identifies the user or the device.
make_public()
{
    find . -path ./cache -prune -o -type f -exec sed -i "${private[@]}" {} +
}

# The steps by worth, each with its weight: its share of the time is its weight among the steps that are still to come.
steps="probe:5 selftest:20 bench-runtime:5 bench-paco:12 bench-blobs:10 bench-transformer:12 bench-arrays:10
bench-specfit:10 probe-bench:6 bench-offload:12 bench-link:2"

# Prints how many seconds a step may take.
share_of()
{
    local step own=0 all=0
    for step in $steps; do
        if [ -e "done/${step%:*}" ] || [ -e "tried/${step%:*}" ]; then continue; fi
        all=$((all + ${step#*:}))
        if [ "${step%:*}" = "$1" ]; then own=${step#*:}; fi
    done
    echo $(((60 * minutes - reserve - SECONDS) * own / (all ? all : 1)))
}

# step NAME COMMAND...: runs `cleave COMMAND...` within its share of the time, unless the step is done. The word BUDGET
# stands for the options of a benchmark.
step()
{
    local share limit status=0 words=()
    name=$1 began=$SECONDS # interrupted() uses them, too
    shift
    if [ -e "done/$name" ]; then
        return
    fi
    share=$(share_of "$name")
    touch "tried/$name"
    if [ "$share" -lt 1 ]; then
        row "$name" "no time was left" 0
        failed=1
        return
    fi
    limit=$((share + 20)) # a benchmark ends by itself
    if [ "$1" != bench ] && [ "$limit" -lt $(((60 * minutes - SECONDS) / 3)) ]; then
        limit=$(((60 * minutes - SECONDS) / 3))
    fi
    for word in "$@"; do
        if [ "$word" = BUDGET ]; then
            words+=("--budget=$share" --resume)
        else
            words+=("$word")
        fi
    done
    timeout --kill-after=10 "$limit" "$cleave" "${icd[@]}" "${words[@]}" > "log/$name.txt" 2>&1 &
    running=$!
    wait "$running" || status=$?
    running=
    make_public
    local left_out=""
    if [ "$1" = bench ] && grep -q '"complete": false' "$name.json" 2> /dev/null; then
        left_out="$(grep -c '"late": true' "$name.json") entries had no time, see $name.md"
    fi
    if [ "$status" = 0 ] && [ -z "$left_out" ]; then
        row "$name" "done" $((SECONDS - began))
        touch "done/$name"
    elif [ "$status" = 0 ]; then
        row "$name" "in part: $left_out" $((SECONDS - began))
        missing=1
    elif [ "$status" = 124 ] || [ "$status" = 137 ]; then
        row "$name" "stopped at its time limit${left_out:+; its figures until then are saved}" $((SECONDS - began))
        failed=1
    else
        row "$name" "exit code $status, see log/$name.txt" $((SECONDS - began))
        failed=1
    fi
}

peers=()
if [ -e "$here/bench/peers/run.py" ] && [ -n "${CLEAVE_PEERS_ENV:-}" ]; then
    peers=("--peers=$here/bench/peers" "--peers-env=$peers_env")
fi
# bench_step WORKLOAD OPTION...
bench_step()
{
    step "bench-$1" bench "$1" BUDGET --patience=15 --no-cold "--json=bench-$1.json" "--markdown=bench-$1.md" \
        "--html=bench-$1.html" "${@:2}" "${peers[@]}"
}

step probe probe --check --save=probe.json
step selftest selftest --device=gpu --json=selftest.json
for workload in runtime paco blobs transformer arrays specfit; do
    bench_step "$workload"
done
step probe-bench probe --bench --save=probe-bench.json
bench_step offload --device=gpu
bench_step link
rm -rf "$CLEAVE_CACHE_DIR" tried
echo "results: $out"
if [ "$failed" = 1 ] || [ "$missing" = 1 ]; then
    echo "The same command measures what is missing (--minutes allows more time)."
fi
exit "$failed"
