#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pyclesperanto: OpenCL blocks put together to the same LoG of five sigmas, frame by frame. It gives a
picture of maxima in each scale; the strongest scale is chosen here.

usage: blobs_clesperanto.py FOLDER OUT VARIANT"""
import os
import sys

import numpy as np
import pyclesperanto as cle

SAME_FORMULAS = False  # borders clamp, maxima within a scale, no sub-pixel places
SIGMAS = np.linspace(1, 3, 5)


def name():
    return f"pyclesperanto {cle.__version__}"


def can(case):
    return case["variant"] == 8


def load(folder):
    return np.load(os.path.join(folder, "movie.npy"))


def one_frame(frame):
    image = cle.push(frame.astype(np.float32))
    best = None
    for sigma in SIGMAS:
        blurred = cle.gaussian_blur(image, sigma_x=float(sigma), sigma_y=float(sigma))
        response = cle.multiply_image_and_scalar(cle.laplace(blurred), scalar=float(sigma ** 2))
        best = response if best is None else cle.maximum_images(best, response)
    values = cle.pull(best)
    tops = cle.pull(cle.detect_maxima(best, radius_x=1, radius_y=1, radius_z=0))
    return np.argwhere((tops > 0) & (values > 0.2 * values.max()))


def warm(movie):
    """Compiles what it compiles. Not counted."""
    compute(movie[:1], None)


def compute(movie, _):
    return [one_frame(frame) for frame in movie]


def main():
    folder, out, _ = sys.argv[1:]
    with open(os.path.join(out, "spots.csv"), "w", encoding="ascii") as file:
        file.write("frame,y,x\n")
        for frame, spots in enumerate(compute(load(folder), None)):
            for y, x in spots:
                file.write(f"{frame},{y},{x}\n")


if __name__ == "__main__":
    main()
