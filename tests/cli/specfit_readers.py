#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests `cleave specfit` on spectra of different instruments, alone and fitted together.

usage: specfit_readers.py CLEAVE
The same star has the same velocity in every kind of file, with wavelengths in air, without barycentric correction, and
with pixels in descending order. Masks of SDSS leave out the pixels that SDSS calls bad. 1, 3 and 12 exposures fitted
together have errors that fall as 1 / sqrt(N). A spectrum that is smoothed by its line-spread function fits with that
function, and not without it. An SDSS spectrum of a white dwarf has the velocity of SDSS's pipeline. Wrong calls are
refused with a message that names the mistake."""
import csv
import math
import os
import struct
import subprocess
import sys
import tempfile

import specfit_kit as kit
import specfit_made as made
import testdata

Q = [math.log10(5500.0), 3.8, -0.4, 0.15]
VELOCITY, SIGNAL = 35.0, 40.0
WRONG = []


class Tool:
    def __init__(self, cleave, folder, library):
        self.cleave, self.folder, self.library = cleave, folder, library

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *arguments):
        return subprocess.run([self.cleave, "specfit", *arguments, "--library", self.library, "--mode", "reference"],
                              capture_output=True, text=True, timeout=300)

    def fit(self, *arguments):
        out = self.path("out.csv")
        done = self.run(*arguments, "-q", "-o", out)
        if done.returncode:
            sys.exit(f"{' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}")
        with open(out, encoding="ascii") as file:
            return [dict(row) for row in csv.DictReader(file)]

    def refuses(self, part, *arguments):
        done = self.run(*arguments, "-o", self.path("none.csv"))
        if done.returncode != 2 or part not in done.stderr or os.path.exists(self.path("none.csv")):
            WRONG.append(f"{' '.join(arguments)}: exit code {done.returncode}, {done.stderr!r}")


def expect(what, condition):
    if not condition:
        WRONG.append(what)


# ---- files ------------------------------------------------------------------------------------------


def image(cards, numbers, extension=None):
    hdu = kit.Hdu([])
    if extension:
        hdu.set("XTENSION", "IMAGE")
    else:
        hdu.cards.append("SIMPLE  =                    T".ljust(80))
    rows = numbers if isinstance(numbers[0], list) else [numbers]
    flat = [x for row in rows for x in row]
    shape = [("NAXIS", 1), ("NAXIS1", len(flat))]
    if len(rows) > 1:
        shape = [("NAXIS", 2), ("NAXIS1", len(rows[0])), ("NAXIS2", len(rows))]
    for key, value in [("BITPIX", -64)] + shape:
        hdu.set(key, value)
    if extension:
        hdu.set("PCOUNT", 0), hdu.set("GCOUNT", 1), hdu.set("EXTNAME", extension)
    for key, value in cards:
        hdu.set(key, value)
    hdu.data = struct.pack(f">{len(flat)}d", *flat)
    return hdu


def empty(cards=()):
    hdu = kit.Hdu([])
    hdu.cards.append("SIMPLE  =                    T".ljust(80))
    for key, value in [("BITPIX", 8), ("NAXIS", 0), *cards]:
        hdu.set(key, value)
    return hdu


def save(path, *hdus):
    kit.write(path, dict(enumerate(hdus)))


def columns(name, named, units=()):
    """Returns a table with one pixel per row; named: {column: numbers}."""
    units = dict(units)
    form = [(key, "J" if key in ("and_mask", "or_mask", "DQ") else "D", units.get(key)) for key in named]
    return kit.table(name, form, list(zip(*named.values())))


def write_text(path, head, *lists):
    with open(path, "w", encoding="ascii") as file:
        file.write(head)
        for row in zip(*lists):
            file.write(" ".join(f"{x:.9g}" for x in row) + "\n")


def air_of(vacuum):
    s2 = (1e4 / vacuum) ** 2
    return vacuum / (1 + 8.34254e-5 + 2.406147e-2 / (130 - s2) + 1.5998e-4 / (38.9 - s2))


def every_kind(tool, wave, flux, error):
    """Writes files of every kind and returns {name of a file: options that it needs}."""
    path, n = tool.path, len(wave)
    ivar = [1 / (e * e) for e in error]
    log_wave = [math.log10(w) for w in wave]
    files = {}

    def add(name, *options):
        files[name] = options
        return path(name)

    write_text(add("three.txt"), "", wave, flux, error)
    write_text(add("named.txt"), "# flux [counts] ivar wave [nm]\n", flux, ivar, [w / 10 for w in wave])
    with open(add("comma.csv"), "w", encoding="ascii") as file:
        file.write("wavelength,flux,error,mask\n")
        file.writelines(f"{w:.9g},{f:.9g},{e:.9g},0\n" for w, f, e in zip(wave, flux, error))
    write_text(add("air.txt", "--wavelengths", "air"), "", [air_of(w) for w in wave], flux, error)
    moved = [w / math.sqrt((1 + 20 / made.LIGHT) / (1 - 20 / made.LIGHT)) for w in wave]
    write_text(add("moved.txt", "--barycentric", "20"), "", moved, flux, error)
    save(add("helio.fits", "--barycentric", "header"), empty([("VHELIO", 20.0)]),
         columns("SPECTRUM", {"WAVE": moved, "FLUX": flux, "ERR": error}))
    write_text(add("backwards.txt"), "", wave[::-1], flux[::-1], error[::-1])
    sdss = {"flux": flux, "loglam": log_wave, "ivar": ivar, "and_mask": [1 << 11] * n, "or_mask": [255] * n,
            "wdisp": [1.0] * n, "sky": flux, "model": flux}
    save(add("spec-0001-50000-0007.fits"),
         empty([("PLATEID", 1), ("MJD", 50000), ("FIBERID", 7), ("PLUG_RA", 12.5), ("PLUG_DEC", -3.25)]),
         columns("COADD", sdss))
    metres = [w * 1e-4 for w in wave]
    jansky = [f * (w / 5000) ** 2 for f, w in zip(flux, wave)]
    save(add("star_x1d.fits"), empty([("TARGNAME", "STAR-1")]),
         columns("EXTRACT1D", {"WAVELENGTH": metres, "FLUX": jansky,
                               "FLUX_ERROR": [e * (w / 5000) ** 2 for e, w in zip(error, wave)],
                               "DQ": [4] * n}, {"WAVELENGTH": "um", "FLUX": "Jy"}))
    save(add("specutils.fits"), empty(),
         columns("DATA", {"wavelength": wave, "flux": flux, "uncertainty": error},
                 {"wavelength": "Angstrom", "flux": "erg / (Angstrom s cm2)"}))
    one_row = kit.table("SPECTRUM", [("WAVE", f"{n}D", "Angstrom"), ("FLUX", f"{n}D", None), ("ERR", f"{n}D", None)],
                        [])
    one_row.set("NAXIS2", 1)
    one_row.data = b"".join(struct.pack(f">{n}d", *values) for values in (wave, flux, error))
    save(add("one-row.fits"), empty(), one_row)
    step = (log_wave[-1] - log_wave[0]) / (n - 1)
    save(add("loglambda.fits"),
         image([("CRVAL1", log_wave[0]), ("CRPIX1", 1.0), ("CD1_1", step), ("DC-FLAG", 1)], flux),
         image([], error, "ERR"))
    save(add("spSpec-50000-0001-007.fit"), image([("COEFF0", log_wave[0]), ("COEFF1", step)],
                                                 [flux, flux, error, [0.0] * n, [0.0] * n]))
    return files


def more_kinds(tool, wave, flux, error):
    """Writes published layouts in which a column is easily mistaken for another one; in masked pixels the flux is
    wrong."""
    path, n = tool.path, len(wave)
    ivar, log_wave = [1 / (e * e) for e in error], [math.log10(w) for w in wave]
    step = (log_wave[-1] - log_wave[0]) / (n - 1)
    mask = [4.0 * (100 <= k < 140) for k in range(n)]
    spoilt = [f + 50 * (m > 0) for f, m in zip(flux, mask)]
    log_axis = [("CRVAL1", log_wave[0]), ("CRPIX1", 1.0), ("CDELT1", step)]
    files = {}

    def add(name, pixels):
        files[name] = pixels
        return path(name)

    def one_row(name, named):
        hdu = kit.table(name, [(key, f"{len(v)}D", None) for key, v in named.items()], [])
        hdu.set("NAXIS2", 1)
        hdu.data = b"".join(struct.pack(f">{len(v)}d", *v) for v in named.values())
        return hdu

    # LAMOST: five rows; then a table; then a table for each arm
    save(add("spec-lamost.fits", n - 40), image([("COEFF0", log_wave[0]), ("COEFF1", step), ("VACUUM", "T")],
                                                [spoilt, ivar, wave, mask, mask]))
    save(add("spec-lamost-dr8.fits", n - 40), empty(), one_row(
        "COADD", {"FLUX": spoilt, "IVAR": ivar, "WAVELENGTH": wave, "ANDMASK": mask, "ORMASK": [1.0] * n}))
    parts = [one_row("COADD_" + arm, {"FLUX": flux[a:b], "IVAR": ivar[a:b], "WAVELENGTH": wave[a:b]})
             for arm, a, b in (("R", 1300, n), ("B", 0, 1200))]
    save(add("med-lamost.fits", n - 100), empty(), *parts)
    # APOGEE: the mean of the visits and the visits, with the errors in the next image
    linear = log_axis + [("CTYPE1", "LOG-LINEAR")]
    other = [2 * f for f in flux]
    tall = lambda *rows: image(linear, list(rows))
    names = [empty(), tall(flux, other), tall(error, other)]
    for hdu in names[1:]:
        hdu.cards[0] = "XTENSION= 'IMAGE   '".ljust(80)
        hdu.set("PCOUNT", 0), hdu.set("GCOUNT", 1)
    save(add("apStar.fits", n), *names)
    save(add("images.fits", n), empty(), image([], flux, "FLUX"), image([], ivar, "IVAR"),
         image([], wave, "WAVELENGTH"))
    pypeit = columns("SPECTRUM", {"wave": [0.0] * 20 + wave + [0.0] * 10, "flux": [0.0] * 20 + spoilt + [0.0] * 10,
                                  "ivar": [0.0] * 20 + ivar + [0.0] * 10,
                                  "mask": [0.0] * 20 + [float(m == 0) for m in mask] + [0.0] * 10})
    pypeit.set("DMODCLS", "OneSpec")
    save(add("pypeit.fits", n - 40), empty(), pypeit)
    save(add("variance.fits", n), image(log_axis + [("DC-FLAG", 1)], flux), image([], [e * e for e in error], "STAT"))
    write_text(add("table.ecsv", n), "# %ECSV 1.0\n# ---\n# datatype:\n# - {name: wave, unit: nm, datatype: float64}\n"
               "# - {name: flux, datatype: float64}\n# - {name: err, datatype: float64}\nwave flux err\n",
               [w / 10 for w in wave], flux, error)
    write_text(add("units.txt", n), "wave flux err\nnm adu adu\n", [w / 10 for w in wave], flux, error)
    with open(add("fortran.txt", n), "w", encoding="ascii") as file:
        file.writelines(f"{w:.5f} {f:.8e} {e:.8e}\n".replace("e", "D") for w, f, e in zip(wave, flux, error))
    return files


def frames(tool):
    """Tests a coadd that is split into frames and fitted together: it has the same numbers, in the same arms."""
    coadd = testdata.path_of("specfit/data/coadd-synth-a.fits.gz")
    hdus, names = kit.read(coadd), []
    for arm in "BRZ":
        frame = {"PRIMARY": empty([("CAMERA", arm.lower() + "3"), ("EXPID", 4711)])}
        for what in ("FLUX", "IVAR", "MASK", "WAVELENGTH", "RESOLUTION"):
            if f"{arm}_{what}" in hdus:
                frame[what] = kit.Hdu(list(hdus[f"{arm}_{what}"].cards), hdus[f"{arm}_{what}"].data)
                frame[what].set("EXTNAME", what)
        frame["FIBERMAP"], frame["SCORES"] = hdus["FIBERMAP"], hdus["SCORES"]
        names.append(tool.path(f"cframe-{arm.lower()}3-00004711.fits"))
        kit.write(names[-1], frame)
    desi = Tool(tool.cleave, tool.folder, testdata.path_of("specfit/lib"))
    few = ["--targets", ",".join(str(t) for t in hdus["FIBERMAP"].column("TARGETID")[:3])]
    whole, apart = desi.fit(coadd, *few), desi.fit(*names, *few, "--combine", "target")
    same = ("TARGETID", "VRAD", "TEFF", "NPIX_TOT", "CHISQ_B", "CHISQ_Z")
    expect(f"frames: {apart}", [[r[k] for k in same] for r in whole] == [[r[k] for k in same] for r in apart])
    expect("EXPID of frames", apart[0]["EXPID"] == "4711")


def linear_image(tool, lines):
    wave = [4210 + 1.2 * k for k in range(1400)]
    flux, error = made.star(wave, lines, VELOCITY, Q, SIGNAL, 5)
    save(tool.path("linear.fits"),
         image([("CTYPE1", "WAVE"), ("CUNIT1", "m"), ("CRVAL1", wave[0] * 1e-10), ("CRPIX1", 1.0),
                ("CDELT1", 1.2e-10)], flux), image([], error, "UNCERT"))


def kinds(tool, lines):
    wave = made.grid(4200, 5900, 2500)
    flux, error = made.star(wave, lines, VELOCITY, Q, SIGNAL, 1)
    files, velocities, table = every_kind(tool, wave, flux, error), {}, {}
    for name, options in files.items():
        rows = tool.fit(tool.path(name), *options)
        expect(f"{name}: {len(rows)} rows", len(rows) == 1)
        velocities[name], table[name] = float(rows[0]["VRAD"]), rows[0]
    first = velocities["three.txt"]
    error = float(table["three.txt"]["VRAD_ERR"])
    expect(f"three.txt: {first} +- {error}, expected {VELOCITY}", abs(first - VELOCITY) < 4 * error)
    for name, velocity in velocities.items():
        # air wavelengths by another formula's inverse, with nine digits
        near = 0.1 * error if name in ("air.txt", "loglambda.fits", "spSpec-50000-0001-007.fit") else 0.02 * error
        near = max(near, 0.3 * error if name == "star_x1d.fits" else 0)  # the continuum has another shape
        expect(f"{name}: {velocity}, expected {first}", abs(velocity - first) < near)
    for name, pixels in more_kinds(tool, wave, flux, [1 / SIGNAL] * len(wave)).items():
        row, = tool.fit(tool.path(name))
        expect(f"{name}: {row['VRAD']} of {row['NPIX_TOT']} pixels, expected {first} of {pixels}",
               abs(float(row["VRAD"]) - first) < (0.5 if pixels < len(wave) else 0.1) * error and
               int(row["NPIX_TOT"]) == pixels and abs(float(row["VRAD_ERR"]) / error - 1) < 0.1)
    sdss = table["spec-0001-50000-0007.fits"]
    expect(f"identity: {sdss}", [sdss[k] for k in ("PLATE", "MJD", "FIBERID", "RA", "DEC")] ==
           ["1", "50000", "7", "12.5", "-3.25"])
    expect("bit 11 is no fault", sdss["NPIX_TOT"] == table["three.txt"]["NPIX_TOT"] == "2500")
    expect("OBJECT", table["star_x1d.fits"]["OBJECT"] == "STAR-1")
    linear_image(tool, lines)
    velocity = float(tool.fit(tool.path("linear.fits"))[0]["VRAD"])
    expect(f"linear.fits: {velocity}", abs(velocity - VELOCITY) < 4 * error)
    write_text(tool.path("two.txt"), "", wave, flux)
    scatter = tool.fit(tool.path("two.txt"))[0]
    ratio = float(scatter["VRAD_ERR"]) / error
    expect(f"two.txt: {scatter['VRAD']}, errors {ratio} of the true ones",
           abs(float(scatter["VRAD"]) - first) < error and 0.85 < ratio < 1.5)
    # the flux is wrong in the pixels with SDSS's bad bits
    bad = {"flux": [f + 50 * (100 <= k < 140) for k, f in enumerate(flux)], "loglam": [math.log10(w) for w in wave],
           "ivar": [SIGNAL ** 2] * len(wave), "and_mask": [(1 << 24) * (100 <= k < 140) for k in range(len(wave))]}
    save(tool.path("bad.fits"), empty(), columns("COADD", bad))
    row = tool.fit(tool.path("bad.fits"))[0]
    expect(f"bad.fits: {row['NPIX_TOT']} pixels, {row['VRAD']}",
           row["NPIX_TOT"] == "2460" and abs(float(row["VRAD"]) - first) < error)


# ---- several ----------------------------------------------------------------------------------------


def exposures(tool, lines):
    names, alone = [], []
    for k in range(12):
        wave = made.grid(4200 + 0.3 * k, 5900 + 0.2 * k, 2500)  # no two of them have the same wavelengths
        flux, error = made.star(wave, lines, VELOCITY, Q, SIGNAL, 100 + k)
        names.append(tool.path(f"exposure-{k:02}.fits"))
        save(names[-1], empty([("OBJECT", "A" if k < 9 else "B")]),
             columns("S", {"WAVE": wave, "FLUX": flux, "ERR": error}))
    with open(tool.path("list.txt"), "w", encoding="ascii") as file:
        file.write("# exposures\n" + "\n".join(names) + "\n")
    rows = tool.fit("@" + tool.path("list.txt"))
    expect(f"{len(rows)} rows of a list", len(rows) == 12)
    expect("files in order", [r["FILE"] for r in rows] == names)
    fields = ["VRAD_ERR", "TEFF_ERR", "LOGG_ERR", "FEH_ERR"]
    alone = {f: math.sqrt(1 / (sum(1 / float(r[f]) ** 2 for r in rows) / 12)) for f in fields}
    for n in (1, 3, 12):
        one, = tool.fit(*names[:n], "--combine", "all")
        for f in fields:
            ratio = float(one[f]) * math.sqrt(n) / alone[f]
            print(f"{n} exposures: {f} x sqrt(N) is {ratio:.4f} of one exposure's")
            expect(f"{n} exposures: {f} is {ratio} of what is expected", n == 1 or abs(ratio - 1) < 0.03)
        pull = (float(one["VRAD"]) - VELOCITY) / float(one["VRAD_ERR"])
        expect(f"{n} exposures: velocity {pull} sigma off", abs(pull) < 4)
        expect("EXPOSURES", one["EXPOSURES"] == str(n))
    by_name = tool.fit(tool.path("exposure-*.fits"), "--combine", "target", "--models", tool.path("models.fits"))
    expect(f"OBJECTs: {[(r['OBJECT'], r['EXPOSURES']) for r in by_name]}",
           [(r["OBJECT"], r["EXPOSURES"]) for r in by_name] == [("A", "9"), ("B", "3")])
    models = kit.read(tool.path("models.fits"))
    expect("models", models["MODEL"].axes == [2500, 12] and
           models["SPECTRA"].column("STAR") == [0] * 9 + [1] * 3 and
           models["SPECTRA"].column("FILE")[11] == tool.path("exposure-11.fits"))
    worst = max(abs(m - f) for m, f in zip(models["MODEL"].values(11), flux))
    expect(f"the last model is {worst} off the data", worst < 6 / SIGNAL)


def targets(tool):
    """Tests a DESI file in which the same TARGETID occurs twice, as one star."""
    coadd = testdata.path_of("specfit/data/coadd-synth-a.fits.gz")
    hdus = kit.read(coadd)
    rows = [0, 3, 0]
    for hdu in hdus.values():
        if hdu.name in ("FIBERMAP", "SCORES"):
            hdu.data = b"".join(hdu.row(i) for i in rows)
            hdu.set("NAXIS2", len(rows))
        elif len(hdu.axes) > 1:
            size = abs(int(hdu.get("BITPIX"))) // 8
            for axis in hdu.axes[:-1]:
                size *= axis
            hdu.data = b"".join(hdu.data[i * size:(i + 1) * size] for i in rows)
            hdu.set(f"NAXIS{len(hdu.axes)}", len(rows))
    twice = tool.path("spectra-twice.fits")
    kit.write(twice, hdus)
    desi = Tool(tool.cleave, tool.folder, testdata.path_of("specfit/lib"))
    single = desi.fit(twice)
    pair = desi.fit(twice, "--combine", "target")
    expect(f"{len(single)} and {len(pair)} rows", len(single) == 3 and len(pair) == 2)
    expect("TARGETIDs", [r["TARGETID"] for r in pair] == [r["TARGETID"] for r in single[:2]])
    ratio = float(pair[0]["VRAD_ERR"]) / float(single[0]["VRAD_ERR"])
    expect(f"the same spectrum twice: {ratio}", abs(ratio * math.sqrt(2) - 1) < 0.01)
    expect("the other", all(abs(float(pair[1][k]) - float(single[1][k])) < 1e-3 for k in ("VRAD", "LOGG")))
    both = desi.fit(twice, coadd, "--targets", single[1]["TARGETID"])
    expect(f"two files: {[(r['FILE'], r['VRAD']) for r in both]}",
           [r["FILE"] for r in both] == [twice, coadd] and
           both[0]["VRAD"] == both[1]["VRAD"])
    for hdu in [n for n in hdus if n.startswith("R_")]:
        del hdus[hdu]
    kit.write(tool.path("without-r.fits"), hdus)
    without = desi.fit(tool.path("without-r.fits"))
    expect(f"without an arm: {without[0]['VRAD']}", "CHISQ_R" not in without[0] and abs(
        float(without[0]["VRAD"]) - float(single[0]["VRAD"])) < 5 * float(without[0]["VRAD_ERR"]))


def resolution(tool, lines):
    """Tests the star smoothed by 1.6 pixels, described in SDSS's way and by a resolving power."""
    wave = made.grid(4200, 5900, 2000)
    sharp, _ = made.star(wave, lines, VELOCITY, Q, 1e9, 1)
    noise, error = made.star(wave, lines, VELOCITY, Q, 100, 7)
    noise = [n - s for n, s in zip(noise, sharp)]
    sigma, reach = 1.6, 8
    taps = [math.exp(-0.5 * (m / sigma) ** 2) for m in range(-reach, reach + 1)]
    smooth = [sum(t * sharp[min(max(k + m, 0), len(wave) - 1)] for t, m in zip(taps, range(-reach, reach + 1))) /
              sum(taps) for k in range(len(wave))]
    flux = [s + n for s, n in zip(smooth, noise)]
    table = {"flux": flux, "loglam": [math.log10(w) for w in wave], "ivar": [1e4] * len(wave),
             "and_mask": [0] * len(wave), "wdisp": [sigma] * len(wave)}
    save(tool.path("smooth.fits"), empty(), columns("COADD", table))
    write_text(tool.path("smooth.txt"), "", wave, flux, error)
    step = wave[1] / wave[0] - 1
    sharp_library = tool.path("config.yaml")
    with open(sharp_library, "w", encoding="ascii") as file:
        file.write("lsf_sigma0_angstrom: 0.001\n")
    own = ["--config", sharp_library, "--max-vsini", "5"]
    without, = tool.fit(tool.path("smooth.fits"), *own)
    seen, = tool.fit(tool.path("smooth.fits"), *own, "--resolution", "on")
    power, = tool.fit(tool.path("smooth.txt"), *own, "--resolving-power", str(1 / (step * sigma * 2.35482)))
    chi = [float(r["CHISQ_TOT"]) / float(r["NPIX_TOT"]) for r in (without, seen, power)]
    expect(f"chi2/n {chi}", chi[0] > 1.5 and chi[1] < 1.12 and abs(chi[2] - chi[1]) < 0.01)
    expect(f"velocity {seen['VRAD']}", abs(float(seen["VRAD"]) - VELOCITY) < 4 * float(seen["VRAD_ERR"]))
    tool.refuses("line-spread function", tool.path("smooth.txt"), "--resolution", "on")


def named_columns(tool, lines):
    """Reads columns of any name from FITS and text, and from two folders that have files of the same name."""
    wave = made.grid(4200, 5900, 1500)
    flux, error = made.star(wave, lines, VELOCITY, Q, SIGNAL, 55)
    usual = tool.path("usual.fits")
    mask = [int(k % 50 == 7) for k in range(len(wave))]
    spoilt = [f + 50 * m for f, m in zip(flux, mask)]  # the mask leaves these pixels out
    save(usual, empty(), columns("S", {"WAVE": wave, "FLUX": spoilt, "ERR": error, "MASK": mask}))
    odd = {"LAM_OBS": wave, "COUNTS": spoilt, "RMS": error, "IVAR": [1.0] * len(wave), "BADPIX": mask}
    names = []
    for folder in ("one", "two"):
        os.mkdir(tool.path(folder))
        names.append(tool.path(f"{folder}/odd.fits"))
        save(names[-1], empty(), columns("S", odd))
    with open(tool.path("odd.txt"), "w", encoding="ascii") as file:
        file.write("# LAM_OBS COUNTS RMS BADPIX\n")
        file.writelines(f"{w!r} {f!r} {e!r} {m}\n" for w, f, e, m in zip(wave, spoilt, error, mask))
    option = ["--columns", "wave=LAM_OBS,flux=COUNTS,error=RMS,mask=BADPIX"]
    want, = tool.fit(usual)
    rows = tool.fit(*names, tool.path("odd.txt"), *option)
    expect(f"named columns: {[(r['VRAD'], r['NPIX_TOT']) for r in rows]}, {want['VRAD']} expected",
           all(abs(float(r["VRAD"]) - float(want["VRAD"])) < 1e-3 * float(want["VRAD_ERR"]) and
               r["NPIX_TOT"] == want["NPIX_TOT"] for r in rows))
    expect(f"paths {[r['FILE'] for r in rows]}", [r["FILE"] for r in rows[:2]] == names)
    with open(tool.path("priors.csv"), "w", encoding="ascii") as file:
        file.write(f"FILE,TEFF\n{names[0]},5400\n{names[1]},5600\n")
    rows = tool.fit(*names, *option, "--priors", tool.path("priors.csv"))
    expect(f"priors by path: {[r['TEFF'] for r in rows]}", [float(r["TEFF"]) for r in rows] == [5400, 5600])
    with open(tool.path("priors.csv"), "w", encoding="ascii") as file:
        file.write("FILE,TEFF\nodd.fits,5450\n")
    row, = tool.fit(names[0], *option, "--priors", tool.path("priors.csv"))
    expect(f"priors by name: {row['TEFF']}", float(row["TEFF"]) == 5450)
    tool.refuses("odd.fits could be", *names, *option, "--priors", tool.path("priors.csv"))
    tool.refuses("no spectrum found", names[0])
    tool.refuses("the columns that you named (Q)", names[0], "--columns", "flux=Q")
    tool.refuses("the column names that you gave (Q)", tool.path("odd.txt"), "--columns", "wave=Q")
    tool.refuses("the roles are wave", names[0], "--columns", "lux=COUNTS")
    tool.refuses("the roles are wave", names[0], "--columns", "flux")
    tool.refuses('"lux=COUNTS", but', names[0], "--columns", "wave=LAM_OBS,lux=COUNTS")
    tool.refuses("flux is given twice", names[0], "--columns", "flux=COUNTS,flux=RMS")
    tool.refuses("given for two roles", names[0], "--columns", "flux=COUNTS,error=counts")
    with open(tool.path("blanks.csv"), "w", encoding="ascii") as file:
        file.write('"my lam [nm]",the counts,RMS of it,BADPIX\n')
        file.writelines(f"{w / 10!r},{f!r},{e!r},{m}\n" for w, f, e, m in zip(wave, spoilt, error, mask))
    row, = tool.fit(tool.path("blanks.csv"), "--columns", "wave=my lam,flux=the counts,error=RMS of it,mask=BADPIX")
    expect(f"names with blanks: {row['VRAD']}", abs(float(row["VRAD"]) - float(want["VRAD"])) < 1e-3 and
           row["NPIX_TOT"] == want["NPIX_TOT"])
    with open(tool.path("priors.csv"), "w", encoding="ascii") as file:
        file.write("FILE,TEFF\nodd.fits,5450\nodd.fits,5400\n")
    tool.refuses("two rows name odd.fits", *names, *option, "--priors", tool.path("priors.csv"))


def white_dwarf(tool):
    """Tests hydrogen lines with broad wings, for which teff and logg stand for depth and width."""
    path = "specfit/real/spec-0266-51602-0031.fits"
    if not testdata.has(path):
        return
    names = [6564.61, 4862.68, 4341.68, 4102.89, 3971.19]
    library = tool.path("white-dwarf")

    class Balmer(made.Lines):
        def __init__(self):
            self.lines = []

        def log_flux(self, wave, q):
            out = []
            deep = 0.25 * (1 + 4 * (q[0] - made.MIDDLE[0]))
            for w in wave:
                v = 0.0
                for place in names:
                    narrow = 1 / (1 + ((w - place) / 6) ** 2)
                    wide = 1 / (1 + ((w - place) / 28) ** 2) ** 1.5
                    v -= deep * (0.35 * narrow + wide) * (1 + 0.1 * (q[1] - 3.5))
                    v -= 0.2 * (q[2] + 0.75) * narrow + 0.5 * (q[3] - 0.2) * wide
                out.append(v)
            return out

    made.write_library(library, {"sdss1": (3700.0, 9400.0, 4500, Balmer())})
    dwarf = Tool(tool.cleave, tool.folder, library)
    row, = dwarf.fit(testdata.path_of(path), "--resolution", "on", "--max-vel", "800")
    pipeline, its_error = -3.69145e-5 * made.LIGHT, 8.84178e-5 * made.LIGHT
    print(f"white dwarf: {row['VRAD']} +- {row['VRAD_ERR']} km/s, SDSS's pipeline {pipeline:.1f} +- {its_error:.1f}; "
          f"chi2/n {float(row['CHISQ_TOT']) / float(row['NPIX_TOT']):.3f}")
    expect(f"white dwarf: {row}", abs(float(row["VRAD"]) - pipeline) < math.hypot(float(row["VRAD_ERR"]), its_error))
    expect("its place", row["PLATE"] == "266" and row["FIBERID"] == "31" and abs(float(row["RA"]) - 147.32107) < 1e-6)


def refusals(tool, lines):
    write_text(tool.path("bent.txt"), "", [1, 2, 2, 3] * 10, [1] * 40, [1] * 40)
    tool.refuses("neither rise nor fall", tool.path("bent.txt"))
    with open(tool.path("words.txt"), "w", encoding="ascii") as file:
        file.write("4000 1 1\n4001 one 1\n")
    tool.refuses('line 2: "one" is not a number', tool.path("words.txt"))
    tool.refuses("no file matches this name", tool.path("nothing-*.fits"))
    save(tool.path("empty.fits"), empty())
    tool.refuses("no spectrum found", tool.path("empty.fits"))
    write_text(tool.path("far.txt"), "", [9000 + k for k in range(100)], [1] * 100, [1] * 100)
    tool.refuses("none of its wavelengths", tool.path("far.txt"))
    write_text(tool.path("nm.txt"), "", [430 + k for k in range(100)], [1] * 100, [1] * 100)
    tool.refuses("If they are in nm", tool.path("nm.txt"))
    save(tool.path("um.fits"), empty(), columns("S", {"WAVE": [0.43 + k / 1000 for k in range(99)] + [101.0],
                                                      "FLUX": [1.0] * 100, "ERR": [1.0] * 100}))
    tool.refuses("If they are in um", tool.path("um.fits"))
    write_text(tool.path("nan.txt"), "", [4300 + k for k in range(100)], [float("nan")] * 100, [1] * 100)
    done = tool.run(tool.path("nan.txt"), "-o", tool.path("nan.csv"))
    expect(f"a flux of NaN: {done.stderr}", "its flux is NaN or infinite in every pixel" in done.stderr)
    save(tool.path("hertz.fits"), image([("CTYPE1", "FREQ"), ("CRVAL1", 5e14), ("CDELT1", 1e11)], [1.0] * 100))
    tool.refuses('axis is "FREQ"', tool.path("hertz.fits"))
    tool.refuses("--arm", tool.path("three.txt"), "--arm", "nothing")
    tool.refuses("none of VHELIO", tool.path("three.txt"), "--barycentric", "header")
    for speed in (-12345.6, 299792.458, 1e300):  # in m/s, that of light, and beyond
        save(tool.path("fast.fits"), empty([("BERV", speed)]), columns("S", {
            "WAVE": [4300.0 + k for k in range(100)], "FLUX": [1.0] * 100, "ERR": [1.0] * 100}))
        tool.refuses(f"a barycentric velocity of {speed:g} km/s, but at most 1000", tool.path("fast.fits"),
                     "--barycentric", "header")
    tool.refuses("pixels, but at most 10.3 are possible", tool.path("three.txt"), "--resolving-power", "30")
    tool.refuses("is 0, but it is wavelength / FWHM", tool.path("three.txt"), "--resolving-power", "0")
    coadd = testdata.path_of("specfit/data/coadd-synth-a.fits.gz")
    for option in (["--resolving-power", "3000"], ["--barycentric", "3"], ["--wavelengths", "air"], ["--arm", "desi_r"],
                   ["--columns", "flux=F"]):
        tool.refuses(f"{option[0]} is for single spectra", coadd, *option)
    done = tool.run(coadd, tool.path("three.txt"), "--wavelengths", "vacuum", "-o", tool.path("mixed.csv"))
    expect(f"a DESI file among others: {done.stderr}", "--wavelengths is for single spectra and" in done.stderr)
    tool.refuses("are possible with a single DESI file only", tool.path("three.txt"), "--zbest_include")
    many = [tool.path("three.txt")] * 37
    tool.refuses("at most 36", *many, "--combine", "all")


def main():
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "library")
        lines = made.Lines(4150, 5950, 120, 3)
        made.write_library(library, {"one": (4100.0, 6000.0, 6000, lines)})
        tool = Tool(sys.argv[1], folder, library)
        kinds(tool, lines)
        exposures(tool, lines)
        targets(tool)
        frames(tool)
        resolution(tool, lines)
        named_columns(tool, lines)
        white_dwarf(tool)
        refusals(tool, lines)
    for wrong in WRONG:
        print(wrong)
    return len(WRONG) > 0


if __name__ == "__main__":
    sys.exit(main())
