# SPDX-License-Identifier: Apache-2.0
"""Compares the spots of a movie with the true positions of its particles, in truth.csv beside movie.npy."""
import os

import numpy as np


def judge(frames, folder, near=2.0):
    """Judges `frames`, the positions (y, x) of the spots of every frame. Each particle takes the nearest spot within
    `near`."""
    truth = np.loadtxt(os.path.join(folder, "truth.csv"), delimiter=",", skiprows=1, ndmin=2)
    right = particles = spots = 0
    squares = 0.0
    for number, found in enumerate(frames):
        there = truth[truth[:, 0] == number, 1:]
        found = np.asarray(found, dtype=float).reshape(-1, 2)
        particles, spots = particles + len(there), spots + len(found)
        if len(there) and len(found):
            gaps = ((there[:, None] - found[None]) ** 2).sum(axis=2)
            nearest = gaps.min(axis=1)
            right += int((nearest <= near * near).sum())
            squares += float(nearest[nearest <= near * near].sum())
    return (f"recall {right / max(particles, 1):.4f}, {spots} spots for {particles}, "
            f"rms {np.sqrt(squares / max(right, 1)):.3f} px")
