#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that options override environment variables.

Formerly `CLEAVE_MODE=gpu cleave blobs ... --mode cpu` was refused on a machine without a GPU: making a context ran the
probe, which obeyed the variable. And a value that means "automatic" counted as "not given", so that `--mode auto` and
`--sched adaptive` could not undo a variable.

usage: options_win.py CLEAVE"""
import os

import kit

BLOBS = ["blobs", kit.movie(), "-o", "spots.csv", "--report", "report.json"]


def run(*options, **variables):
    """Returns the report of a run that must succeed."""
    if os.path.exists("report.json"):
        os.remove("report.json")
    done = kit.expect(0, None, *BLOBS, *options, environment=kit.without_drivers(**variables))
    return (kit.report("report.json") if done.returncode == 0 else {}), done


def mode(*options, **variables):
    return run(*options, **variables)[0].get("machine", {}).get("mode")


def schedule(*options, **variables):
    return run(*options, **variables)[0].get("jobs", [{}])[0].get("schedule")


def orders():
    kit.expect(3, "CLEAVE_MODE", *BLOBS, environment=kit.without_drivers(CLEAVE_MODE="gpu"))
    kit.expect(3, "CLEAVE_DEVICE", *BLOBS, environment=kit.without_drivers(CLEAVE_DEVICE="7"))
    for option in "reference", "auto":
        kit.same("CLEAVE_MODE=gpu --mode " + option, mode("--mode", option, CLEAVE_MODE="gpu"),
                 "reference")
        kit.same("CLEAVE_MODE=fast --mode " + option, mode("--mode", option, CLEAVE_MODE="fast"),
                 "reference")
    kit.same("CLEAVE_DEVICE=7 --mode reference", mode("--mode", "reference", CLEAVE_DEVICE="7"),
             "reference")
    kit.expect(3, "gpu", *BLOBS, "--mode", "gpu",
               environment=kit.without_drivers(CLEAVE_MODE="reference"))
    kit.expect(3, "\"5\"", *BLOBS, "--device", "5",
               environment=kit.without_drivers(CLEAVE_DEVICE="6"))
    for option, printed in ("auto", b"cpu\n"), ("reference", b"reference\n"):
        done = kit.expect(0, "", "probe", "--print-mode", "--mode", option,
                          environment=kit.without_drivers(CLEAVE_MODE="gpu"))
        kit.same("probe --mode " + option, done.stdout, printed)
    kit.expect(3, "\"5\"", "probe", "--list", "--device", "5",
               environment=kit.without_drivers(CLEAVE_DEVICE="6"))
    kit.expect(3, "\"5\"", "selftest", "--device", "5",
               environment=kit.without_drivers(CLEAVE_DEVICE="6"))
    # the selftest runs on devices, so the mode of other commands does not matter
    kit.expect(0, None, "selftest", environment=kit.without_drivers(CLEAVE_MODE="gpu"))


def others():
    for variable in "static", "no such":
        kit.same("CLEAVE_SCHED --sched adaptive",
                 schedule("--sched", "adaptive", CLEAVE_SCHED=variable), "adaptive")
        kit.same("CLEAVE_SCHED --sched hguided",
                 schedule("--sched", "hguided", CLEAVE_SCHED=variable), "hguided")
    kit.same("CLEAVE_SCHED alone", schedule(CLEAVE_SCHED="dynamic"), "dynamic")
    run("--mem-limit", "50%", CLEAVE_MEM_LIMIT="plenty")
    run("--trace", "mine.json", CLEAVE_TRACE="other.json")
    kit.same("traces", (os.path.exists("mine.json"), os.path.exists("other.json")), (True, False))
    run(CLEAVE_TRACE="other.json")
    kit.same("the variable's trace", os.path.exists("other.json"), True)
    run("--trace", "mine.json", CLEAVE_TRACE="nowhere/other.json")

    kit.same("-q above CLEAVE_LOG", run("-q", CLEAVE_LOG="debug")[1].stderr, b"")
    run("-q", CLEAVE_LOG="no level")
    verbose = run("-v", CLEAVE_LOG="none")[1].stderr
    kit.same("-v above CLEAVE_LOG", b"mode reference" in verbose, True)


orders()
others()
kit.finish()
