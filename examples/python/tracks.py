# SPDX-License-Identifier: Apache-2.0
"""Finds the spots of a movie and links them into tracks."""
import numpy as np

import cleave

FRAMES, SIDE, PARTICLES = 20, 128, 12
random = np.random.default_rng(4)
grid = np.arange(8, SIDE - 8, 28.0)
start = np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 2)[:PARTICLES] + 6
walk = np.cumsum(random.normal(0, 0.6, (FRAMES, PARTICLES, 2)), axis=0)
y, x = np.mgrid[:SIDE, :SIDE]
movie = random.poisson(20, (FRAMES, SIDE, SIDE)).astype(float)
for frame, places in zip(movie, start + walk):
    for row, column in places:
        frame += 200 * np.exp(-((y - row)**2 + (x - column)**2) / (2 * 1.8**2))

spots = cleave.blobs(movie.astype(np.uint16), threshold_sigma=6, subpixel="fit")
particle = cleave.link(spots, search_range=5, memory=1, min_length=FRAMES // 2)
print(f"{len(spots)} spots, {particle.max() + 1} tracks")
for k in range(3):
    track = np.flatnonzero(particle == k)
    rows, columns = np.asarray(spots["y"])[track], np.asarray(spots["x"])[track]
    print(f"track {k}: {len(track)} frames, moved {np.hypot(np.ptp(rows), np.ptp(columns)):.1f} pixels")
assert particle.max() + 1 == PARTICLES
