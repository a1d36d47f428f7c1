#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that `cleave blobs` writes the same bytes for every batch, number of sub-devices and run.

    blobs_bits.py CLEAVE PLATFORM
"""
import os
import subprocess
import sys
import tempfile

import paco_kit as kit
import testdata

WAYS = [[], [], ["--batch", "1"], ["--batch", "2"], ["--batch", "4"], ["--batch", "8"],
        ["--sched", "dynamic", "--batch", "3"]]
SPLIT = [["--sub-devices", "2", "--batch", "2", "--sched", "dynamic"], ["--sub-devices", "2"]]
KINDS = [[], ["--dog", "--threshold", "7"], ["--threshold-sigma", "4.5", "--subpixel", "fit"]]


def main():
    command, platform = sys.argv[1:]
    movie = testdata.path_of("blobs/g_weak_u16.npy")
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        cache = os.path.join(work, "cache")
        chosen = kit.options_for(command, platform, cache)
        for kind in KINDS:
            first = None
            for way in WAYS + (SPLIT if platform == "pocl" else []):
                path = os.path.join(work, "spots.csv")
                subprocess.run([command, "blobs", movie, "-o", path, "-q", *chosen, *kind, *way],
                               check=True, env=kit.environment(CLEAVE_CACHE_DIR=cache))
                with open(path, "rb") as file:
                    got = file.read()
                first = first or got
                if got.count(b"\n") < 50 or got != first:
                    print("WRONG:", *kind, *way, got.count(b"\n"), "lines", flush=True)
                    failed = 1
            print(" ".join(kind) or "plain", "-", first.count(b"\n"), "lines, all the same")
        kit.keep_programs(cache)
    return failed


if __name__ == "__main__":
    sys.exit(main())
