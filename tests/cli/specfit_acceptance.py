#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures whether `cleave specfit` keeps its promises, on synthetic stars with a seed that you may choose.

usage: specfit_acceptance.py CLEAVE [STARS [SEED]]
STARS: number of stars of each kind (12); use hundreds for a long test. Every figure is printed. Pulls of velocity and
parameters, from text, SDSS's tables and log-lambda images; the same with 1 to 5 cosmic rays in each spectrum; flux in
units from 1e-25 to 1e+25; devices against plain C; errors of 1, 3 and 12 exposures."""
import csv
import math
import os
import random
import subprocess
import sys
import tempfile

import specfit_made as made
import specfit_readers as readers

COLUMNS = ["VRAD", "TEFF", "LOGG", "FEH", "ALPHAFE"]
FIRST, LAST, PIXELS = 4200.0, 5900.0, 1500
WRONG = []


def expect(what, condition):
    if not condition:
        WRONG.append(what)


class Stars:
    """Spectra of stars inside the library's range, S/N 30 to 90."""

    def __init__(self, lines, count, seed):
        dice = random.Random(seed)
        self.wave, self.stars = made.grid(FIRST, LAST, PIXELS), []
        for i in range(count):
            truth = {"VRAD": dice.uniform(-300, 300), "TEFF": dice.uniform(4500, 6500), "LOGG": dice.uniform(2.6, 4.4),
                     "FEH": dice.uniform(-1.4, 0), "ALPHAFE": dice.uniform(0.1, 0.3)}
            q = [math.log10(truth["TEFF"]), truth["LOGG"], truth["FEH"], truth["ALPHAFE"]]
            flux, error = made.star(self.wave, lines, truth["VRAD"], q, dice.uniform(30, 90), seed * 1000 + i)
            self.stars.append((truth, flux, error))


def write_text(path, wave, flux, error):
    readers.write_text(path, "", wave, flux, error)


def write_sdss(path, wave, flux, error):
    readers.save(path, readers.empty(), readers.columns("COADD", {
        "flux": flux, "loglam": [math.log10(w) for w in wave], "ivar": [e ** -2 for e in error],
        "and_mask": [0] * len(wave)}))


def write_image(path, wave, flux, error):
    low = math.log10(wave[0])
    step = (math.log10(wave[-1]) - low) / (len(wave) - 1)
    readers.save(path, readers.image([("CRVAL1", low), ("CRPIX1", 1.0), ("CD1_1", step), ("DC-FLAG", 1)], flux),
                 readers.image([], error, "ERR"))


class Tool:
    def __init__(self, cleave, folder, library):
        self.cleave, self.folder, self.library = cleave, folder, library

    def fit(self, files, *options):
        listing, out = os.path.join(self.folder, "list"), os.path.join(self.folder, "out.csv")
        with open(listing, "w", encoding="ascii") as file:
            file.write("\n".join(files) + "\n")
        done = subprocess.run([self.cleave, "specfit", "@" + listing, "--library", self.library, "-o", out, "-q",
                               "--wavelengths", "vacuum", *options], capture_output=True, text=True, timeout=1800)
        if done.returncode:
            sys.exit(f"exit code {done.returncode}\n{done.stderr}")
        with open(out, encoding="ascii") as file:
            return list(csv.DictReader(file))

    def write(self, kind, writer, wave, spectra):
        files = []
        for i, (flux, error) in enumerate(spectra):
            files.append(os.path.join(self.folder, f"{kind}-{i:04}.dat"))
            writer(files[-1], wave, flux, error)
        return files


def pulls(what, stars, rows):
    """Returns mean and spread of (value - truth) / error, and chi-square per pixel."""
    n, told = len(rows), []
    for column in COLUMNS:
        x = [(float(r[column]) - s[0][column]) / float(r[column + "_ERR"]) for s, r in zip(stars.stars, rows)]
        mean = sum(x) / n
        spread = math.sqrt(sum((v - mean) ** 2 for v in x) / (n - 1))
        told.append(f"{column} {mean:+.2f} +- {spread:.2f}")
        expect(f"{what}: pulls of {column}: mean {mean}", abs(mean) < 4 / math.sqrt(n))
        expect(f"{what}: pulls of {column}: spread {spread}", spread < max(1.1, 1 + 3.5 / math.sqrt(2 * n)) and
               spread > 1 - 3.5 / math.sqrt(2 * n))
    chi = [float(r["CHISQ_TOT"]) / float(r["NPIX_TOT"]) for r in rows]
    print(f"{what}: pulls {', '.join(told)}; chi2/n {sum(chi) / n:.3f}")
    silent = [r["FILE"] for r, c in zip(rows, chi) if c > 3 and not int(r["RVS_WARN"]) & 128]
    expect(f"{what}: chi2/n above 3 without a flag: {silent}", not silent)


def with_cosmics(stars, seed):
    dice = random.Random(seed)
    for _, flux, error in stars.stars:
        flux = list(flux)
        for _ in range(dice.randint(1, 5)):
            k = dice.randrange(len(flux))
            flux[k] += 200 * error[k]
        yield flux, error


def close(what, one, two, columns, allowed):
    """Returns the largest relative difference."""
    worst = max(abs(float(a[c]) - float(b[c])) / max(abs(float(b[c])), 1e-3) for a, b in zip(one, two) for c in columns)
    print(f"{what}: within {worst:.1e}")
    expect(f"{what}: differ by {worst}", worst <= allowed)


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 12
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 7
    lines = made.Lines(FIRST - 30, LAST + 30, 110, 2)
    stars = Stars(lines, count, seed)
    plain = [(flux, error) for _, flux, error in stars.stars]
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "library")
        made.write_library(library, {"one": (FIRST * 0.996, LAST * 1.004, 4000, lines)})
        tool = Tool(os.path.abspath(sys.argv[1]), folder, library)
        tables = {}
        for kind, writer in (("text", write_text), ("sdss", write_sdss), ("image", write_image)):
            tables[kind] = tool.fit(tool.write(kind, writer, stars.wave, plain))
            pulls(kind, stars, tables[kind])
        pulls("cosmic rays", stars, tool.fit(tool.write("hit", write_sdss, stars.wave, with_cosmics(stars, seed))))
        few = plain[:4]
        for unit in (1e-25, 1e25):
            scaled = [([f * unit for f in flux], [e * unit for e in error]) for flux, error in few]
            close(f"unit {unit:g}", tool.fit(tool.write("unit", write_sdss, stars.wave, scaled)), tables["sdss"],
                  [c + e for c in COLUMNS for e in ("", "_ERR")] + ["CHISQ_TOT"], 1e-6)
        some = stars.stars[:min(count, 24)]
        rows = tool.fit(tool.write("plain", write_sdss, stars.wave, [s[1:] for s in some]), "--mode", "reference")
        off = max(abs(float(a["NEG2LOGL"]) - float(b["NEG2LOGL"])) for a, b in zip(rows, tables["sdss"]))
        print(f"device against plain C: -2 log L within {off:.4f}")
        expect(f"device and plain C: -2 log L differ by {off}", off <= 0.01)
        truth = stars.stars[0][0]
        q = [math.log10(truth["TEFF"]), truth["LOGG"], truth["FEH"], truth["ALPHAFE"]]
        exposures = [made.star(stars.wave, lines, truth["VRAD"], q, 50, seed * 77 + i) for i in range(12)]
        files = tool.write("exposure", write_sdss, stars.wave, exposures)
        alone = tool.fit(files)
        for n in (1, 3, 12):
            one, = tool.fit(files[:n], "--combine", "all")
            for column in ("VRAD_ERR", "TEFF_ERR", "LOGG_ERR", "FEH_ERR"):
                wanted = 1 / math.sqrt(sum(float(r[column]) ** -2 for r in alone) / 12 * n)
                ratio = float(one[column]) / wanted
                expect(f"{n} exposures: {column} is {ratio} of 1 / sqrt(N)", n == 1 or abs(ratio - 1) < 0.03)
            print(f"{n} exposures: VRAD {float(one['VRAD']):.3f} +- {float(one['VRAD_ERR']):.3f}, "
                  f"truth {truth['VRAD']:.3f}")
    print("\n".join(WRONG))
    return 1 if WRONG else 0


if __name__ == "__main__":
    sys.exit(main())
