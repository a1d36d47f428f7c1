#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a job whose transfers take as long as its kernels on a simulated card with memory of its own. The trace of the
job has to show that transfers and kernels overlap: the job takes at most 0.6 of the sum of their times. One of a few
attempts has to pass, because other work on the machine may delay the thread that begins each chunk.

usage: run_overlap.py PROGRAM LAYER [CARD]

PROGRAM is card_overlap. $CLEAVE_TEST_ICDS names the folder with pocl.icd.
"""
import collections
import json
import os
import subprocess
import sys
import tempfile

from card_kit import environment, need_layer

MOST, ATTEMPTS = 0.6, 6
BYTES, RATE = 1 << 21, 0.1e9  # bytes of an item; bytes per second in each direction


def run(program, env, trace):
    """Returns the time of the job, and the times of its transfers and its kernels, in milliseconds."""
    done = subprocess.run([program, trace], env=env, capture_output=True, text=True)
    if "needs a GPU" in done.stderr:
        need_layer(env)
    if done.returncode:
        sys.exit("card_overlap: exit code %d\n%s" % (done.returncode, done.stderr))
    with open(trace, encoding="utf-8") as file:
        bars = [e for e in json.load(file)["traceEvents"] if e["name"] in ("write", "read", "first_of")]
    took = collections.Counter()
    for e in bars:
        took["kernels" if e["name"] == "first_of" else "transfers"] += e["dur"] / 1e3
    whole = (max(e["ts"] + e["dur"] for e in bars) - min(e["ts"] for e in bars)) / 1e3
    print("transfers %.0f ms, kernels %.0f ms, both together %.0f ms: %.2f of the sum" %
          (took["transfers"], took["kernels"], whole, whole / sum(took.values())))
    return whole, took["transfers"], took["kernels"]


def main():
    program, layer = sys.argv[1:3]
    card = sys.argv[3] if len(sys.argv) > 3 else "rtx-3060"
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder, layer, card, CLEAVE_CARD_GBPS=str(RATE / 1e9),
                          CLEAVE_CARD_ITEM_NS=str(1e9 * BYTES / RATE), CLEAVE_CARD_LAUNCH_US="10")
        for _ in range(ATTEMPTS):
            whole, transfers, kernels = run(program, env, os.path.join(folder, "trace.json"))
            if abs(transfers / kernels - 1) > 0.1:
                sys.exit("transfers and kernels do not take equally long")
            if whole <= MOST * (transfers + kernels):
                return
    sys.exit("the job takes more than %.1f of the sum: transfers and kernels do not overlap" % MOST)


if __name__ == "__main__":
    main()
