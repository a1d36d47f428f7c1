#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures whether `cleave specfit` keeps its promises, on made-up stars with a seed that the caller may choose.

usage: specfit_acceptance.py CLEAVE [STARS [SEED]] [--all] [--peers PYTHON]
STARS (12) of each kind; hundreds make the long form. Prints a table of promises, what was measured, and whether each is
kept. With --all the tests of readers, priors, libraries, tables and pictures run as well. With --peers, rvspecfit and
specutils do, in the environment of bench/peers/requirements-rvspecfit.txt with specutils, of which PYTHON is the
interpreter."""
import argparse
import csv
import math
import os
import random
import subprocess
import sys
import tempfile

import specfit_made as made
import specfit_readers as readers
import testdata

COLUMNS = ["VRAD", "TEFF", "LOGG", "FEH", "ALPHAFE"]
FIRST, LAST, PIXELS = 4200.0, 5900.0, 1500
BAD_BITS = {0, 1, 18, 22, 23, 24}  # of SDSS's masks: NOPLUG, BADTRACE, FULLREJECT, NOSKY, BRIGHTSKY, NODATA
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


class Promises:
    def __init__(self):
        self.rows = [("promise", "measured", "kept")]

    def say(self, promise, measured, kept):
        self.rows.append((promise, measured, "yes" if kept else "NO"))

    def print(self):
        widths = [max(len(row[k]) for row in self.rows) for k in range(3)]
        for row in self.rows:
            print(" | ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())

    @property
    def broken(self):
        return any(row[2] == "NO" for row in self.rows)


class Stars:
    """Spectra of stars inside of the library's range."""

    def __init__(self, lines, count, seed, signal=(30, 90)):
        dice = random.Random(seed)
        self.wave, self.stars = made.grid(FIRST, LAST, PIXELS), []
        for i in range(count):
            truth = {"VRAD": dice.uniform(-300, 300), "TEFF": dice.uniform(4500, 6500), "LOGG": dice.uniform(2.6, 4.4),
                     "FEH": dice.uniform(-1.4, 0), "ALPHAFE": dice.uniform(0.1, 0.3)}
            q = [math.log10(truth["TEFF"]), truth["LOGG"], truth["FEH"], truth["ALPHAFE"]]
            flux, error = made.star(self.wave, lines, truth["VRAD"], q, dice.uniform(*signal), seed * 1000 + i)
            self.stars.append((truth, flux, error))

    @property
    def spectra(self):
        return [(flux, error) for _, flux, error in self.stars]


def write_text(path, wave, flux, error):
    readers.write_text(path, "", wave, flux, error)


def write_sdss(path, wave, flux, error, mask=None):
    readers.save(path, readers.empty(), readers.columns("COADD", {
        "flux": flux, "loglam": [math.log10(w) for w in wave], "ivar": [e ** -2 for e in error],
        "and_mask": mask or [0] * len(wave)}))


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
                               *options], capture_output=True, text=True, timeout=1800)
        if done.returncode:
            sys.exit(f"exit code {done.returncode}\n{done.stderr}")
        with open(out, encoding="ascii") as file:
            return list(csv.DictReader(file))

    def fit_vacuum(self, files, *options):
        return self.fit(files, "--wavelengths", "vacuum", *options)

    def write(self, kind, writer, wave, spectra):
        files = []
        for i, (flux, error) in enumerate(spectra):
            files.append(os.path.join(self.folder, f"{kind}-{i:04}.dat"))
            writer(files[-1], wave, flux, error)
        return files


def chi_of(row):
    return float(row["CHISQ_TOT"]) / float(row["NPIX_TOT"])


def pulls(told, what, stars, rows):
    """Mean and spread of (value - truth) / error; chi-square of a pixel. The limits allow for few stars."""
    n, text, kept = len(rows), [], True
    for column in COLUMNS:
        x = [(float(r[column]) - s[0][column]) / float(r[column + "_ERR"]) for s, r in zip(stars.stars, rows)]
        mean = sum(x) / n
        spread = math.sqrt(sum((v - mean) ** 2 for v in x) / (n - 1))
        text.append(f"{column} {mean:+.2f} +- {spread:.2f}")
        wide = 3.5 / math.sqrt(2 * n)
        kept = kept and abs(mean) < 4 / math.sqrt(n) and 1 - wide < spread < max(1.1, 1 + wide)
    told.say(f"pulls of {n} stars, {what}: mean 0, spread below 1.1", ", ".join(text), kept)
    silent = [r["FILE"] for r in rows if chi_of(r) > 3 and not int(r["RVS_WARN"]) & 128]
    told.say(f"{what}: no chi2/n above 3 without a flag",
             f"{len(silent)} of {n}; chi2/n {sum(map(chi_of, rows)) / n:.3f} on average", not silent)


def with_cosmics(stars, seed):
    dice = random.Random(seed)
    for _, flux, error in stars.stars:
        flux = list(flux)
        for _ in range(dice.randint(1, 5)):
            k = dice.randrange(len(flux))
            flux[k] += 200 * error[k]
        yield flux, error


def largest_difference(one, two, columns):
    return max(abs(float(a[c]) - float(b[c])) / max(abs(float(b[c])), 1e-3)
               for a, b in zip(one, two) for c in columns)


def instruments(told, tool, stars, seed):
    """Returns the results of SDSS's tables."""
    tables = {}
    for kind, writer in (("text", write_text), ("sdss", write_sdss), ("image", write_image)):
        tables[kind] = tool.fit_vacuum(tool.write(kind, writer, stars.wave, stars.spectra))
        pulls(told, kind, stars, tables[kind])
    hit = tool.write("hit", write_sdss, stars.wave, with_cosmics(stars, seed))
    pulls(told, "1 to 5 cosmic rays of 200 sigma", stars, tool.fit_vacuum(hit))
    waves = [([f + 10 * e * math.sin(k / 9) for k, (f, e) in enumerate(zip(flux, error))], error)
             for flux, error in stars.spectra[:12]]
    rows = tool.fit_vacuum(tool.write("waves", write_sdss, stars.wave, waves))
    flagged = sum(int(r["RVS_WARN"]) >> 7 & 1 for r in rows)
    told.say("spectra that no template fits have bit 128",
             f"{flagged} of {len(rows)}; chi2/n {min(map(chi_of, rows)):.1f} at least", flagged == len(rows))
    return tables["sdss"]


def units(told, tool, stars, rows):
    worst = 0.0
    for unit in (1e-25, 3e-17, 1e-4, 1e25):
        scaled = [([f * unit for f in flux], [e * unit for e in error]) for flux, error in stars.spectra[:4]]
        got = tool.fit_vacuum(tool.write("unit", write_sdss, stars.wave, scaled))
        worst = max(worst, largest_difference(got, rows, [c + e for c in COLUMNS for e in ("", "_ERR")] +
                                              ["CHISQ_TOT"]))
    told.say("same results for flux in units of 1e-25 to 1e+25, to 1e-6", f"within {worst:.1e}", worst <= 1e-6)


def masks(told, tool, stars, rows):
    used = {int(r["NPIX_TOT"]) + int(r["NPIX_REJ"]) for r in rows}
    told.say("all pixels of other instruments are used, 4300 to 4450 Angstrom too", f"{used} of {PIXELS}",
             used == {PIXELS})
    flux, error = stars.spectra[0]
    path, bits = os.path.join(tool.folder, "bits.fits"), range(29)
    write_sdss(path, stars.wave, flux, error, [1 << k // 10 if k < 290 else 0 for k in range(PIXELS)])
    row, = tool.fit_vacuum([path], "--reject", "0")
    lost = PIXELS - int(row["NPIX_TOT"])
    told.say(f"of SDSS's {len(bits)} mask bits, {len(BAD_BITS)} leave pixels out (10 pixels each)", f"{lost} pixels",
             lost == 10 * len(BAD_BITS))
    coadd = testdata.path_of("specfit/data/coadd-synth-a.fits.gz")
    desi = Tool(tool.cleave, tool.folder, testdata.path_of("specfit/lib"))
    some = ["--targets", "39600000000004", "--reject", "0"]
    with_it, without = (int(desi.fit([coadd], *some, *o)[0]["NPIX_TOT"]) for o in ((), ("--ignore", "none")))
    told.say("DESI's dichroic is left out, unless --ignore none is given", f"{with_it} and {without} pixels",
             without - with_it > 100)


def faint(told, tool, lines, count, seed):
    """S/N 5: devices against plain C, and flags of parameters of which the spectrum says nothing."""
    stars = Stars(lines, count, seed + 1, (4, 6))
    files = tool.write("faint", write_sdss, stars.wave, stars.spectra)
    rows, plain = tool.fit_vacuum(files), tool.fit_vacuum(files, "--mode", "reference")
    off = max(abs(float(a["NEG2LOGL"]) - float(b["NEG2LOGL"])) for a, b in zip(plain, rows))
    told.say(f"devices and plain C: the same minimum to 0.01, {len(rows)} stars of S/N 5", f"within {off:.4f}",
             off <= 0.01)
    ranges = {"TEFF": 3000, "LOGG": 3, "FEH": 2.5, "ALPHAFE": 0.4}
    wide = [r for r in rows if any(float(r[c + "_ERR"]) * math.sqrt(12) > ranges[c] for c in ranges)]
    silent = [r for r in wide if r["WIDE_ERR"] not in ("1", "T", "true", "True")]
    told.say("errors as large as the library's range are flagged", f"{len(wide)} stars, {len(silent)} without WIDE_ERR",
             not silent)


def exposures(told, tool, stars, lines, seed):
    truth = stars.stars[0][0]
    q = [math.log10(truth["TEFF"]), truth["LOGG"], truth["FEH"], truth["ALPHAFE"]]
    spectra = [made.star(stars.wave, lines, truth["VRAD"], q, 50, seed * 77 + i) for i in range(12)]
    files = tool.write("exposure", write_sdss, stars.wave, spectra)
    alone = tool.fit_vacuum(files)
    for n in (3, 12):
        one, = tool.fit_vacuum(files[:n], "--combine", "all")
        off = 0.0
        for column in ("VRAD_ERR", "TEFF_ERR", "LOGG_ERR", "FEH_ERR"):
            wanted = 1 / math.sqrt(sum(float(r[column]) ** -2 for r in alone) / 12 * n)
            off = max(off, abs(float(one[column]) / wanted - 1))
        told.say(f"{n} exposures together: errors fall as 1 / sqrt(N), to 3 %", f"within {100 * off:.2f} %", off < 0.03)


def run(told, promise, command, expected=""):
    """A program that fails if the promise is broken; of what it prints, the lines with `expected` are told."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, cwd=HERE)
    said = [line for line in done.stdout.splitlines() if expected and expected in line]
    sys.stderr.write(done.stdout[-4000:] + done.stderr[-4000:] if done.returncode else "")
    told.say(promise, "; ".join(said)[:200] or f"exit code {done.returncode}", done.returncode == 0)


def other_tests(told, cleave):
    font = os.path.join(ROOT, "host", "io", "pictures", "font.c")
    dwarf = ("SDSS's white dwarf has its pipeline's velocity" if testdata.has("specfit/real/spec-0266-51602-0031.fits")
             else "SDSS's white dwarf is not here")
    for promise, script, *more in (
            ("30 kinds of files give the same star; " + dwarf, "readers"),
            ("units, masks and layouts that are easily misread", "layouts"),
            ("priors and fixed parameters do what two Gaussians say", "priors"),
            ("libraries from PHOENIX's layout and from tables", "templates"),
            ("tables: identities, settings, comments, checksums", "tables"),
            ("pictures: ticks, units, marks, residuals, title", "pictures", font)):
        run(told, promise, [sys.executable, os.path.join(HERE, f"specfit_{script}.py"), cleave, *more], "white dwarf:")


def peers(told, cleave, python, seed):
    folder = os.path.join(ROOT, "bench", "peers")
    for promise, script, part in (
            ("optima with priors are at most 0.05 above rvspecfit's", "priors_rvspecfit.py", "less rvspecfit"),
            ("flux within 1e-3 of make_interpol's, velocities within 0.1 km/s", "templates_rvspecfit.py", "veloc"),
            ("what specutils and astropy write is read", "readers_specutils.py", "within")):
        run(told, promise, [python, os.path.join(folder, script), cleave, str(seed)], part)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cleave")
    parser.add_argument("stars", nargs="?", type=int, default=12)
    parser.add_argument("seed", nargs="?", type=int, default=7)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--peers")
    args = parser.parse_args()
    cleave, told = os.path.abspath(args.cleave), Promises()
    lines = made.Lines(FIRST - 30, LAST + 30, 110, 2)
    stars = Stars(lines, args.stars, args.seed)
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "library")
        made.write_library(library, {"one": (FIRST * 0.996, LAST * 1.004, 4000, lines)})
        tool = Tool(cleave, folder, library)
        rows = instruments(told, tool, stars, args.seed)
        units(told, tool, stars, rows)
        masks(told, tool, stars, rows)
        faint(told, tool, lines, min(args.stars, 48), args.seed)
        exposures(told, tool, stars, lines, args.seed)
    if args.all:
        other_tests(told, cleave)
    if args.peers:
        peers(told, cleave, args.peers, args.seed)
    told.print()
    return 1 if told.broken else 0


if __name__ == "__main__":
    sys.exit(main())
