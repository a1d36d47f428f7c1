#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Summarises a run of the tests: how many ran on each driver, which were skipped and why, and which resources were
missing.

usage: summary.py RESULTS                    prints the summary
       summary.py RESULTS --expect LIST RUN  the skips are those that LIST has for RUN, and no compiler of kernels
                                             warned; exit code 1 where that is not so
       summary.py RESULTS --waiting NAME     prints the tests that were skipped because the variable NAME is not set
       summary.py --self-test

RESULTS is what `ctest --output-junit RESULTS --test-output-size-passed 10000000` writes. A line of a test's output that
begins with SKIPPED says what the test left out and why, even if the rest of the test ran; a line that begins with
"device" names a device that it used. LIST has a line for each skip: the runs that it belongs to, the test, a colon and
the reason. RUN? in place of RUN means that this run may skip the test or run it.
"""
import collections
import os
import re
import sys
import tempfile
import xml.etree.ElementTree

SKIP = re.compile(r"^(?:\[ +\w+ +\] )?SKIPPED(?: \[\d+\] \S+)?: (.*)$", re.MULTILINE)
DEVICE = re.compile(r"^device[^\n:]*: ([^\n]*) \[(\w+)[^\n\]]*\](?![^\n]*, not used)", re.MULTILINE)
WARNED = re.compile(r"^\d+ warnings? generated\.", re.MULTILINE)  # by Clang, on standard error
DRIVERS = {"pocl": "PoCL", "mesa": "rusticl", "intel": "Intel's driver", "nvidia": "NVIDIA's driver",
           "amd": "AMD's driver", "oclgrind": "oclgrind", "reference": "no driver, by order"}

# devices: {(driver, device's name)}; skips: reasons; warned: a compiler of kernels warned
Test = collections.namedtuple("Test", "name ran failed devices skips warned")


def one_line(text):
    return " ".join(text.split())


def read(path):
    """Returns the tests that ran, in the order of the run, and how long the run took."""
    root = xml.etree.ElementTree.parse(path).getroot()
    tests = []
    for case in root.iter("testcase"):
        said = case.findtext("system-out") or ""
        skips = sorted({one_line(reason) for reason in SKIP.findall(said)})
        status = case.get("status")
        if status in ("disabled", "notrun") and not skips:
            skips = ["no reason was given"]
        devices = {(driver, name) for name, driver in DEVICE.findall(said)}
        ran = status not in ("disabled", "notrun")
        tests.append(Test(case.get("name"), ran, status == "fail", devices, skips,
                          bool(WARNED.search(said))))
    return tests


def count(number, what):
    return f"{number} {what}{'' if number == 1 else 's'}"


def drivers_of(tests):
    """Yields lines: a driver, and how many tests used one of its devices."""
    used = collections.Counter(device for test in tests if test.ran for device in test.devices)
    for (driver, name), number in used.most_common():
        yield f"  {count(number, 'test'):>9} on {DRIVERS.get(driver, driver)}: {name}"
    others = sum(test.ran and not test.devices for test in tests)
    yield f"  {count(others, 'test'):>9} without a device, or on the one that Cleave chooses"


def skips_of(tests):
    """Yields lines: a reason, and the tests that were skipped for it."""
    by_reason = {}
    for test in tests:
        for reason in test.skips:
            by_reason.setdefault(reason, []).append(test.name)
    for reason, names in by_reason.items():
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        yield f"  {reason}\n      {shown}"


def missing():
    """Yields lines: what the tests could have used but did not find."""
    promised = os.environ.get("CLEAVE_TEST_PLATFORMS", "").split(",")
    if "pocl" not in promised:
        yield "PoCL: not installed (Debian's package pocl-opencl-icd)"
    if "mesa" not in promised:
        yield "rusticl: not installed (Debian's package mesa-opencl-icd)"
    if "intel" not in promised:
        yield "Intel's CPU runtime: not installed; CLEAVE_TEST_INTEL=1 fetches it (800 MB)"
    if not os.environ.get("CLEAVE_MINILM_DIR"):
        yield "the model all-MiniLM-L6-v2: CLEAVE_TEST_MINILM=1 fetches it (84 MB)"
    if not os.environ.get("CLEAVE_SMOLLM2") or not os.environ.get("CLEAVE_VOCABULARIES"):
        yield "the model SmolLM2 and vocabularies of other models: CLEAVE_TEST_SMOLLM2=1 fetches them (170 MB)"
    if not os.environ.get("CLEAVE_REFERENCE_DIR"):
        yield ("third-party data: tests/data/third_party.txt lists them, and CLEAVE_REFERENCE_DIR names a folder that "
               "has them")


def summarise(tests):
    failed = [test.name for test in tests if test.failed]
    whole, part = sum(not test.ran for test in tests), sum(test.ran and bool(test.skips) for test in tests)
    lines = ["", f"{count(len(tests) - whole, 'test')} ran, {len(failed)} failed:", *drivers_of(tests)]
    if whole or part:
        lines += ["", f"Skipped: {count(whole, 'test')}, and parts of {count(part, 'test')}:", *skips_of(tests)]
    absent = list(missing())
    if absent:
        lines += ["", "Not here:", *(f"  {line}" for line in absent)]
    if failed:
        lines += ["", "Failed:", *(f"  {name}" for name in failed)]
    return "\n".join(lines)


def expected(path, run):
    """Returns the skips of LIST for a run as sets of "test: reason": those that must occur, and those that may
    occur."""
    wanted, allowed = set(), set()
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip() or line.startswith("#"):
                continue
            match = re.match(r"(\S+)\s+(\S+): (.+)$", line.strip())
            if not match:
                sys.exit(f"{path}:{number}: expected RUN[,RUN...] TEST: REASON")
            for name, skips in ((run, wanted), (run + "?", allowed)):
                if name in match[1].split(","):
                    skips.add(f"{match[2]}: {match[3]}")
    return wanted, allowed


def differences(tests, listed):
    wanted, allowed = listed
    seen = {f"{test.name}: {reason}" for test in tests for reason in test.skips}
    return ([f"skipped, and not in the list: {skip}" for skip in sorted(seen - wanted - allowed)] +
            [f"in the list, and not skipped any more: {skip}" for skip in sorted(wanted - seen)] +
            [f"a compiler warned of a kernel in this test: {test.name}" for test in tests if test.warned])


def waiting(tests, variable):
    return [test.name for test in tests if any("$" + variable in reason for reason in test.skips)]


RESULTS = """<testsuite>
<testcase name="a/whole" status="notrun"><system-out>SKIPPED: no driver</system-out></testcase>
<testcase name="a/part" status="run"><system-out>device 0: X [pocl, cpu]
device 1: Y [mesa, software], not used: broken
[ RUN ] x
SKIPPED: data: $SOME_DIR/x is not here
</system-out></testcase>
<testcase name="a/py" status="run"><system-out>SKIPPED [1] tests/t.py:3: no  pip</system-out></testcase>
<testcase name="a/bad" status="fail"><system-out>device: plain C [reference]</system-out></testcase>
<testcase name="a/silent" status="notrun"><system-out/></testcase>%s
</testsuite>"""
NOISY = """
<testcase name="a/noisy" status="run"><system-out>compiles
1 warning generated.
</system-out></testcase>"""
LIST = """# a comment
one,two a/whole: no driver
one a/part: data: $SOME_DIR/x is not here
one a/py: no pip
two a/gone: was skipped once
one a/silent: no reason was given
one? a/gone: no tun device
two? a/silent: no reason was given
"""


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        results, skips = os.path.join(folder, "r"), os.path.join(folder, "l")
        for path, text in ((results, RESULTS % NOISY), (skips, LIST)):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        noisy = differences(read(results), expected(skips, "one"))
        assert noisy == ["a compiler warned of a kernel in this test: a/noisy"], noisy
        with open(results, "w", encoding="utf-8") as file:
            file.write(RESULTS % "")
        tests = read(results)
        assert [test.devices for test in tests] == [set(), {("pocl", "X")}, set(), {("reference", "plain C")},
                                                    set()], tests
        assert [test.failed for test in tests] == [False, False, False, True, False], tests
        assert differences(tests, expected(skips, "one")) == []
        wrong = differences(tests, expected(skips, "two"))
        assert len(wrong) == 3 and wrong[2].endswith("a/gone: was skipped once"), wrong
        assert waiting(tests, "SOME_DIR") == ["a/part"]
        said = summarise(tests)
        assert "3 tests ran, 1 failed" in said and "1 test on PoCL: X" in said and "a/bad" in said, said
        assert "Skipped: 2 tests, and parts of 2 tests" in said, said
    print("summary: holds")
    return 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) not in (2, 4, 5):
        print(__doc__, file=sys.stderr)
        return 2
    tests = read(sys.argv[1])
    if len(sys.argv) == 2:
        print(summarise(tests))
    elif sys.argv[2] == "--waiting":
        print("\n".join(waiting(tests, sys.argv[3])))
    else:
        wrong = differences(tests, expected(sys.argv[3], sys.argv[4]))
        print("\n".join(wrong) or f"skipped is what {sys.argv[3]} says")
        return 1 if wrong else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
