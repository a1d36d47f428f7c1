#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the tracks of `cleave link` with trackpy's, and tests its options.

    blobs_tracks.py CLEAVE
"""
import csv
import os
import subprocess
import sys
import tempfile

from blobs_kit import WRONG, say
import testdata


def link(command, table, *options):
    done = subprocess.run([command, "link", table, "-o", "-", *options], capture_output=True,
                          text=True, check=False)
    return done, list(csv.DictReader(done.stdout.splitlines()))


def links(rows, column):
    tracks, pairs = {}, set()
    for row in sorted(rows, key=lambda r: int(r["frame"])):
        if row[column] in tracks:
            pairs.add((tracks[row[column]], (row["frame"], row["y"], row["x"])))
        tracks[row[column]] = (row["frame"], row["y"], row["x"])
    return pairs


def against_trackpy(command, folder):
    for name, search, memory in (("a_drift", "5", "2"), ("d_merge", "3", "1")):
        table = os.path.join(folder, name + "_link.csv")
        with open(table, newline="", encoding="ascii") as file:
            golden = list(csv.DictReader(file))
        done, rows = link(command, table, "--search", search, "--memory", memory, "--replace")
        ours, theirs = links(rows, "particle"), links(golden, "particle")
        f1 = 2 * len(ours & theirs) / (len(ours) + len(theirs))
        say(done.returncode == 0 and f1 >= 0.999, f"{name}: F1 of the links {f1:.4f}")
        truth = links(golden, "true_particle")
        score = 2 * len(ours & truth) / (len(ours) + len(truth))
        say(score >= 0.9, f"{name}: F1 against the truth {score:.4f}")
        say(done.stdout.splitlines()[0] == "frame,y,x,true_particle,particle",
            f"{name}: an old column is replaced where that is wanted")


def options(command, work):
    table = os.path.join(work, "spots.csv")
    with open(table, "w", encoding="ascii") as file:  # a grid that moves faster and faster
        file.write("frame,y,x\n" + "".join(f"{f},{10 * i},{10 * j + (0, 3, 7, 12)[f]}\n"
                                           for f in range(4) for i in range(5) for j in range(5)))
    for predict, tracks in (("none", 50), ("drift", 25), ("velocity", 25)):
        done, rows = link(command, table, "--search", "4", "--predict", predict)
        say(done.returncode == 0 and len({r["particle"] for r in rows}) == tracks, f"--predict {predict}")
    with open(table, "w", encoding="ascii") as file:
        file.write('frame,name,y,x,flags\n0,"a, b",5,5,0\n3,c,5,6.5,0\n0,d,50,50,2\n')
    with open(table, "rb") as file:
        piped = subprocess.run([command, "link", "-", "-o", "-", "--search", "2"], input=file.read(),
                               capture_output=True, check=False)
    say(piped.returncode == 0 and piped.stdout.decode() == link(
        command, table, "--search", "2")[0].stdout, "- is standard input")
    done, rows = link(command, table, "--search", "2", "--memory", "2", "--fill-gaps")
    say(done.returncode == 0 and [r["particle"] for r in rows] == ["0", "1", "0", "0", "0"],
        "gaps are bridged")
    say([(r["frame"], r["x"], r["flags"]) for r in rows][2:4] == [("1", "5.5", "16"), ("2", "6", "16")],
        "and filled")
    say(rows[0]["name"] == "a, b", "other columns stay")
    done, rows = link(command, table, "--search", "2", "--memory", "2", "--min-length", "2")
    say(len(rows) == 2, "short tracks are left out")
    for arguments in ([], ["--search", "0"], ["--search", "x"]):
        done, _ = link(command, table, *arguments)
        say(done.returncode == 2, f"wrong usage: {arguments}")
    for text, part in (("frame,y\n0,1\n", "no column"), ("frame,y,x\n0.5,1,1\n", "whole"),
                       ("frame,y,x\n0,1,nan\n", "x"), ("", "")):
        with open(table, "w", encoding="ascii") as file:
            file.write(text)
        done, _ = link(command, table, "--search", "1")
        say(done.returncode == 2 and part in done.stderr, f"bad table: {done.stderr.strip()}")


def main():
    command, folder = sys.argv[1], testdata.path_of("blobs")
    against_trackpy(command, folder)
    with tempfile.TemporaryDirectory() as work:
        options(command, work)
    return 1 if WRONG else 0


if __name__ == "__main__":
    sys.exit(main())
