#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests `cleave templates`: it makes libraries from models in PHOENIX's published layout, and from a table of spectra.

usage: specfit_templates.py CLEAVE
The models are made here: files as PHOENIX publishes them (a vector of wavelengths, a primary image of float32 and the
keywords PHXTEFF, PHXLOGG, PHXM_H and PHXALPHA in each), with sharp lines. The templates equal a plain sum over the
model's points. A star that the test smooths has its true velocity and temperature. A table of text files in air gives
the same library. Wrong calls are refused with a message that names the mistake. A run that fails or is ended leaves no
files."""
import csv
import json
import math
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

import specfit_kit as kit
import specfit_made as made

TEFF, LOGG, FEH, ALPHA = [5000, 5500, 6000], [3.5, 4.5], [-0.5, 0.0], [0.0, 0.4]
FIRST, LAST, MODEL_STEP = 5005.0, 5195.0, 0.02  # step of the models
ARM = (5050.0, 5150.0, 0.2)
SIGMA, POWER = 0.5, 500000
FWHM = 2 * math.sqrt(2 * math.log(2))
WRONG = []


def expect(what, condition):
    if not condition:
        WRONG.append(what)


def wavelengths():
    return [FIRST + MODEL_STEP * i for i in range(round((LAST - FIRST) / MODEL_STEP) + 1)]


class Models:
    def __init__(self):
        self.wave = wavelengths()
        self.lines = made.Lines(FIRST, LAST, 60, 11, width=0.12)

    def flux(self, teff, logg, feh, alpha):
        """Returns fluxes in the unit of PHOENIX, erg/s/cm^2/cm, 1e14 and more, with a slope."""
        q = [math.log10(teff), logg, feh, alpha]
        return [2e14 * (teff / 5000) ** 4 * (1 - 0.3 * (w - 5100) / 100) * math.exp(v)
                for w, v in zip(self.wave, self.lines.log_flux(self.wave, q))]


def image(numbers, code, cards):
    hdu = kit.Hdu([])
    hdu.cards.append("SIMPLE  =                    T".ljust(80))
    for key, value in (("BITPIX", {"f": -32, "d": -64}[code]), ("NAXIS", 1), ("NAXIS1", len(numbers))):
        hdu.set(key, value)
    for key, value in cards:
        hdu.set(key, value)
    hdu.data = struct.pack(f">{len(numbers)}{code}", *numbers)
    return hdu


def write_phoenix(folder, models, leave_out):
    """Writes files such as
    PHOENIX-ACES-AGSS-COND-2011/Z-0.0/lte05000-3.50-0.0.PHOENIX-ACES-AGSS-COND-2011-HiRes.fits."""
    name = "PHOENIX-ACES-AGSS-COND-2011"
    os.makedirs(folder)
    kit.write(os.path.join(folder, f"WAVE_{name}.fits"), {"P": image(models.wave, "d", [("UNIT", "Angstrom")])})
    for t in TEFF:
        for g in LOGG:
            for f in FEH:
                for a in ALPHA:
                    if (t, g, f, a) == leave_out:
                        continue
                    below = f"Z{f:+.1f}" if f else "Z-0.0"
                    below += f".Alpha={a:+.2f}" if a else ""
                    os.makedirs(os.path.join(folder, name, below), exist_ok=True)
                    path = os.path.join(folder, name, below, f"lte{t:05d}-{g:.2f}{below[1:]}.{name}-HiRes.fits")
                    cards = [("PHXTEFF", float(t)), ("PHXLOGG", float(g)), ("PHXM_H", float(f)),
                             ("PHXALPHA", float(a)), ("BUNIT", "erg/s/cm^2/cm")]
                    kit.write(path, {"P": image(models.flux(t, g, f, a), "f", cards)})


def load(path):
    with open(path, "rb") as file:
        raw = file.read()
    length = struct.unpack("<H", raw[8:10])[0]
    head = eval(raw[10:10 + length].decode("ascii"))  # a dict of literals, from our own writer
    count = math.prod(head["shape"])
    code = {"<f4": "f", "<f8": "d", "<i4": "i"}[head["descr"]]
    return head["shape"], struct.unpack(f"<{count}{code}", raw[10 + length:])


def smoothed(wave, flux, at, low, high, sigma):
    """Returns photons that are smoothed with a Gaussian and averaged from low to high, by a plain sum over the model's
    points. Straight lines between the points act like a Gaussian of width sqrt(step^2 / 6)."""
    sigma = math.sqrt(sigma ** 2 + MODEL_STEP ** 2 / 6)
    first = max(0, int((low - 7 * sigma - wave[0]) / MODEL_STEP))
    end = min(len(wave), int((high + 7 * sigma - wave[0]) / MODEL_STEP) + 2)
    total = seen = 0.0
    for w, f in zip(wave[first:end], flux[first:end]):
        weight = math.erf((high - w) / sigma / math.sqrt(2)) - math.erf((low - w) / sigma / math.sqrt(2))
        total, seen = total + weight * f * w, seen + weight
    return total / seen / at


class Tool:
    def __init__(self, cleave, folder):
        self.cleave, self.folder = cleave, folder

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def run(self, *arguments, **options):
        return subprocess.run([self.cleave, *arguments], capture_output=True, text=True, timeout=300, **options)

    def make(self, models, output, *options):
        done = self.run("templates", models, "-o", self.path(output),
                        *([] if "--arm" in options else ["--arm", "green=%g:%g:%g" % ARM]), *options)
        if done.returncode:
            sys.exit(f"{' '.join(options)}: exit code {done.returncode}\n{done.stderr}")
        return done.stderr

    def refuses(self, part, *arguments):
        done = self.run("templates", *arguments)
        if done.returncode != 2 or part not in done.stderr:
            WRONG.append(f"{' '.join(arguments)}: exit code {done.returncode}, {done.stderr!r}")


def templates_are_right(tool, models, library):
    with open(tool.path(library, "lib.json"), encoding="ascii") as file:
        about = json.load(file)["arms"]["green"]
    step = math.log1p(ARM[2] / (0.5 * (ARM[0] + ARM[1])))
    margin = 1 + 1000 / made.LIGHT
    points = math.ceil((math.log(ARM[1] * margin) - math.log(ARM[0] / margin)) / step)
    expect("number of points", about["npix"] == points and about["nodes"] == [3, 2, 2, 2])
    expect("first wavelength", abs(about["lam0"] / (ARM[0] / margin) - 1) < 1e-12)
    expect("last wavelength", abs(about["lam1"] / about["lam0"] / math.exp(step * (points - 1)) - 1) < 1e-12)
    expect("sigma", abs(about["sigma"] - SIGMA) < 1e-12)
    lam = [about["lam0"] * math.exp(step * i) for i in range(points)]
    shape, log_flux = load(tool.path(library, "green", "log_flux.npy"))
    _, rows = load(tool.path(library, "green", "grid.npy"))
    expect("number of templates", shape == (23, points))
    expect("one node without a model", rows.count(-1) == 1 and sorted(rows)[1:] == list(range(23)))
    worst = 0.0
    for node, (t, g, f, a) in enumerate((t, g, f, a) for t in TEFF for g in LOGG for f in FEH for a in ALPHA):
        if rows[node] < 0 or node % 5:
            continue
        flux, want = models.flux(t, g, f, a), []
        picked = range(node % 7, points, 7)
        for n in picked:
            edges = [0.5 * (lam[n] + lam[n - 1]) if n else lam[0] - 0.5 * (lam[1] - lam[0]),
                     0.5 * (lam[n] + lam[n + 1]) if n + 1 < points else lam[n] + 0.5 * (lam[n] - lam[n - 1])]
            sigma = math.sqrt(SIGMA ** 2 - (lam[n] / POWER / FWHM) ** 2)
            want.append(math.log(smoothed(models.wave, flux, lam[n], *edges, sigma)))
        got = [log_flux[rows[node] * points + n] for n in picked]
        shift = sum(w - g for w, g in zip(want, got)) / len(got)  # the norm is not compared
        worst = max(worst, max(abs(w - g - shift) for w, g in zip(want, got)))
    print(f"templates: largest difference {worst:.1e}")
    expect(f"templates differ by {worst}", worst < 1e-5)
    shape, starts = load(tool.path(library, "green", "ccf_models.npy"))
    expect("start templates", shape == (23, 512) and 0.95 < sorted(starts)[len(starts) // 2] < 1.05)


def star_is_found(tool, models, library):
    """Tests a star at 61.3 km/s without noise, seen by an instrument with the resolution of the templates."""
    width = math.sqrt(SIGMA ** 2 + ARM[2] ** 2 / 12 + MODEL_STEP ** 2 / 6)
    velocity, q = 61.3, (5300, 4.0, -0.3, 0.15)  # the cell above 5500 K lacks a corner
    flux = models.flux(*q)
    stretch = math.sqrt((1 + velocity / made.LIGHT) / (1 - velocity / made.LIGHT))
    moved = [w * stretch for w in models.wave]
    with open(tool.path("star.txt"), "w", encoding="ascii") as file:
        middle = None
        for i in range(240):
            at = 5052.0 + 0.4 * i
            first = max(0, int((at - 4 - moved[0]) / MODEL_STEP))
            total = seen = 0.0
            for w, f in zip(moved[first:first + 410], flux[first:first + 410]):
                weight = math.exp(-0.5 * ((w - at) / width) ** 2)
                total, seen = total + weight * f, seen + weight
            middle = middle or total / seen
            file.write(f"{at:.3f} {total / seen / middle:.7f} 0.001\n")
    out = tool.path("star.csv")
    done = tool.run("specfit", tool.path("star.txt"), "--library", tool.path(library), "-o", out, "--max-vel", "500",
                    "--wavelengths", "vacuum", "--npoly", "4", "-q")
    if done.returncode:
        sys.exit(done.stderr)
    with open(out, encoding="ascii") as file:
        row = next(csv.DictReader(file))
    print("star:", {k: row[k] for k in ("VRAD", "VRAD_ERR", "TEFF", "LOGG", "FEH", "ALPHAFE", "CHISQ_TOT", "NPIX_TOT")})
    expect(f"velocity {row['VRAD']}", abs(float(row["VRAD"]) - velocity) < 0.1)
    expect(f"temperature {row['TEFF']}", abs(float(row["TEFF"]) - q[0]) < 40)
    expect(f"chi-square {row['CHISQ_TOT']}", float(row["CHISQ_TOT"]) < 0.5 * float(row["NPIX_TOT"]))
    return row


def air_of(vacuum):
    """Inverts the formula of Morton (2000) by iteration."""
    air = vacuum
    for _ in range(6):
        s2 = (1e4 / vacuum) ** 2
        air = vacuum / (1 + 8.34254e-5 + 2.406147e-2 / (130 - s2) + 1.5998e-4 / (38.9 - s2))
    return air


def table_is_the_same(tool, models, library):
    """Tests that text files in air with fluxes of 1e-17 give the library of PHOENIX's files, except for rounding."""
    with open(tool.path("models.csv"), "w", encoding="ascii") as listing:
        listing.write("FILE,TEFF,LOGG,FEH,ALPHA\n")
        for i, (t, a) in enumerate((t, a) for t in TEFF[:2] for a in ALPHA):
            with open(tool.path(f"model-{i}.txt"), "w", encoding="ascii") as file:
                file.write("wave flux\n")
                for w, f in zip(models.wave, models.flux(t, 4.5, 0.0, a)):
                    file.write(f"{air_of(w):.9f} {f * 1e-31:.9e}\n")
            listing.write(f"model-{i}.txt,{t},4.5,0,{a}\n")
    said = tool.make(tool.path("models.csv"), "table", "--sigma", str(SIGMA), "--model-power", str(POWER),
                     "--wavelengths", "air")
    expect("one logg", "logg = 4.5" in said and "feh = 0" in said)
    tool.make(tool.path("phoenix"), "part", "--sigma", str(SIGMA), "--select",
              "teff=5000:5500,logg=4.5:4.5,feh=0:0")
    (_, one), (_, two) = (load(tool.path(name, "green", "log_flux.npy")) for name in ("table", "part"))
    worst = max(abs(x - y) for x, y in zip(one, two)) if len(one) == len(two) else math.inf
    print(f"table against PHOENIX: {worst:.1e}")
    expect(f"a table's templates differ by {worst}", worst < 2e-5)
    row = star_is_found_with_one_gravity(tool)
    expect("gravity is held", float(row["LOGG"]) == 4.5 and float(row["LOGG_ERR"]) == 0 and
           0 < float(row["TEFF_ERR"]) < 500)


def star_is_found_with_one_gravity(tool):
    out = tool.path("held.csv")
    done = tool.run("specfit", tool.path("star.txt"), "--library", tool.path("part"), "-o", out, "--max-vel", "500",
                    "--wavelengths", "vacuum", "--npoly", "4")
    expect(f"what is held is told: {done.stderr}", done.returncode == 0 and "only logg = 4.5" in done.stderr)
    with open(out, encoding="ascii") as file:
        return next(csv.DictReader(file))


def wrong_calls_are_refused(tool):
    phoenix, arm = tool.path("phoenix"), ["--arm", "green=%g:%g:%g" % ARM]
    none = ["-o", tool.path("none")]
    tool.refuses("-o DIR is missing", phoenix, *arm)
    tool.refuses("already has a library", phoenix, "-o", tool.path("library"), *arm)
    tool.refuses("are needed for 4000.00 to 5150.00", phoenix, *none, "--arm", "green=4000:5150:0.2")
    tool.refuses("must be larger", phoenix, *none, *arm, "--resolving-power", "600000")
    tool.refuses("no models that --select selects", phoenix, *none, *arm, "--select", "teff=9000:9900")
    tool.refuses("must be NAME=FROM:TO:STEP", phoenix, *none, "--arm", "green=5050:5150")
    for profile in ("1e-300", "1e5", "R0.5", "R1e300"):  # as for --sigma and --resolving-power
        tool.refuses("own sigma, 0.0001 to 10000 Angstrom, or R and a resolving power, 1 to 1e+07", phoenix, *none,
                     "--arm", f"green=5050:5150:0.2:{profile}")
    tool.refuses("give one of them", phoenix, *none, *arm, "--sigma", "1", "--resolving-power", "5000")
    tool.refuses("ranges of teff", phoenix, *none, *arm, "--select", "mass=1:2")
    tool.refuses("no column ALPHA", write(tool, "bad.csv", "FILE,TEFF,LOGG,FEH\nx.txt,1,2,3\n"), *none, *arm)
    tool.refuses("have the same parameters", write(
        tool, "twice.csv", "FILE,TEFF,LOGG,FEH,ALPHA\na.txt,5000,4,0,0\nb.txt,5000,4,0,0\n"), *none, *arm)
    tool.refuses("gone.txt", write(tool, "gone.csv", "FILE,TEFF,LOGG,FEH,ALPHA\ngone.txt,5000,4,0,0\n"), *none, *arm)
    os.makedirs(tool.path("other", "Z-0.0"))
    kit.write(tool.path("other", "Z-0.0", "x.fits"), {"P": image([1.0] * 50, "f", [("PHXTEFF", 5000.0)])})
    tool.refuses("no file of wavelengths", tool.path("other"), *none, *arm)
    wave = next(os.path.join(phoenix, name) for name in os.listdir(phoenix) if name.startswith("WAVE"))
    tool.refuses("PHXLOGG", tool.path("other"), *none, *arm, "--wave", wave)
    cards = [(key, 1.0) for key in ("PHXTEFF", "PHXLOGG", "PHXM_H", "PHXALPHA")]
    kit.write(tool.path("other", "Z-0.0", "x.fits"), {"P": image([1.0] * 50, "f", cards)})
    tool.refuses("50 fluxes", tool.path("other"), *none, *arm, "--wave", wave)
    tool.refuses("have the same parameters", write(  # except for the rounding of numbers in text
        tool, "zero.csv", "FILE,TEFF,LOGG,FEH,ALPHA\na.txt,5000,4,0,0\nb.txt,5000.001,4,-0.0,0\n"), *none, *arm)
    tool.refuses("logg is 7.7e+14, but it must lie between -1e+06 and 1e+06", write(
        tool, "huge.csv", "FILE,TEFF,LOGG,FEH,ALPHA\na.txt,5000,7.7e14,0,0\n"), *none, *arm)
    expect("no folder without a library", not os.path.exists(tool.path("none")))


def ended_by(tool, number, out, arguments):
    """Returns the exit code of a run that gets the signal while it makes the library, and the files in the folder
    afterwards. On a busy machine the signal may come after the library is complete: such a run is repeated."""
    before = os.listdir(out)
    for _ in range(20):
        with tempfile.TemporaryDirectory() as cache, \
                subprocess.Popen([tool.cleave, *arguments], env=dict(os.environ, CLEAVE_CACHE_DIR=cache),
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            while process.poll() is None and len(os.listdir(out)) < 2:
                time.sleep(0.001)
            process.send_signal(number)
            code, left = process.wait(), sorted(os.listdir(out))
        if "lib.json" not in left:
            break
        for name in set(left) - set(before):
            path = os.path.join(out, name)
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    return code, left


def nothing_stays(tool):
    """Tests that a run that fails or is ended leaves no file, that the earlier files in the folder do not change, and
    that the next run succeeds."""
    phoenix, out = tool.path("phoenix"), tool.path("ended")
    good = ["templates", phoenix, "-o", out, "--arm", "green=%g:%g:%g" % ARM]
    failed = lambda what, done, code, part: expect(
        f"{what}: exit code {done.returncode}, {done.stderr!r}, left {os.path.exists(out) and os.listdir(out)}",
        done.returncode == code and part in done.stderr and not os.path.exists(out))
    failed("bad second arm", tool.run(*good, "--arm", "blue=4000:4100:0.2"), 2, "for 4000.00 to 4100.00")
    failed("small files", tool.run(*good, "--mode", "reference", preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_FSIZE, (9000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))), 1, "File too large")
    rows = ["FILE,TEFF,LOGG,FEH,ALPHA"]
    for i, t in enumerate(TEFF):
        lines = ["%.2f %s" % (w, "nan" if t == TEFF[1] and w > 5100 else "1") for w in wavelengths()[::5]]
        write(tool, f"flat-{i}.txt", "wave flux\n" + "\n".join(lines) + "\n")
        rows.append(f"flat-{i}.txt,{t},4,0,0")
    failed("a flux that is no number", tool.run(
        "templates", write(tool, "flat.csv", "\n".join(rows) + "\n"), *good[2:]), 2, "flat-1.txt: ")
    os.makedirs(out)
    write(tool, os.path.join("ended", "mine.txt"), "mine\n")
    code, left = ended_by(tool, signal.SIGTERM, out, good)
    expect(f"ended by a signal: {code}, {left}", code == 130 and left == ["mine.txt"])
    code, left = ended_by(tool, signal.SIGKILL, out, good)
    expect(f"killed: {code}, {left}", code == -signal.SIGKILL and len(left) == 2 and left[1] == "mine.txt" and
           left[0].startswith("cleave-templates-"))
    os.utime(os.path.join(out, left[0]), (time.time() - 3600, time.time() - 3600))  # an hour later
    done = tool.run(*good)
    left = sorted(os.listdir(out))
    expect(f"after the ended runs: {done.stderr}, {left}", done.returncode == 0 and left == [
        "ccf_params.npy", "ccf_vsinis.npy", "green", "lib.json", "mine.txt"])
    os.remove(os.path.join(out, "lib.json"))
    tool.refuses("already has a folder of that arm (green)", *good[1:])


def write(tool, name, text):
    with open(tool.path(name), "w", encoding="ascii") as file:
        file.write(text)
    return tool.path(name)


def main():
    models = Models()
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(os.path.abspath(sys.argv[1]), folder)
        write_phoenix(tool.path("phoenix"), models, leave_out=(6000, 3.5, 0.0, 0.4))
        said = tool.make(tool.path("phoenix"), "library", "--sigma", str(SIGMA), "--keep-slope")
        expect(f"missing nodes are told: {said}", "1 of 24 nodes" in said)
        templates_are_right(tool, models, "library")
        star_is_found(tool, models, "library")
        table_is_the_same(tool, models, "library")
        wrong_calls_are_refused(tool)
        nothing_stays(tool)
    print("\n".join(WRONG))
    return 1 if WRONG else 0


if __name__ == "__main__":
    sys.exit(main())
