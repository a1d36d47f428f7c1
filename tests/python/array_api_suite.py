#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs array-api-tests, which checks the Python array API standard, on cleave.array_api. Run it by hand, since it takes
minutes.

usage: CLEAVE_LIBRARY=... PYTHONPATH=python array_api_suite.py [ARGUMENT OF PYTEST...]

Needs the suite (commit 55fcc60, MIT) in $CLEAVE_REFERENCE_DIR/arrays/array-api-tests, and the Python packages
hypothesis, ndindex, pytest and pytest-json-report. array_api_skips.txt lists what does not pass, with reasons.
"""
import os
import shutil
import subprocess
import sys
import tempfile

SKIPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "array_api_skips.txt")


def main():
    source = os.path.join(os.environ.get("CLEAVE_REFERENCE_DIR", ""), "arrays", "array-api-tests")
    if not os.path.isdir(source):
        sys.exit(f"array_api_suite: there is no {source}: set CLEAVE_REFERENCE_DIR")
    with tempfile.TemporaryDirectory() as folder:  # the suite writes files beside its tests
        suite = shutil.copytree(source, os.path.join(folder, "suite"))
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--max-examples=5", "--disable-deadline",
             "--tb=short", f"--xfails-file={SKIPS}", "array_api_tests", *sys.argv[1:]], cwd=suite, check=False,
            env={**os.environ, "ARRAY_API_TESTS_MODULE": "cleave.array_api"})
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
