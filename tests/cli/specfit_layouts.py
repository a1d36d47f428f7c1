#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that `cleave specfit` reads spectra correctly whose layouts and units are easily misread.

usage: specfit_layouts.py CLEAVE
Bad pixels are left out: those of APOGEE's masks, of ECSV's truth values and of ECSV's masked cells. Every unit of
length is understood, and errors are converted to the unit of the flux. Magnitudes, SDSS's spPlate- files and wrong
numbers are refused in one line. The command warns about a mask that leaves out most pixels."""
import math
import os
import struct
import sys
import tempfile

import specfit_kit as kit
import specfit_made as made
import specfit_readers as readers

PIXELS, BAD = 900, range(300, 360)


class Layouts:
    def __init__(self, tool, lines):
        self.tool = tool
        self.wave = made.grid(4200, 5900, PIXELS)
        self.flux, self.error = made.star(self.wave, lines, 35, readers.Q, 40, 21)
        self.spoilt = [f + 40 * (k in BAD) for k, f in enumerate(self.flux)]
        self.mask = [int(k in BAD) for k in range(PIXELS)]
        self.log_step = math.log10(self.wave[1] / self.wave[0])

    def save(self, name, *hdus):
        readers.save(self.tool.path(name), *hdus)
        return self.tool.path(name)

    def expect_like(self, want, *arguments):
        row, = self.tool.fit(*arguments)
        error = float(want["VRAD_ERR"])
        same = abs(float(row["VRAD"]) - float(want["VRAD"])) < 0.02 * error
        same = same and abs(float(row["VRAD_ERR"]) / error - 1) < 0.02
        readers.expect(f"{arguments}: {row['VRAD']} of {row['NPIX_TOT']} pixels, {want['VRAD']} of {want['NPIX_TOT']}",
                       same and row["NPIX_TOT"] == want["NPIX_TOT"])

    def tables(self):
        """Returns the result without the bad pixels."""
        named = {"WAVE": self.wave, "FLUX": self.spoilt, "ERR": self.error, "MASK": self.mask}
        want, = self.tool.fit(self.save("plain.fits", readers.empty(), readers.columns("S", named)))
        readers.expect(f"{want['NPIX_TOT']} pixels", want["NPIX_TOT"] == str(PIXELS - len(BAD)))
        for number, (unit, angstrom) in enumerate((("AA", 1), ("10**-10 m", 1), ("mm", 1e7), ("cm", 1e8))):
            scaled = dict(named, WAVE=[w / angstrom for w in self.wave])
            self.expect_like(want, self.save(f"unit-{number}.fits", readers.empty(),
                                             readers.columns("S", scaled, {"WAVE": unit})))
        named["MASK"] = [1 - m for m in self.mask]
        done = self.tool.run(self.save("good.fits", readers.empty(), readers.columns("S", named)), "-o",
                             self.tool.path("good.csv"))
        readers.expect(f"a mask of good pixels: {done.stderr}",
                       f"leaves out {PIXELS - len(BAD)} of {PIXELS}" in done.stderr)
        named["MASK"] = self.mask
        self.tool.refuses("which is logarithmic", self.save("mag.fits", readers.empty(), readers.columns(
            "S", named, {"FLUX": "mag"})))
        return want

    def error_units(self):
        """Tests that errors are converted to the flux's unit, and that units of another kind are refused."""
        named = {"WAVE": self.wave, "FLUX": self.flux, "ERR": self.error}
        per_angstrom = "1e-17 erg / (Angstrom s cm2)"
        want, = self.tool.fit(self.save("same.fits", readers.empty(), readers.columns(
            "S", named, {"FLUX": per_angstrom, "ERR": per_angstrom})))
        for number, (name, unit, of) in enumerate((
                ("ERR", "10**(-20)*erg/s/cm**2/A", lambda e: 1000 * e), ("ERR", "", lambda e: e),
                ("IVAR", "10**+40 (s2 cm4 Angstrom2) / erg2", lambda e: 1e-6 / e ** 2),
                ("IVAR", per_angstrom, lambda e: e ** -2), ("IVAR", "widgets", lambda e: e ** -2),
                ("VAR", f"(0.001 {per_angstrom})**2", lambda e: 1e6 * e ** 2))):
            scaled = {"WAVE": self.wave, "FLUX": self.flux, name: [of(e) for e in self.error]}
            self.expect_like(want, self.save(f"error-{number}.fits", readers.empty(), readers.columns(
                "S", scaled, {"FLUX": per_angstrom, name: unit})))
        self.tool.refuses('"Jy", which cannot be converted to that of its flux, "' + per_angstrom, self.save(
            "kind.fits", readers.empty(), readers.columns("S", named, {"FLUX": per_angstrom, "ERR": "Jy"})))
        named = {"WAVE": self.wave, "FLUX": self.flux, "IVAR": self.error}
        self.tool.refuses('inverse variances is "1 / Jy2"', self.save("ivar.fits", readers.empty(), readers.columns(
            "S", named, {"FLUX": per_angstrom, "IVAR": "1 / Jy2"})))
        axis = [("CRVAL1", math.log10(self.wave[0])), ("CRPIX1", 1.0), ("CDELT1", self.log_step), ("DC-FLAG", 1)]
        flux = readers.image(axis + [("BUNIT", "Flux (10^-17 erg/s/cm^2/Ang)")], self.flux)
        for unit, scale in (("Err (10^-17 erg/s/cm^2/Ang)", 1), ("W/m2/um", 10 ** -16)):
            errors = readers.image([("BUNIT", unit)], [scale * e for e in self.error], "ERR")
            self.expect_like(want, self.save("unit-image.fits", flux, errors))
        self.tool.refuses('errors is "ct"', self.save("ct.fits", flux, readers.image(
            [("BUNIT", "ct")], self.error, "ERR")))
        path = self.tool.path("unit.ecsv")
        with open(path, "w", encoding="ascii") as file:
            file.write("# %ECSV 1.0\n# ---\n# datatype:\n# - {name: wave, unit: 0.1 nm, datatype: float64}\n"
                       "# - {name: flux, unit: W / (m2 um), datatype: float64}\n"
                       "# - {name: err, unit: W / (m2 nm), datatype: float64}\nwave flux err\n")
            file.writelines(f"{w!r} {f!r} {e / 1000!r}\n" for w, f, e in zip(self.wave, self.flux, self.error))
        self.expect_like(want, path)

    def image_axes(self):
        """Tests images whose header gives the step in two cards, or leaves out CRPIX1, which then is 0."""
        step = (self.wave[-1] - self.wave[0]) / (PIXELS - 1)
        wave = [self.wave[0] + step * k for k in range(PIXELS)]
        flux, error = made.star(wave, made.Lines(4150, 5950, 90, 5), 35, readers.Q, 40, 21)
        beside = readers.image([], error, "ERR")
        axis = [("CRVAL1", wave[0]), ("CRPIX1", 1.0)]
        want, = self.tool.fit(self.save("step.fits", readers.image(axis + [("CDELT1", step)], flux), beside))
        for cards in ([("CDELT1", step / 2), ("PC1_1", 2.0)], [("PC1_1", step)],
                      [("CDELT1", 7.0), ("PC1_1", 3.0), ("CD1_1", step)]):
            self.expect_like(want, self.save("pc.fits", readers.image(axis + cards, flux), beside))
        path = self.save("pixel-0.fits", readers.image([("CRVAL1", wave[0] - step), ("CDELT1", step)], flux), beside)
        self.expect_like(want, path)
        done = self.tool.run(path, "-o", self.tool.path("pixel-0.csv"))
        readers.expect(f"without CRPIX1: {done.stderr}", "CRPIX1 is missing, taken as 0, the FITS standard's default"
                       in done.stderr)

    def images(self, want):
        axis = [("CRVAL1", math.log10(self.wave[0])), ("CRPIX1", 1.0), ("CDELT1", self.log_step),
                ("CTYPE1", "LOG-LINEAR")]
        bits = [(1 << 3) * m + (1 << 12) * (k % 7 == 0) for k, m in enumerate(self.mask)]  # UNFIXABLE, and a sky line
        star = [readers.image(axis, self.spoilt, "x"), readers.image(axis, self.error, "x"),
                readers.image(axis, bits, "x")]
        for hdu in star:
            hdu.cards = [card for card in hdu.cards if not card.startswith("EXTNAME")]
        whole = struct.pack(f">{PIXELS}i", *bits)
        star[2].set("BITPIX", 32)
        star[2].data = whole
        self.expect_like(want, self.save("apStar.fits", readers.empty(), *star))
        rows = [self.flux, self.flux, self.flux]
        plate = [readers.image([("COEFF0", math.log10(self.wave[0])), ("COEFF1", self.log_step)], rows)]
        plate += [readers.image([], rows, name) for name in ("IVAR", "ANDMASK", "ORMASK")]
        self.tool.refuses("spPlate- files, with 3 spectra", self.save("spPlate.fits", *plate))

    def text(self, want):
        head = "# %ECSV 1.0\n# ---\n# datatype:\n# - {name: wave, unit: AA, datatype: float64}\n"
        path = self.tool.path("bool.ecsv")
        with open(path, "w", encoding="ascii") as file:
            file.write(head + "wave flux err mask\n")
            file.writelines(f"{w!r} {f!r} {e!r} {bool(m)}\n"
                            for w, f, e, m in zip(self.wave, self.spoilt, self.error, self.mask))
        self.expect_like(want, path)
        path = self.tool.path("masked.ecsv")
        with open(path, "w", encoding="ascii") as file:
            file.write(head + "wave flux err\n")
            file.writelines(f"{w!r} " + ('""' if m else f"{f!r}") + f" {e!r}\n"
                            for w, f, e, m in zip(self.wave, self.spoilt, self.error, self.mask))
        self.expect_like(want, path)
        readers.write_text(self.tool.path("log.txt"), "", [math.log10(w) for w in self.wave], self.flux, self.error)
        done = self.tool.run(self.tool.path("log.txt"), "-o", self.tool.path("none.csv"))
        readers.expect(f"logarithms without a name: {done.stderr}", done.returncode == 2 and
                       done.stderr.count("\n") == 1 and "name the column loglam" in done.stderr)
        plain = self.tool.path("plain.fits")
        self.tool.refuses("names teff twice", plain, "--fix", "teff=5000,logg=3,TEFF=5200")
        self.tool.refuses("within 10000 km/s of 0", plain, "--max-vel", "1e9")


def main():
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "library")
        lines = made.Lines(4150, 5950, 90, 5)
        made.write_library(library, {"one": (4100.0, 6000.0, 4000, lines)})
        layouts = Layouts(readers.Tool(sys.argv[1], folder, library), lines)
        want = layouts.tables()
        layouts.error_units()
        layouts.image_axes()
        layouts.images(want)
        layouts.text(want)
    print("\n".join(readers.WRONG))
    return 1 if readers.WRONG else 0


if __name__ == "__main__":
    sys.exit(main())
