#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that a bad fibre or a missing part of a file does not affect the other stars of `cleave specfit`.

usage: specfit_damage.py CLEAVE
The faults are NaN, infinity, no weight, all pixels flagged, all zero, a median below zero, and zero rows of the
resolution matrix. The star has a row with a warning, and the other stars have exactly the numbers that they have in the
undamaged file. Missing arms, masks, scores and matrices are reported or left out. A file that is truncated at any place
is refused, not half read."""
import csv
import math
import os
import subprocess
import sys
import tempfile

import specfit_kit as kit
import testdata

BAD = 32
FIRST = 39700000000000
INF, NAN = math.inf, math.nan
WRONG = []


def expect(what, good):
    if not good:
        WRONG.append(what)


class Tool:
    def __init__(self, cleave, folder):
        self.cleave, self.folder = cleave, folder
        self.sound = testdata.path_of("specfit/data/coadd-synth-b.fits.gz")

    def path(self, name):
        return os.path.join(self.folder, name)

    def fit(self, coadd, *more, code=0):
        out = self.path("out.csv")
        if os.path.exists(out):
            os.unlink(out)
        done = subprocess.run(
            [self.cleave, "specfit", coadd, "--library", testdata.path_of("specfit/lib"),
             "--mode", "reference", "-o", out, *more], capture_output=True, text=True, timeout=300)
        if done.returncode != code:
            sys.exit(f"{coadd} {more}: exit code {done.returncode}, expected {code}\n{done.stderr}")
        if code:
            expect(f"{coadd}: a refused file left a table", not os.path.exists(out))
            return done.stderr
        with open(out, encoding="ascii") as file:
            return [dict(row) for row in csv.DictReader(file)]


def fill(hdus, arms, what, row, value):
    for arm in arms:
        hdu = hdus[f"{arm}_{what}"]
        n = hdu.axes[0] * (hdu.axes[1] if what == "RESOLUTION" else 1)
        hdu.put(row, [value] * n)


def damaged(hdus):
    """Damages star `row`, and returns whether anything is left to fit."""
    fill(hdus, "BRZ", "FLUX", 0, NAN)
    fill(hdus, "BRZ", "IVAR", 1, 0.0)
    fill(hdus, "BRZ", "IVAR", 2, INF)
    fill(hdus, "BRZ", "MASK", 3, 1)
    for what in ("FLUX", "IVAR", "RESOLUTION"):
        fill(hdus, "BRZ", what, 4, 0.0)
    for arm in "BRZ":  # half of the rows of the matrix, and some NaN in flux and weight
        matrix = hdus[f"{arm}_RESOLUTION"]
        n, diagonals = matrix.axes[0], matrix.axes[1]
        values = matrix.values(5)
        for k in range(0, n, 2):
            for m in range(diagonals):
                values[m * n + (k + m - diagonals // 2) % n] = 0.0
        matrix.put(5, values)
        for what, bad in (("FLUX", NAN), ("IVAR", NAN), ("IVAR", INF), ("IVAR", -1.0)):
            values = hdus[f"{arm}_{what}"].values(5)
            values[100:110] = [bad] * 10
            hdus[f"{arm}_{what}"].put(5, values)
    fill(hdus, "B", "MASK", 6, 1)  # one arm of the star
    return {0: False, 1: False, 2: False, 3: False, 4: False, 5: True, 6: True, 7: True}


def bad_fibres(tool, sound):
    hdus = kit.read(tool.sound)
    usable = damaged(hdus)
    coadd = tool.path("coadd-bad.fits")
    kit.write(coadd, hdus)
    for options in (["--resolution", "on"], ["--resolution", "off", "--starts", "2"]):
        rows = tool.fit(coadd, *options)
        expect(f"{options}: {len(rows)} rows of 8",
               [int(row["TARGETID"]) for row in rows] == [FIRST + i for i in range(8)])
        for i, row in enumerate(rows):
            warned, finite = int(row["RVS_WARN"]) & BAD, math.isfinite(float(row["VRAD"] or NAN))
            if usable[i]:
                expect(f"{options}, star {i}: flagged, though it can be fitted: {row['VRAD']}",
                       not warned and finite)
            else:
                expect(f"{options}, star {i}: {row['VRAD']} without bit {BAD}",
                       warned and not finite)
        if "on" in options:
            expect("the sound star beside them has other numbers", rows[7] == sound[7])
        expect(f"star 6: chi2 of an arm that is flagged: {rows[6]['CHISQ_B']}",
               float(rows[6]["CHISQ_B"]) == 0 and float(rows[6]["CHISQ_R"]) > 0)


def missing_parts(tool, sound):
    def without(*names):
        hdus = kit.read(tool.sound)
        for name in names:
            del hdus[name]
        kit.write(tool.path("coadd-part.fits"), hdus)
        return tool.path("coadd-part.fits")

    blue = [f"B_{what}" for what in ("WAVELENGTH", "FLUX", "IVAR", "MASK", "RESOLUTION")]
    rows = tool.fit(without(*blue))
    expect("without the blue arm", len(rows) == 8 and "CHISQ_B" not in rows[0] and
           all(int(row["RVS_WARN"]) & BAD == 0 for row in rows))
    expect("without the blue arm: velocities",
           sum(abs(float(a["VRAD"]) - float(b["VRAD"])) < 8 for a, b in zip(rows, sound)) >= 7)
    plain = tool.fit(tool.sound)
    expect("without masks", len(tool.fit(without("B_MASK", "R_MASK", "Z_MASK"))) == 8)
    less = tool.fit(without("SCORES", "B_RESOLUTION", "R_RESOLUTION", "Z_RESOLUTION"))
    fitted = [name for name in plain[0] if not name.startswith("SN_")]
    expect("without scores and matrices other numbers",
           [[row[name] for name in fitted] for row in plain] ==
           [[row[name] for name in fitted] for row in less])
    told = tool.fit(without("Z_RESOLUTION"), "--resolution", "on", code=2)
    expect(f"no matrix where one is needed: {told!r}", "Z_RESOLUTION" in told)
    told = tool.fit(without("R_IVAR"), code=2)
    expect(f"no weights: {told!r}", "R_IVAR" in told)
    told = tool.fit(without("FIBERMAP"), code=2)
    expect(f"no fibre map: {told!r}", "FIBERMAP" in told)
    hdus = kit.read(tool.sound)
    hdus["FIBERMAP"] = kit.with_column(hdus["FIBERMAP"], "FIBERSTATUS", "K", [0, 1 << 32] + [0] * 6)
    kit.write(tool.path("coadd-part.fits"), hdus)
    expect("a status of more than 32 bits is not a good one", len(tool.fit(tool.path("coadd-part.fits"))) == 7)
    hdus = kit.read(tool.sound)
    hdus["SCORES"].data = hdus["SCORES"].data[:hdus["SCORES"].axes[0] * 5]
    hdus["SCORES"].set("NAXIS2", 5)
    kit.write(tool.path("coadd-part.fits"), hdus)
    told = tool.fit(tool.path("coadd-part.fits"), code=2)
    expect(f"scores of other rows: {told!r}", "5 rows" in told)
    hdus = kit.read(tool.sound)
    short = hdus["B_FLUX"]
    short.data = short.data[:short.axes[0] * 4 * 3]
    short.set("NAXIS2", 3)
    kit.write(tool.path("coadd-part.fits"), hdus)
    expect("flux of three rows of eight",
           "B_FLUX" in tool.fit(tool.path("coadd-part.fits"), code=2))


def wavelengths(tool, plain):
    """Tests that another unit of wavelengths is converted, and that wrong wavelengths are refused by name."""
    def changed(change, unit=None):
        hdus = kit.read(tool.sound)
        hdu = hdus["B_WAVELENGTH"]
        numbers = change([hdu.values(k)[0] for k in range(hdu.axes[0])])
        for k, number in enumerate(numbers):
            hdu.put(k, [number])
        if unit:
            hdu.set("BUNIT", unit)
        kit.write(tool.path("coadd-wave.fits"), hdus)
        return tool.path("coadd-wave.fits")

    row, = tool.fit(changed(lambda w: [x / 10 for x in w], "nm"))[:1]
    expect(f"nanometres: {row['VRAD']}, expected {plain[0]['VRAD']}",
           abs(float(row["VRAD"]) - float(plain[0]["VRAD"])) < 0.1 * float(plain[0]["VRAD_ERR"]))
    expect("Angstrom by name", tool.fit(changed(lambda w: w, "Angstrom")) == plain)
    for change, unit, parts in ((lambda w: w[::-1], None, ("B_WAVELENGTH", "pixel 1")),
                                (lambda w: [*w[:5], NAN, *w[6:]], None, ("B_WAVELENGTH is nan at pixel 5",)),
                                (lambda w: w, "GHz", ('B_WAVELENGTH (BUNIT) is "GHz"', "nm, um")),
                                (lambda w: [x / 10 for x in w], None, ("desi_b", "BUNIT"))):
        told = tool.fit(changed(change, unit), code=2)
        expect(f"wavelengths: {told!r}", told.count("\n") == 1 and
               all(part in told for part in ("coadd-wave.fits", *parts)))


def cut_short(tool):
    whole = kit.bytes_of(tool.sound)
    for part in (0, 1000, 2880, len(whole) // 2, len(whole) - 2880 * 40):
        with open(tool.path("coadd-cut.fits"), "wb") as file:
            file.write(whole[:part])
        told = tool.fit(tool.path("coadd-cut.fits"), "--resolution", "on", code=2)
        expect(f"cut after {part} bytes: {told!r}", "coadd-cut.fits" in told)


def main():
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(sys.argv[1], folder)
        sound = tool.fit(tool.sound, "--resolution", "on")
        bad_fibres(tool, sound)
        missing_parts(tool, sound)
        wavelengths(tool, tool.fit(tool.sound))
        cut_short(tool)
    print("\n".join(WRONG))
    return 1 if WRONG else 0


if __name__ == "__main__":
    sys.exit(main())
