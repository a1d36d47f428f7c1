#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what Cleave promises about texts, beside sentence-transformers, transformers, scikit-learn, pandas and
pyarrow, on models of random weights and random texts. Prints one line per promise: what was measured, and whether it
is kept. The exit code is 1 if one is not.

usage: PYTHONPATH=python CLEAVE_LIBRARY=build/lib/libcleave.so promises.py CLEAVE [--seed N] [--items LIST]
                                                                           [--texts N] [--rows N] [--table FILE]
       CLEAVE: the command; LIST: some of folders,mutations,files,tuned,families,search,rank,arguments,int8 [all];
       --texts: random texts per family [20000]; --rows: vectors to search [1000000]; --table: also as Markdown
"""
import argparse
import os
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import arguments  # noqa: E402
import files  # noqa: E402
import peers  # noqa: E402
import tuned  # noqa: E402
from common import Room  # noqa: E402

ITEMS = {"folders": lambda room, _: peers.check_folders(room), "mutations": lambda room, _: peers.check_mutations(room),
         "files": lambda room, _: files.check(room),
         "tuned": lambda room, _: tuned.check(room), "families": lambda room, a: peers.check_families(room, a.texts),
         "search": lambda room, a: arguments.check_search(room, a.rows),
         "rank": lambda room, _: arguments.check_rank(room),
         "arguments": lambda room, _: arguments.check_arguments(room),
         "int8": lambda room, _: arguments.check_int8(room)}


def rows_of(item, given):
    with tempfile.TemporaryDirectory() as folder:
        try:
            yield from ITEMS[item](Room(folder, given.cleave, given.seed), given)
        except Exception as error:  # the other items are still worth knowing
            traceback.print_exc()
            yield "the check runs to its end", "%s: %s" % (type(error).__name__, str(error)[:100]), False


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("cleave", type=os.path.abspath)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--items", default=",".join(ITEMS))
    parser.add_argument("--texts", type=int, default=20000)
    parser.add_argument("--rows", type=int, default=1000000)
    parser.add_argument("--table")
    given = parser.parse_args()
    print("seed %d" % given.seed)
    broken, lines = 0, ["| item | promise | measured | kept |", "| --- | --- | --- | --- |"]
    for item in given.items.split(","):
        for promise, measured, kept in rows_of(item, given):
            broken += not kept
            print("%-4s %-10s %-62s %s" % ("kept" if kept else "NOT", item, promise, measured), flush=True)
            lines.append("| %s | %s | %s | %s |" % (item, promise, measured.replace("|", "\\|"),
                                                    "yes" if kept else "**no**"))
    print("%d promises kept, %d not" % (len(lines) - 2 - broken, broken))
    if given.table:
        with open(given.table, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
