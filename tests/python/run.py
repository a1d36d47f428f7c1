# SPDX-License-Identifier: Apache-2.0
"""Runs a test of the Python package under CTest: `run.py SCRIPT MODULE...`. Exit code 77, with the
reason, when a module that it needs is not installed, or when every test in it was skipped."""
import importlib.util
import os
import runpy
import sys
import tempfile

SKIP = 77


def skip(why):
    print("SKIPPED: " + why)
    sys.exit(SKIP)


def take_platforms():
    """Returns the drivers that the tests promise to run on, without variables that a user may have set."""
    for name in ("CLEAVE_DEVICE", "CLEAVE_MODE", "CLEAVE_MEM_LIMIT", "CLEAVE_LOG", "CLEAVE_SCHED"):
        os.environ.pop(name, None)
    if "CLEAVE_TEST_ICDS" in os.environ:
        os.environ["OCL_ICD_VENDORS"] = os.environ["CLEAVE_TEST_ICDS"]
        os.environ["RUSTICL_ENABLE"] = "llvmpipe"


class Reasons:
    """Counts the tests that ran, and records why others did not."""

    def __init__(self):
        self.ran, self.reasons = 0, []

    def pytest_runtest_logreport(self, report):
        if report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            self.reasons.append(reason.removeprefix("Skipped: "))
        elif report.when == "call":
            self.ran += 1


def run_pytest(script):
    import pytest
    reasons = Reasons()
    code = pytest.main(["-q", "-p", "no:cacheprovider", "-rs", script], plugins=[reasons])
    if code == 0 and not reasons.ran:
        skip(reasons.reasons[0] if reasons.reasons else "no test in " + script)
    return int(code)


def main():
    script, *modules = sys.argv[1:]
    for module in modules:
        if importlib.util.find_spec(module) is None:
            skip(f"no Python module {module}")
    take_platforms()
    if os.path.basename(script).startswith("test_"):
        return run_pytest(script)
    with tempfile.TemporaryDirectory() as folder:  # examples may leave files
        os.chdir(folder)
        sys.argv = [script]
        try:
            runpy.run_path(script, run_name="__main__")
        finally:
            os.chdir(os.path.dirname(script))
    return 0


if __name__ == "__main__":
    sys.exit(main())
