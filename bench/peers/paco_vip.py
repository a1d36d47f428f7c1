#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures vip-hci's FastPACO, the program that observers use. `shift` is its default. `fixed` is the same without
sub-pixel PSFs; only PACOCalc has this option, not run(). The radius is 4, its default.

usage: paco_vip.py FOLDER OUT fixed|shift"""
import contextlib
import io
import os
import sys
import warnings

import numpy as np
import vip_hci
from vip_hci.invprob import paco

SAME_FORMULAS = False  # half the covariance, another shrinkage, truncated centres
RADIUS = 4


def name():
    return f"vip-hci {vip_hci.__version__}"


def can(case):
    return case["size"][0] == case["size"][1]  # other sizes raise IndexError


def load(folder):
    return [np.load(os.path.join(folder, f"{n}.npy")) for n in ("cube", "angles", "psf")]


def warm(data):
    """Does nothing, because there is nothing to tune."""


def compute(data, shifted):
    warnings.simplefilter("ignore")  # it divides by zero at the star
    cube, angles, psf = data
    side = cube.shape[1]
    with contextlib.redirect_stdout(io.StringIO()):
        search = paco.FastPACO(cube.astype(float), angles.astype(float), psf, fwhm=RADIUS,
                               pixscale=1)
        x, y = np.meshgrid(np.arange(side), np.arange(side))
        a, b = search.PACOCalc(np.column_stack((x.ravel(), y.ravel())),
                               use_subpixel_psf_astrometry=shifted, cpu=1)
    return a.reshape(side, side), b.reshape(side, side)


def main():
    folder, out, variant = sys.argv[1:]
    a, b = compute(load(folder), variant == "shift")
    for what, values in (("a", a), ("b", b), ("snr", b / np.sqrt(a))):
        np.save(os.path.join(out, f"{what}.npy"), values)


if __name__ == "__main__":
    main()
