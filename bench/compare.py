#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares two builds of `cleave`: runs the same `cleave bench` with both, in turns, on the same device.

Each build has a cache of its own, and each turn begins with the other build. Times are from memory to memory. "Ratio"
is the ratio of the smallest times of all turns; "by turns" is the median of the ratios of the single turns. A
disturbance of the machine that lasts longer than a turn affects both times of that turn.

usage: compare.py [--turns N] [--limit PERCENT] [--keep DIR] BEFORE AFTER [-- ARGUMENTS OF `cleave bench`]
       compare.py build-0.1/bin/cleave build/bin/cleave -- paco --sizes 100x100x100 --device 0
With --keep, caches and times stay in DIR, and the next run with it adds turns to them.
The exit code is 1 if both of these ratios are above the limit [3 %].
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile


def measure(command, cache, arguments):
    """Returns {(case, party): smallest seconds} of one turn."""
    path = os.path.join(cache, "bench.json")
    subprocess.run([command, "bench", *arguments, "--no-files", "--no-cold", "--quiet", "--json", path], check=True,
                   stdout=subprocess.DEVNULL, env={**os.environ, "CLEAVE_CACHE_DIR": cache})
    with open(path, encoding="utf-8") as file:
        cases = json.load(file)["cases"]
    return {(case["name"], result["party"]): result["compute"]["minimum"]
            for case in cases for result in case["results"] if result.get("compute")}


def take_turns(options, folder):
    """Returns {case: {device: [seconds before, seconds after]}} of this run and of the earlier runs in the folder."""
    path = os.path.join(folder, "times.json")
    took = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            took = json.load(file)
    for turn in range(options.turns):
        for build in (0, 1) if turn % 2 else (1, 0):
            cache = os.path.join(folder, str(build))
            os.makedirs(cache, exist_ok=True)
            for (case, party), seconds in measure(options.builds[build], cache, options.arguments).items():
                took.setdefault(case, {}).setdefault(party, ([], []))[build].append(seconds)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(took, file)
    return took


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--limit", type=float, default=3)
    parser.add_argument("--keep")
    parser.add_argument("builds", nargs=2)
    parser.add_argument("arguments", nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        took = take_turns(options, options.keep or folder)
    print("| case | device | turns | before | after | ratio | by turns |\n| --- | --- | --: | --: | --: | --: | --: |")
    slower = False
    for case, parties in took.items():
        for party, (before, after) in parties.items():
            if not before or not after:
                continue  # one of the programs is too slow for this case
            ratio = min(after) / min(before)
            turns = statistics.median(b / a for a, b in zip(before, after))
            slower |= min(ratio, turns) > 1 + options.limit / 100
            print("| %s | %s | %d | %.4g ms | %.4g ms | %.3f | %.3f |" %
                  (case, party, len(after), min(before) * 1e3, min(after) * 1e3, ratio, turns))
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
