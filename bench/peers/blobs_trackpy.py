#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures trackpy's locate, frame by frame, with diameter 7. It uses another algorithm for the same task: a band-pass
filter and iterated centroids.

usage: blobs_trackpy.py FOLDER OUT VARIANT"""
import os
import sys

import numpy as np
import trackpy

from truth import judge

SAME_FORMULAS = False


def name():
    return f"trackpy {trackpy.__version__}"


def can(case):
    return case["variant"] == 8


def load(folder):
    return np.load(os.path.join(folder, "movie.npy"))


def warm(movie):
    """Compiles its functions. This time is not counted."""
    compute(movie[:1], None)


def compute(movie, _):
    trackpy.quiet()
    return [trackpy.locate(frame, 7, minmass=500) for frame in movie]


def note(result, case):
    return judge([spots[["y", "x"]].to_numpy() for spots in result], case["folder"])


def main():
    folder, out, _ = sys.argv[1:]
    for frame, spots in enumerate(compute(load(folder), None)):
        spots["frame"] = frame
        spots.to_csv(os.path.join(out, "spots.csv"), mode="a", header=not frame, index=False)


if __name__ == "__main__":
    main()
