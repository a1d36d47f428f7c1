#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures scikit-image's blob_log, frame by frame: the detector after which the parameters of `cleave blobs` are
named. It gives whole pixels, and uses one thread.

usage: blobs_skimage.py FOLDER OUT VARIANT"""
import os
import sys

import numpy as np
import skimage
from skimage.feature import blob_log

from truth import judge

SAME_FORMULAS = False  # other filter coefficients, no sub-pixel positions


def name():
    return f"scikit-image {skimage.__version__}"


def can(case):
    return case["variant"] == 8  # it has no batches: one run is enough


def load(folder):
    return np.load(os.path.join(folder, "movie.npy"))


def warm(movie):
    """Runs once before the measurement. This time is not counted."""
    compute(movie[:1], None)


def compute(movie, _):
    return [blob_log(frame, min_sigma=1, max_sigma=3, num_sigma=5, threshold=None, threshold_rel=0.2)
            for frame in movie]


def note(result, case):
    return judge([spots[:, :2] for spots in result], case["folder"])


def main():
    folder, out, _ = sys.argv[1:]
    with open(os.path.join(out, "spots.csv"), "w", encoding="ascii") as file:
        file.write("frame,y,x,sigma\n")
        for frame, spots in enumerate(compute(load(folder), None)):
            for y, x, sigma in spots:
                file.write(f"{frame},{y},{x},{sigma}\n")


if __name__ == "__main__":
    main()
