#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cleave specfit` on spectra that specutils and astropy write.

usage: readers_specutils.py CLEAVE [SEED]
One star, made by the tests' own formulas, is written as specutils writes tables and images of one spectrum, and as
astropy writes ECSV, IPAC, CSV and FITS tables. All have to give the velocity of a plain text file."""
import csv
import os
import subprocess
import sys
import tempfile

import astropy.units as u
import numpy as np
from astropy.nddata import StdDevUncertainty
from astropy.table import QTable, Table
from astropy.wcs import WCS
from specutils import Spectrum

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "tests", "cli"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "tests", "common"))
import specfit_made as made

Q, VELOCITY, SIGNAL = [np.log10(5500.0), 3.8, -0.4, 0.15], 35.0, 40.0
FLUX = u.erg / u.s / u.cm ** 2 / u.AA


def write_all(folder, lines, seed):
    """{path: options}"""
    at = lambda name: os.path.join(folder, name)
    linear = np.arange(4210.0, 5890.0, 0.8)
    flux, error = (np.array(x) for x in made.star(list(linear), lines, VELOCITY, Q, SIGNAL, seed))
    np.savetxt(at("plain.txt"), np.c_[linear, flux, error], fmt="%.10g")
    files = {at("plain.txt"): []}
    for unit in (u.AA, u.nm, u.micron):
        star = Spectrum(flux=flux * 1e-16 * FLUX, spectral_axis=(linear * u.AA).to(unit),
                        uncertainty=StdDevUncertainty(error * 1e-16 * FLUX))
        files[at(f"tabular-{unit}.fits")] = []
        star.write(at(f"tabular-{unit}.fits"), format="tabular-fits")
    files[at("wcs1d.fits")] = []
    axis = WCS({"CTYPE1": "WAVE", "CUNIT1": "Angstrom", "CRVAL1": linear[0], "CRPIX1": 1.0, "CDELT1": 0.8})
    star = Spectrum(flux=flux * 1e-16 * FLUX, wcs=axis, uncertainty=StdDevUncertainty(error * 1e-16 * FLUX))
    star.write(at("wcs1d.fits"), format="wcs1d-fits")
    table = QTable({"wavelength": linear / 10 * u.nm, "flux": flux * FLUX, "error": error * FLUX})
    for name, form in (("table.ecsv", "ascii.ecsv"), ("table.ipac", "ascii.ipac"), ("table.fits", "fits")):
        table.write(at(name), format=form)
        files[at(name)] = []
    Table({"wave": linear, "flux": flux, "ivar": error ** -2.0}).write(at("table.csv"), format="ascii.csv")
    files[at("table.csv")] = []
    return files


def main():
    cleave, seed = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        lines = made.Lines(4150, 5950, 90, 5)
        library, out = os.path.join(folder, "library"), os.path.join(folder, "out.csv")
        made.write_library(library, {"one": (4100.0, 6000.0, 4000, lines)})
        first = None
        for path, options in write_all(folder, lines, seed).items():
            done = subprocess.run([cleave, "specfit", path, "--library", library, "-o", out, "-q", "--wavelengths",
                                   "vacuum", *options], capture_output=True, text=True)
            name = os.path.basename(path)
            if done.returncode:
                wrong.append(f"{name}: {done.stderr}")
                continue
            with open(out, encoding="ascii") as file:
                row, = csv.DictReader(file)
            velocity, error = float(row["VRAD"]), float(row["VRAD_ERR"])
            first = first or (velocity, error, row["NPIX_TOT"])
            off = abs(velocity - first[0]) / first[1]
            print(f"{name}: within {off:.4f} sigma of the text file, {row['NPIX_TOT']} pixels")
            if off > 0.02 or row["NPIX_TOT"] != first[2] or abs(error / first[1] - 1) > 0.01:
                wrong.append(f"{name}: {velocity} +- {error}, {first} expected")
        if abs(first[0] - VELOCITY) > 4 * first[1]:
            wrong.append(f"{first}, {VELOCITY} expected")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
