#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans every kind of job on a simulated card whose buffers have no memory. card_memory sets the memory of the card to
those of cards of 4 to 24 GB in turn, and checks that the largest chunks fit.

usage: run_memory.py PROGRAM LAYER [-v]

PROGRAM is card_memory. $CLEAVE_TEST_ICDS names the folder with pocl.icd.
"""
import subprocess
import sys
import tempfile

from card_kit import environment, need_layer


def main():
    program, layer, *more = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder, layer, "h100", CLEAVE_CARD_HOLLOW="1")
        done = subprocess.run([program, *more], env=env, capture_output=True, text=True)
        if "needs a GPU" in done.stderr:
            need_layer(env)
    print(done.stdout, end="")
    sys.exit(done.stderr if done.returncode else 0)


if __name__ == "__main__":
    main()
