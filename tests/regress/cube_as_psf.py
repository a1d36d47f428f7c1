#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that a sequence of frames passed as the PSF is an error.

PSF may be several exposures [k,n,n], of which the command uses the median. Therefore a cube passed as PSF, or CUBE and
PSF in the wrong order, caused at most a warning, because the median of a cube has a star in its middle like a PSF;
the maps were meaningless.

usage: cube_as_psf.py CLEAVE"""
import kit

SIDE, FRAMES, N = 31, 6, 15


def blob(side, y, x):
    return [2.0 ** (-((i - y) ** 2 + (k - x) ** 2) / 6.0) for i in range(side) for k in range(side)]


star = blob(SIDE, SIDE // 2, SIDE // 2)
frames = [v + 0.01 * ((7 * i + 13 * t) % 11) for t in range(FRAMES) for i, v in enumerate(star)]
kit.write_npy("cube.npy", (FRAMES, SIDE, SIDE), frames)
kit.write_npy("other.npy", (3, SIDE + 2, SIDE + 2), blob(SIDE + 2, 16, 16) * 3)
kit.write_npy("channels.npy", (2, FRAMES, SIDE, SIDE), frames * 2)
kit.write_npy("angles.npy", (FRAMES,), [10.0 * t for t in range(FRAMES)], "<f8")
kit.write_npy("psf.npy", (N, N), blob(N, N // 2, N // 2))
kit.write_npy("psfs.npy", (3, N, N), blob(N, N // 2, N // 2) * 3)
kit.write_npy("wide.npy", (SIDE, SIDE), star)
kit.write_npy("each.npy", (2, SIDE, SIDE), star * 2)


def paco(cube, psf, code, part):
    kit.expect(code, part, "paco", cube, "angles.npy", psf, "-o", "maps", "--format", "npy", "--fwhm", "4")


for psf, shape in ("cube.npy", "[6,31,31]"), ("other.npy", "[3,33,33]"):
    paco("cube.npy", psf, 2, "PSF: %s has the shape %s, which looks like a sequence of frames (those of CUBE are "
         "31x31); it must be one off-axis image of the star, [n,n]" % (psf, shape))
    paco("channels.npy", psf, 2, "looks like a sequence")
kit.write_npy("three.npy", (3,), [0.0, 20.0, 40.0], "<f8")
kit.expect(2, "Is the order CUBE ANGLES PSF?", "paco", "psfs.npy", "three.npy", "cube.npy", "-o", "maps",
           "--radius", "2")
kit.same("maps", [name for name in kit.listing() if "maps" in name], [])
for psf in "psf.npy", "psfs.npy", "wide.npy":
    paco("cube.npy", psf, 0, None)
paco("channels.npy", "each.npy", 0, None)  # one PSF for each channel, of any size
kit.finish()
