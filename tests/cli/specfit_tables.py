#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the tables of `cleave specfit`: rvspecfit's columns, the tables that are copied, and the choice of spectra.

usage: specfit_tables.py CLEAVE
Names, types and units of RVTAB are those of a table that rvspecfit wrote; FIBERMAP, SCORES and EXP_FIBERMAP
have the chosen rows of the input, byte for byte; redshifts are matched by row and by TARGETID; every option that
chooses spectra chooses the right ones."""
import math
import os
import struct
import subprocess
import sys
import tempfile

import specfit_kit as kit
import testdata

FIRST = 39600000000000
WRONG = []


def expect(what, wanted, got):
    if wanted != got:
        WRONG.append(f"{what}: expected {wanted}, got {got}")


def sum_of(data):
    """Returns the ones' complement sum of FITS's checksums."""
    total = sum(struct.unpack(f">{len(data) // 4}I", data))
    while total >> 32:
        total = (total & 0xFFFFFFFF) + (total >> 32)
    return total


def settings_and_sums(tool):
    """Tests the settings in the table, the parameters that the errors hold fixed, and the checksums."""
    hdus = tool.fit(tool.coadd, "settings.fits", "--targets", str(FIRST), "--fix", "vsini=5", "--npoly", "7",
                    "--ignore", "none")
    for hdu in hdus.values():
        expect(f"{hdu.name}: CHECKSUM", 0xFFFFFFFF, sum_of(hdu.bytes()))
        expect(f"{hdu.name}: DATASUM", sum_of(kit.padded(hdu.data, b"\0")), int(hdu.get("DATASUM")))
    head = hdus["PRIMARY"]
    expect("settings", ["lib", "7", "vsini=5", "none", "plain C"],
           [head.get(key) for key in ("LIBRARY", "NPOLY", "FIX", "IGNORE", "DEVICE")])
    table = hdus["RVTAB"]
    comments = {table.get(f"TTYPE{i}"): table.get(f"TCOMM{i}") for i in range(1, 30)}
    expect("held", ["error of VRAD at fixed vsini, teff, logg, feh, alpha", "error of TEFF at fixed vrad and vsini"],
           [comments["VRAD_ERR"], comments["TEFF_ERR"]])
    table = tool.fit(tool.coadd, "held.fits", "--targets", str(FIRST), "--fix", "alpha=0.1")["RVTAB"]
    comments = {table.get(f"TTYPE{i}"): table.get(f"TCOMM{i}") for i in range(1, 60)}
    expect("alpha is held",
           ["error of LOGG at fixed vrad, vsini, alpha", "0, as ALPHAFE is held", "covariance, held: alpha"],
           [comments[name] for name in ("LOGG_ERR", "ALPHAFE_ERR", "COV_TEFF_VRAD")])
    path = tool.path("some.csv")
    with open(path, "w", encoding="ascii") as file:
        file.write(f"TARGETID,FEH\n{FIRST},-1\n")
    table = tool.fit(tool.coadd, "some.fits", "--targets", f"{FIRST},{FIRST + 1}", "--priors", path)["RVTAB"]
    comments = {table.get(f"TTYPE{i}"): table.get(f"TCOMM{i}") for i in range(1, 60)}
    expect("one star's metallicity is held",
           ["error of LOGG at fixed vrad and vsini; some stars: feh", "covariance, nothing held; in some stars: feh"],
           [comments[name] for name in ("LOGG_ERR", "COV_TEFF_VRAD")])


class Tool:
    def __init__(self, cleave, folder):
        self.cleave, self.folder = cleave, folder
        self.coadd = testdata.path_of("specfit/data/coadd-synth-a.fits.gz")

    def path(self, name):
        return os.path.join(self.folder, name)

    def fit(self, coadd, out, *more, code=0):
        done = subprocess.run(
            [self.cleave, "specfit", coadd, "--library", testdata.path_of("specfit/lib"),
             "--mode", "reference", "-q", "-o", self.path(out), *more],
            capture_output=True, text=True, timeout=300)
        if done.returncode != code:
            sys.exit(f"{out}: exit code {done.returncode}\n{done.stderr}")
        return kit.read(self.path(out)) if out.endswith(".fits") and not code else done.stderr


def same_rows(name, source, rows, got):
    expect(f"{name}: columns", source[name].columns, got[name].columns)
    expect(f"{name}: rows", b"".join(source[name].row(i) for i in rows), got[name].data)


def as_rvspecfit_has_them(tool):
    """Compares two stars, and one whose blue arm rvspecfit left out, with rvspecfit's own table."""
    theirs = kit.read(testdata.path_of("specfit/fits/rvtab_coadd-synth-a.fits"))
    rows = [0, 1, 5]
    targets = ",".join(str(FIRST + i) for i in rows)
    ours = tool.fit(tool.coadd, "table.fits", "--targets", targets, "--models",
                    tool.path("models.fits"))
    source = kit.read(tool.coadd)
    expect("HDUs", ["PRIMARY", "RVTAB", "FIBERMAP", "SCORES"], list(ours))
    wanted, got = theirs["RVTAB"].columns, ours["RVTAB"].columns
    expect("names", list(wanted), list(got)[:len(wanted)])
    for name, about in wanted.items():
        expect(f"{name}: type and unit", about[:2], got.get(name, (None, None))[:2])
    for name in ("TARGETID", "FIBER", "REF_ID", "REF_CAT", "TARGET_RA", "TARGET_DEC", "SN_B",
                 "SN_R", "SN_Z", "NPIX_TOT", "RVS_WARN", "SUCCESS", "RR_SPECTYPE", "RR_SUBTYPE"):
        expect(name, [theirs["RVTAB"].column(name)[i] for i in rows], ours["RVTAB"].column(name))
    if not all(math.isnan(z) for z in ours["RVTAB"].column("RR_Z")):
        WRONG.append("RR_Z without a file of redshifts")
    for name in ("FIBERMAP", "SCORES"):
        same_rows(name, source, rows, ours)
    models = kit.read(tool.path("models.fits"))
    reference = kit.read(testdata.path_of("specfit/fits/rvmod_coadd-synth-a.fits.gz"))
    expect("HDUs of the models", list(reference), list(models))
    same_rows("FIBERMAP", source, rows, models)
    for name in ("B_MODEL", "R_MODEL", "Z_MODEL"):
        expect(name, (reference[name].get("BITPIX"), reference[name].axes[0]),
               (models[name].get("BITPIX"), models[name].axes[0]))


def chosen(hdus):
    return [t - FIRST for t in hdus["RVTAB"].column("TARGETID")]


def redshifts(tool):
    """Tests stars 0 to 7: redshifts by class and by velocity, and galaxies."""
    rows = [(FIRST + i, *about) for i, about in enumerate(
        [(1e-4, "STAR", "G"), (0.5, "STAR", "CV"), (0.3, "GALAXY", ""), (0.004, "GALAXY", ""),
         (0.0051, "QSO", "LOZ"), (2.5, "QSO", ""), (-0.0049, "GALAXY", ""), (0.1, "GALAXY", "")])]
    columns = [("TARGETID", "K", None), ("Z", "D", None), ("SPECTYPE", "6A", None),
               ("SUBTYPE", "20A", None)]
    coadd = tool.path("coadd-x.fits")
    os.symlink(tool.coadd, coadd)
    count = int(kit.read(tool.coadd)["FIBERMAP"].get("NAXIS2"))
    some = ["--targets", ",".join(str(FIRST + i) for i in range(9))]
    primary = kit.read(tool.coadd)["PRIMARY"]

    def save(name, extension, order):
        kit.write(tool.path(name), {"PRIMARY": primary,
                                    extension: kit.table(extension, columns, order)})

    def check(label, hdus):
        table = hdus["RVTAB"]
        expect(f"{label}: stars", [0, 1, 3, 6], chosen(hdus))
        expect(f"{label}: z", [rows[i][1] for i in (0, 1, 3, 6)], table.column("RR_Z"))
        expect(f"{label}: class", ["STAR", "STAR", "GALAXY", "GALAXY"],
               table.column("RR_SPECTYPE"))
        expect(f"{label}: subclass", ["G", "CV", "", ""], table.column("RR_SUBTYPE"))
        expect(f"{label}: widths", ("6A", "2A"),
               (table.columns["RR_SPECTYPE"][0], table.columns["RR_SUBTYPE"][0]))

    warned = tool.fit(coadd, "none.csv", *some, "--zbest_select")
    if "redrock-" not in warned:
        WRONG.append(f"no word on redshifts that are not there: {warned!r}")
    save("zbest-x.fits", "ZBEST", rows[::-1])  # matched by TARGETID
    check("by TARGETID", tool.fit(coadd, "z.fits", *some, "--zbest_select"))
    every = rows + [(FIRST + i, 1.0, "GALAXY", "") for i in range(8, count)]
    save("redrock-x.fits", "REDSHIFTS", every)  # matched row by row, which is tried first
    hdus = tool.fit(coadd, "z.fits", *some, "--zbest_select")
    check("row by row", hdus)
    expect("RR_FILE", "redrock-x.fits", hdus["PRIMARY"].get("RR_FILE"))
    hdus = tool.fit(coadd, "z.fits", *some, "--zbest_include")
    expect("only told", list(range(9)), chosen(hdus))
    expect("only told: z", [row[1] for row in every[:9]], hdus["RVTAB"].column("RR_Z"))
    hdus = tool.fit(tool.coadd, "z.fits", "--targets", f"{FIRST},{FIRST + 8}", "--redshifts",
                    tool.path("zbest-x.fits"))
    expect("by name", [1e-4, True], [hdus["RVTAB"].column("RR_Z")[0],
                                     math.isnan(hdus["RVTAB"].column("RR_Z")[1])])
    wrong = tool.fit(tool.coadd, "w.fits", "--redshifts", tool.coadd, code=2)
    if "REDSHIFTS" not in wrong:
        WRONG.append(f"a file without redshifts: {wrong!r}")


def exposures(tool):
    """Tests EXPID, the tables of single exposures, and keywords that are copied."""
    source = kit.read(tool.coadd)
    count = source["FIBERMAP"].axes[1]
    source["FIBERMAP"] = kit.with_column(source["FIBERMAP"], "EXPID", "J", range(100, 100 + count))
    source["PRIMARY"].set("TILEID", 42)
    source["PRIMARY"].set("COLOUR", "red")
    many = [(FIRST + i // 2, 1000 + i) for i in range(2 * count)]
    source["EXP_FIBERMAP"] = kit.table("EXP_FIBERMAP", [("TARGETID", "K", None),
                                                        ("EXPID", "J", None)], many)
    spectra = tool.path("spectra-y.fits")
    kit.write(spectra, source)
    hdus = tool.fit(spectra, "e.fits", "--minexpid", "103", "--maxexpid", "105")
    expect("exposures after 103 up to 105", [4, 5], chosen(hdus))
    expect("EXPID", ("J", [104, 105]),
           (hdus["RVTAB"].columns["EXPID"][0], hdus["RVTAB"].column("EXPID")))
    same_rows("FIBERMAP", source, [4, 5], hdus)
    same_rows("EXP_FIBERMAP", source, [8, 9, 10, 11], hdus)
    expect("keywords", ("42", None), (hdus["PRIMARY"].get("TILEID"),
                                      hdus["PRIMARY"].get("COLOUR")))


def targets_and_signal(tool):
    with open(tool.path("ids.txt"), "w", encoding="utf-8-sig") as file:  # with a byte-order mark
        file.write(f"{FIRST + 7}\n# wanted\n{FIRST + 7}, {FIRST + 6} # two\n{FIRST + 6}\n123\n")
    hdus = tool.fit(tool.coadd, "i.fits", "--targets-file", tool.path("ids.txt"), "--targets",
                    str(FIRST + 9))
    expect("--targets-file", [6, 7, 9], chosen(hdus))
    with open(tool.path("ids.txt"), "a", encoding="ascii") as file:
        file.write("star")
    wrong = tool.fit(tool.coadd, "i.fits", "--targets-file", tool.path("ids.txt"), code=2)
    if '"star"' not in wrong:
        WRONG.append(f"a list with a word: {wrong!r}")
    source = kit.read(tool.coadd)
    told = [max(source["SCORES"].column(f"MEDIAN_COADD_FLUX_SNR_{a}")[i] for a in "BRZ")
            for i in range(source["SCORES"].axes[1])]
    limit = sorted(told)[-3]
    bright = [i for i, s in enumerate(told) if s > limit]
    hdus = tool.fit(tool.coadd, "s.fits", "--minsn", repr(limit))
    expect("--minsn", bright, chosen(hdus))
    del source["SCORES"]
    kit.write(tool.path("coadd-noscores.fits"), source)
    hdus = tool.fit(tool.path("coadd-noscores.fits"), "s.fits", "--minsn", repr(limit - 1e-3))
    expect("--minsn, measured", sorted(bright + [told.index(limit)]), chosen(hdus))
    expect("without scores", ["PRIMARY", "RVTAB", "FIBERMAP"], list(hdus))
    hdus = tool.fit(tool.coadd, "n.fits", "--targets", "1")
    expect("no star: rows", (0, 0), (hdus["RVTAB"].axes[1], hdus["FIBERMAP"].axes[1]))


def main():
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(sys.argv[1], folder)
        for claim in (settings_and_sums, as_rvspecfit_has_them, redshifts, exposures, targets_and_signal):
            claim(tool)
    print("\n".join(WRONG))
    return 1 if WRONG else 0


if __name__ == "__main__":
    sys.exit(main())
