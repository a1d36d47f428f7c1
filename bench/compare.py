#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two builds of `cleave` side by side: the same `cleave bench` of both, in turns, on the same device.

Each build has a cache of its own, and each turn begins with the other build. Times are from memory to memory. The
ratio is that of the smallest times of all turns, "by turns" the median of each turn's own ratio: what disturbs the
machine for longer than a turn is in both of a turn's times.

usage: compare.py [--turns N] [--limit PERCENT] BEFORE AFTER [-- ARGUMENTS OF `cleave bench`]
       compare.py build-0.1/bin/cleave build/bin/cleave -- paco --sizes 100x100x100 --device 0
The exit code is 1 when a ratio is above the limit [3 %] both ways.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile


def measure(command, cache, arguments):
    """{(case, party): smallest seconds} of one turn."""
    path = os.path.join(cache, "bench.json")
    subprocess.run([command, "bench", *arguments, "--no-files", "--no-cold", "--quiet", "--json", path], check=True,
                   stdout=subprocess.DEVNULL, env={**os.environ, "CLEAVE_CACHE_DIR": cache})
    with open(path, encoding="utf-8") as file:
        cases = json.load(file)["cases"]
    return {(case["name"], result["party"]): result["compute"]["minimum"]
            for case in cases for result in case["results"] if result.get("compute")}


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--limit", type=float, default=3)
    parser.add_argument("builds", nargs=2)
    parser.add_argument("arguments", nargs="*")
    options = parser.parse_args()
    took = {}
    with tempfile.TemporaryDirectory() as caches:
        for turn in range(options.turns):
            for build in (0, 1) if turn % 2 else (1, 0):
                cache = os.path.join(caches, str(build))
                os.makedirs(cache, exist_ok=True)
                for what, seconds in measure(options.builds[build], cache, options.arguments).items():
                    took.setdefault(what, ([], []))[build].append(seconds)
    print("| case | device | before | after | ratio | by turns |\n| --- | --- | --: | --: | --: | --: |")
    slower = False
    for (case, party), (before, after) in took.items():
        if not before or len(before) != len(after):
            print("| %s | %s | not in every turn | | | |" % (case, party))
            continue
        ratio = min(after) / min(before)
        turns = statistics.median(b / a for a, b in zip(before, after))
        slower |= min(ratio, turns) > 1 + options.limit / 100
        print("| %s | %s | %.4g ms | %.4g ms | %.3f | %.3f |" %
              (case, party, min(before) * 1e3, min(after) * 1e3, ratio, turns))
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
