#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that the axes in the pictures of `cleave specfit --plot` name their quantities and units.

usage: specfit_pictures.py CLEAVE FONT    FONT: host/io/pictures/font.c of the sources
"""
import csv
import os
import re
import struct
import subprocess
import sys
import tempfile
import zlib

import testdata

CLEAVE, FONT = sys.argv[1:3]
INK, DATA = bytes((40, 40, 40)), bytes((120, 120, 120))
BOTTOM = 30 + 190  # position in the picture of the panel of the flux
STAR = ["flux (1e-17 erg / s / cm2 / Angstrom)", "(flux - model) / error", "wavelength (Angstrom)"]
MARKED = STAR + ["39600000000004", "chi2/n", "km/s", "H gamma", "H beta", "H alpha", "Ca II", "4500", "6200", "9100"]
SUMMARY = ["radial velocity (km/s)", "log10 of the velocity's error in km/s", "effective temperature (K)",
           "log10 of the gravity in cm/s2", "[Fe/H] (dex)", "[alpha/Fe] (dex)"]


def unfilter(kind, line, above):
    """Returns one row of a PNG of three bytes per pixel."""
    for i in range(len(line) if kind else 0):
        left, up = line[i - 3] if i > 2 else 0, above[i]
        corner = above[i - 3] if i > 2 else 0
        guess = left + up - corner
        nearest = min((left, up, corner), key=lambda value: abs(guess - value))
        line[i] = (line[i] + (0, left, up, (left + up) // 2, nearest)[kind]) & 255
    return line


def ink_of(path, ink=INK):
    """Returns rows of one byte for each pixel: 1 if it has that colour, by default the colour of letters."""
    with open(path, "rb") as file:
        data = file.read()
    at, packed, size = 8, b"", None
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        chunk = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            size = struct.unpack(">IIBB", chunk[:10])
        packed += chunk if kind == b"IDAT" else b""
        at += length + 12
    width, height, depth, colour = size
    assert (depth, colour) == (8, 2), path
    raw, above, rows = zlib.decompress(packed), bytes(3 * width), []
    for y in range(height):
        start = y * (3 * width + 1)
        above = unfilter(raw[start], bytearray(raw[start + 1:start + 1 + 3 * width]), above)
        rows.append(bytes(above[x:x + 3] == ink for x in range(0, 3 * width, 3)))
    return rows


def glyphs():
    with open(FONT, encoding="ascii") as file:
        lines = re.findall(r"^    \{ (0x.*?) \},", file.read(), re.MULTILINE)
    return {chr(32 + i): [int(row, 16) for row in line.split(",")] for i, line in enumerate(lines)}


def letters(text, font):
    """Returns the rows of a text in the form of ink_of."""
    return [bytes(font[c][row] >> (4 - x) & 1 if x < 5 else 0 for c in text for x in range(6))[:-1]
            for row in range(7)]


def shows(rows, pattern):
    for y in range(len(rows) - 6):
        x = rows[y].find(pattern[0])
        while x >= 0:
            if all(rows[y + i][x:x + len(p)] == p for i, p in enumerate(pattern)):
                return True
            x = rows[y].find(pattern[0], x + 1)
    return False


def one_star(cleave, folder, font):
    """Tests a line core of nine pixels that no template has, in a spectrum of a thousand pixels, and an outlier of two
    pixels that must not determine the scale. In the summary of this star alone, the ticks of the temperature are half a
    kelvin apart and say so."""
    core = {500 + i: 1 - depth for i, depth in enumerate((.1, .3, .6, .8, .9, .8, .6, .3, .1))}
    core.update({800: -5, 801: -5})
    with open(os.path.join(folder, "deep.txt"), "w", encoding="ascii") as file:
        file.writelines(f"{5850 + 0.8 * k:.1f} {core.get(k, 1) + 0.02 * (k * 7919 % 101 / 50 - 1):.4f} 0.02\n"
                        for k in range(1000))
    cleave("specfit", "deep.txt", "--library", testdata.path_of("specfit/lib"), "--arm", "desi_r", "--reject", "0",
           "-o", "deep.csv", "--plot", "deep")
    name, = (name for name in os.listdir(os.path.join(folder, "deep")) if name != "summary.png")
    rows = ink_of(os.path.join(folder, "deep", name), DATA)
    at = 60 + 504 * 1120 // 1000  # where the core is drawn
    lowest = max(y for y in range(BOTTOM) if any(rows[y][at - 6:at + 7]))
    wrong = [] if BOTTOM - 60 < lowest < BOTTOM - 4 else [f"the core of a line ends at row {lowest} of {BOTTOM}"]
    with open(os.path.join(folder, "deep.csv"), encoding="ascii") as file:
        tick = f"{int(float(next(csv.DictReader(file))['TEFF'])) + 0.5:.1f}"
    summary = ink_of(os.path.join(folder, "deep", "summary.png"))
    return wrong + ([] if shows(summary, letters(tick, font)) else [f"no tick at {tick} K"])


def equal_fluxes(cleave, folder, font):
    """Tests a spectrum without a fit whose fluxes are so large that 1 beside them is the same number: the axis of the
    flux has numbers."""
    with open(os.path.join(folder, "equal.txt"), "w", encoding="ascii") as file:
        file.writelines(f"{5850 + 0.8 * k:.1f} 1e30 1e28\n" for k in range(1000))
    cleave("specfit", "equal.txt", "--library", testdata.path_of("specfit/lib"), "--arm", "desi_r", "--ignore",
           "5000:8000", "-o", "equal.csv", "--plot", "equal")
    name, = (name for name in os.listdir(os.path.join(folder, "equal")) if name != "summary.png")
    shown = shows(ink_of(os.path.join(folder, "equal", name)), letters("e+30", font))
    return [] if shown else ["equal fluxes of 1e30 have no number on their axis"]


def main():
    font = glyphs()
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        def cleave(*arguments):
            subprocess.run([CLEAVE, *arguments, "--mode", "reference", "-q"], cwd=folder, check=True,
                           stdout=subprocess.DEVNULL, timeout=300)
        cleave("specfit", testdata.path_of("specfit/data/coadd-synth-a.fits.gz"), "--library",
               testdata.path_of("specfit/lib"), "--targets", "39600000000004", "-o", "marked.csv", "--plot", "marked")
        for name, texts in (("summary.png", SUMMARY), ("39600000000004_row4.png", MARKED)):
            rows = ink_of(os.path.join(folder, "marked", name))
            wrong += ["%s does not say \"%s\"" % (name, text) for text in texts
                      if not shows(rows, letters(text, font))]
        wrong += one_star(cleave, folder, font) + equal_fluxes(cleave, folder, font)
    sys.exit("\n".join(wrong) if wrong else 0)


if __name__ == "__main__":
    main()
