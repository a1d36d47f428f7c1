# SPDX-License-Identifier: Apache-2.0
"""Injects a planet into a synthetic sequence of rotating frames and finds it again by PACO."""
import numpy as np

import cleave

FRAMES, SIDE, ROW, COLUMN = 30, 48, 14, 30


def star(y, x):
    return np.exp(-(y**2 + x**2) / (2 * 1.486**2))  # FWHM 3.5 pixels


angles = 2.0 * np.arange(FRAMES)
cube = 10 + np.random.default_rng(1).uniform(-0.5, 0.5, (FRAMES, SIDE, SIDE))
y, x = np.mgrid[:SIDE, :SIDE] - SIDE // 2
dy, dx = ROW - SIDE // 2, COLUMN - SIDE // 2
for frame, turn in zip(cube, np.radians(angles)):
    frame += 0.4 * star(y - dy * np.cos(turn) + dx * np.sin(turn),
                        x - dx * np.cos(turn) - dy * np.sin(turn))

result = cleave.paco(cube, angles, star(*np.mgrid[-5:6, -5:6]), progress=True)
for found in result.detections:
    print(f"row {found['y']}, column {found['x']}: S/N {found['snr']:.1f}, "
          f"flux {found['flux']:.2f} +- {found['sigma']:.2f}")
assert (result.detections[0]["y"], result.detections[0]["x"]) == (ROW, COLUMN)
