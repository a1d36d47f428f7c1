#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures trackpy's link, which computes the same assignment within the limits of its sub-networks.

usage: link_trackpy.py FOLDER OUT VARIANT"""
import os
import sys

import pandas
import trackpy

SAME_FORMULAS = False  # there are no maps to compare; note() compares the links


def name():
    return f"trackpy {trackpy.__version__}"


def can(_):
    return True


def load(folder):
    trackpy.quiet()
    return pandas.read_csv(os.path.join(folder, "spots.csv"))


def warm(spots):
    """Compiles its functions. This time is not counted."""
    compute(spots[spots["frame"] < 5], None)


def compute(spots, _):
    return trackpy.link(spots, search_range=5, memory=3)


def links(tracks):
    """Returns pairs of (frame, place), each with the next one of the same particle."""
    found = set()
    for _, track in tracks.sort_values("frame", kind="stable").groupby("particle"):
        places = list(zip(track["frame"], track["y"], track["x"]))
        found.update(zip(places, places[1:]))
    return found


def note(tracks, case):
    """Returns a sentence that says how well its links agree with ours."""
    mine, theirs = links(pandas.read_csv(case["ours"] + ".csv")), links(tracks)
    return f"links agree with ours: F1 {2 * len(mine & theirs) / (len(mine) + len(theirs)):.5f}"


def main():
    folder, out, _ = sys.argv[1:]
    compute(load(folder), None).to_csv(os.path.join(out, "tracks.csv"), index=False)


if __name__ == "__main__":
    main()
