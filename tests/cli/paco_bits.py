#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that `cleave paco` writes the same bytes however a device splits the work: batches, schedulers, sub-devices,
memory limits, and one run after another.

usage: paco_bits.py CLEAVE PLATFORM    PLATFORM: pocl, intel or mesa
"""
import json
import os
import subprocess
import sys
import tempfile

import paco_kit as kit

MAPS = ("a", "b", "snr", "flux", "sigma")
WAYS = [
    [],
    ["--batch", "1"], ["--batch", "7"], ["--batch", "auto"],
    ["--sched", "static"], ["--sched", "dynamic"], ["--sched", "hguided"], ["--sched", "adaptive"],
    ["--mem-limit", "256M"], ["--mem-limit", "6M"],
]
SUB_DEVICES = [["--sub-devices", "1"], ["--sub-devices", "2"],
               ["--sub-devices", "2", "--sched", "static"],
               ["--sub-devices", "2", "--sched", "dynamic"]]


def run(command, options, files, out, cache):
    result = subprocess.run([command, "paco", *files, "-o", out, "--format", "npy", "--radius", "2", *kit.AS_IT_IS,
                             "-q", *options], env=kit.environment(CLEAVE_CACHE_DIR=cache),
                            capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(f"{' '.join(options)}: exit code {result.returncode}: {result.stderr.strip()}")
    maps = {}
    for name in MAPS:
        with open(os.path.join(out, f"{name}.npy"), "rb") as file:
            maps[name] = file.read()
    with open(os.path.join(out, "report.json"), encoding="utf-8") as file:
        report = json.load(file)
    return maps, report


def chunks_of(report):
    return sum(share["chunks"] for share in report["jobs"][0]["shares"])


def workers_of(report):
    return sum(share["chunks"] > 0 for share in report["jobs"][0]["shares"])


def main():
    command, platform = sys.argv[1:]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        cache = os.path.join(folder, "cache")
        chosen = kit.options_for(command, platform, cache)
        files = kit.Sequence(frames=10, height=57, width=70).write(folder)
        ways = WAYS + (SUB_DEVICES if platform == "pocl" else [])
        for mode in ("fixed", "shift"):
            first = None
            for way in ways:
                options = [*chosen, "--psf-mode", mode, *way]
                maps, report = run(command, options, files, os.path.join(folder, "out"), cache)
                first = first or maps
                wrong = [name for name in MAPS if maps[name] != first[name]]
                chunks, workers = chunks_of(report), workers_of(report)
                if way[:2] == ["--batch", "1"] and chunks < 40:
                    wrong.append(f"{chunks} chunks in place of one a row")
                if way == ["--mem-limit", "6M"] and chunks < 2:
                    wrong.append("the memory limit split nothing")
                if way[:3] == ["--sub-devices", "2", "--sched"] and workers != 2:
                    wrong.append(f"{workers} sub-devices worked")
                print(f"{mode} {' '.join(way) or 'plain'}: {chunks} chunks, {workers} workers"
                      + (f"; WRONG: {', '.join(wrong)}" if wrong else ""), flush=True)
                failed |= bool(wrong)
        kit.keep_programs(cache)
    return failed


if __name__ == "__main__":
    sys.exit(main())
