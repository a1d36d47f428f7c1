#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds with counters, runs the tests, and prints which lines and branches ran, per room. Exit code 1 below the bars,
# which coverage.py holds.
#
#   tests/coverage/run.sh            every test but those of packages, documents and benchmarks, with long sweeps:
#                                    40 values of each kind for each command line (CLEAVE_TEST_SWEEP)
#   tests/coverage/run.sh REGEX      tests whose name fits
#
# The tests' variables are those of CONTRIBUTING.md; drivers that are not here are not used, which counts. What ran
# before in the same folder, build-coverage, counts too: remove the folder to begin anew. A failing test is told and
# does not end the run, since counters make some too slow for their time.
set -euo pipefail
cd "$(dirname "$0")/../.."
tests/coverage/coverage.py --self-test
cmake --preset coverage > /dev/null
cmake --build build-coverage > build-coverage/log || { tail -n 30 build-coverage/log; exit 1; }
choice=(--label-regex '^(unit|kernels|io|fuzz|platforms|faults|cards|cli|regress|python|examples)$')
if [ $# -gt 0 ]; then
    choice=(--tests-regex "$1")
else
    export CLEAVE_TEST_SWEEP=${CLEAVE_TEST_SWEEP:-40}
fi
ctest --test-dir build-coverage --parallel 2 --no-tests=error "${choice[@]}" | grep -v ' Passed ' ||
    echo "Some tests failed; what they ran is counted all the same."
damaged=$(grep -ho 'libgcov profiling error:[^:]*' build-coverage/Testing/Temporary/LastTest.log | sort -u || true)
if [ -n "$damaged" ]; then
    echo "A process was ended while it wrote these counters; what ran later is not in them:"
    echo "${damaged//libgcov profiling error:/  }"
fi
tests/coverage/coverage.py build-coverage
