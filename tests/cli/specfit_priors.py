#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests priors and fixed parameters of `cleave specfit`.

usage: specfit_priors.py CLEAVE
A normal prior moves the optimum and shrinks the covariance by the algebra of two Gaussians. A narrow prior has the
effect of a fixed value. A fixed parameter keeps its value and has no error, and the likelihood is not above that of the
free fit. A table can give each star its own priors. Plain C and the device agree. Wrong priors are refused."""
import csv
import math
import os
import subprocess
import sys
import tempfile

import testdata

NAMES = ["VRAD", "VSINI", "TEFF", "LOGG", "FEH", "ALPHAFE"]
STARS = [39600000000000 + k for k in (4, 9, 12, 17)]
WRONG = []


def expect(what, condition):
    if not condition:
        WRONG.append(what)


class Tool:
    def __init__(self, cleave, folder):
        self.cleave, self.folder = cleave, folder
        self.coadd = testdata.path_of("specfit/data/coadd-synth-a.fits.gz")
        self.library = testdata.path_of("specfit/lib")

    def run(self, *options, mode=("--mode", "reference"), stars=STARS):
        return subprocess.run([self.cleave, "specfit", self.coadd, "--library", self.library, "-q", "--reject", "0",
                               "--targets", ",".join(map(str, stars)), *mode, *options],
                              capture_output=True, text=True, timeout=300)

    def fit(self, *options, mode=("--mode", "reference"), stars=STARS):
        out = os.path.join(self.folder, "out.csv")
        done = self.run(*options, "-o", out, mode=mode, stars=stars)
        if done.returncode:
            sys.exit(f"{options}: {done.stderr}")
        with open(out, encoding="ascii") as file:
            return [{k: float(v) if k not in ("REF_CAT", "RR_SPECTYPE", "RR_SUBTYPE") else v for k, v in row.items()}
                    for row in csv.DictReader(file)]

    def refuses(self, part, *options):
        done = self.run(*options, "-o", os.path.join(self.folder, "none.csv"))
        if done.returncode not in (1, 2) or part not in done.stderr:
            WRONG.append(f"{options}: exit code {done.returncode}, {done.stderr!r}")


def covariance(row):
    return [[row[f"COV_{NAMES[max(a, b)]}_{NAMES[min(a, b)]}"] for b in range(6)] for a in range(6)]


def as_gaussians_say(tool, free):
    """Tests a prior that is half as wide as the error, and one error away."""
    for k in (2, 3, 0):
        for star, row in zip(STARS, free):
            if row["RVS_WARN"] or row["VSINI"] < 3:
                continue
            c = covariance(row)
            wide = math.sqrt(c[k][k])
            centre, sigma = row[NAMES[k]] + wide, wide / 2
            got, = tool.fit("--prior", f"{NAMES[k].lower()}={centre!r}:{sigma!r}", stars=[star])
            gain = 1 / (c[k][k] + sigma ** 2)
            new = covariance(got)
            for a in range(6):
                moved = row[NAMES[a]] + c[a][k] * gain * (centre - row[NAMES[a] if a == k else NAMES[k]])
                error = math.sqrt(c[a][a])
                off = (got[NAMES[a]] - moved) / error
                shrunk = c[a][a] - c[a][k] ** 2 * gain
                expect(f"{star}: prior of {NAMES[k]}: {NAMES[a]} is {off:.3f} sigma from what is expected",
                       abs(off) < 0.25)
                expect(f"{star}: prior of {NAMES[k]}: variance of {NAMES[a]} {new[a][a]}, expected {shrunk}",
                       abs(math.sqrt(new[a][a] / shrunk) - 1) < 0.15)
            price = ((got[NAMES[k]] - centre) / sigma) ** 2
            before = ((row[NAMES[k]] - centre) / sigma) ** 2
            expect(f"{star}: {NAMES[k]}: the sum is not minimised",
                   got["NEG2LOGL"] + price < row["NEG2LOGL"] + before + 0.01 and
                   got["NEG2LOGL"] > row["NEG2LOGL"] - 0.01)
            # along the line to the free optimum, the minimum of the sum lies at the optimum found, to 0.05
            best = (row[NAMES[k]] - centre) ** 2 * gain
            total = got["NEG2LOGL"] - row["NEG2LOGL"] + price
            expect(f"{star}: {NAMES[k]}: the sum rises by {total}, expected {best}", abs(total - best) < 0.2)


def narrow_is_fixed(tool, free):
    fixed = tool.fit("--fix", "teff=5500,vsini=0")
    narrow = tool.fit("--prior", "teff=5500:0.01", "--fix", "vsini=0")
    for f, n, row in zip(fixed, narrow, free):
        expect(f"fixed: {f}", f["TEFF"] == 5500 and f["VSINI"] == 0 and f["TEFF_ERR"] == 0 and
               f["COV_TEFF_TEFF"] == 0 and f["COV_TEFF_VRAD"] == 0 and f["COV_VSINI_VSINI"] == 0 and
               f["LOGG_ERR"] > 0 and f["COV_LOGG_LOGG"] > 0)
        expect(f"narrow: {n['TEFF']}, {n['NEG2LOGL']}, fixed {f['NEG2LOGL']}",
               abs(n["TEFF"] - 5500) < 0.1 and abs(n["NEG2LOGL"] - f["NEG2LOGL"]) < 0.05)
        expect("a fixed value cannot make it better", f["NEG2LOGL"] > row["NEG2LOGL"] - 0.01)
    held, = tool.fit("--fix", "vrad=12.5", stars=STARS[:1])
    expect("velocity", held["VRAD"] == 12.5 and held["VRAD_ERR"] == 0 and math.isnan(held["VRAD_SKEW"]))
    tight, = tool.fit("--prior", f"vrad={free[0]['VRAD']}:0.05", stars=STARS[:1])
    expect(f"error of a velocity with a prior: {tight['VRAD_ERR']}", 0.04 < tight["VRAD_ERR"] <= 0.0501)


def of_each_star(tool, free):
    path = os.path.join(tool.folder, "priors.csv")
    with open(path, "w", encoding="ascii") as file:
        file.write("TARGETID,TEFF,TEFF_SIGMA,LOGG,LOGG_SIGMA\n"
                   f"{STARS[1]},6000,0,,\n{STARS[2]},5000,-1,3.25,0\n")
    got = tool.fit("--priors", path, "--fix", "alpha=0.1")
    expect(f"table: {[(r['TEFF'], r['LOGG'], r['ALPHAFE']) for r in got]}",
           got[1]["TEFF"] == 6000 and got[1]["LOGG_ERR"] > 0 and got[2]["LOGG"] == 3.25 and got[2]["TEFF_ERR"] > 0 and
           all(abs(r["ALPHAFE"] - 0.1) < 1e-6 for r in got) and got[0]["TEFF_ERR"] > 0)
    with open(path, "w", encoding="ascii") as file:
        file.write("TARGETID,TEFF\n1,6000\n")
    tool.refuses("none of its 1 rows", "--priors", path)
    with open(path, "w", encoding="ascii") as file:
        file.write("NAME,TEFF\n1,6000\n")
    tool.refuses("no column TARGETID or FILE", "--priors", path)
    with open(path, "w", encoding="ascii") as file:
        file.write(f"TARGETID,TEFF\n{STARS[1]},6000\n{STARS[2]},6000\n{STARS[1]},5000\n")
    tool.refuses(f"two rows name {STARS[1]}", "--priors", path)
    with open(path, "w", encoding="ascii") as file:
        file.write(f"TARGETID,TEFF,teff\n{STARS[1]},6000,5000\n")
    tool.refuses("two columns have the name teff", "--priors", path)


def at_a_limit(tool):
    """Tests the library's limits of alpha, which are float32 numbers near -0.3 and 0.7."""
    for value in ("0.7", "-0.3"):
        rows = tool.fit("--fix", f"alpha={value}", stars=STARS[:2])
        expect(f"at the limit {value}: {rows}", all(abs(r["ALPHAFE"] - float(value)) < 1e-6 for r in rows))
    tool.refuses("is to be fixed at 0.701", "--fix", "alpha=0.701")


def far_off(tool):
    """Tests priors ten sigma away in temperature and gravity: with a single start this star ended in a corner of the
    library, 0.7 above the minimum that rvspecfit and eight starts find."""
    options = ["--prior", "teff=5600:80,logg=4.2:0.1"]
    sums = [r["NEG2LOGL"] + ((r["TEFF"] - 5600) / 80) ** 2 + ((r["LOGG"] - 4.2) / 0.1) ** 2
            for r in (*tool.fit(*options, stars=STARS[:1]), *tool.fit(*options, "--starts", "8", stars=STARS[:1]))]
    expect(f"a prior far off: {sums[0]}, with eight starts {sums[1]}", sums[0] < sums[1] + 0.05)


def on_the_device(tool):
    options = ["--prior", "teff=5500:60,feh=-1:0.1", "--fix", "vsini=10"]
    plain, device = tool.fit(*options), tool.fit(*options, mode=())
    for p, d in zip(plain, device):
        sums = [r["NEG2LOGL"] + ((r["TEFF"] - 5500) / 60) ** 2 + ((r["FEH"] + 1) / 0.1) ** 2 for r in (p, d)]
        expect(f"device {sums[1]}, plain C {sums[0]}", abs(sums[1] - sums[0]) < 0.02)
        expect("held", p["VSINI"] == d["VSINI"] == 10)
        expect(f"errors {d['TEFF_ERR']}, {p['TEFF_ERR']}", abs(d["TEFF_ERR"] / p["TEFF_ERR"] - 1) < 0.02 and
               abs(d["VRAD_ERR"] / p["VRAD_ERR"] - 1) < 0.02)
    velocity = ["--prior", "vrad=0:2"]
    for p, d in zip(tool.fit(*velocity, stars=STARS[:2]), tool.fit(*velocity, mode=(), stars=STARS[:2])):
        expect(f"velocity {d['VRAD']} +- {d['VRAD_ERR']}, plain C {p['VRAD']} +- {p['VRAD_ERR']}",
               abs(d["VRAD_ERR"] / p["VRAD_ERR"] - 1) < 0.05)


def main():
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(sys.argv[1], folder)
        free = tool.fit("--starts", "2")
        as_gaussians_say(tool, free)
        narrow_is_fixed(tool, free)
        of_each_star(tool, free)
        at_a_limit(tool)
        far_off(tool)
        on_the_device(tool)
        tool.refuses("--prior", "--prior", "teff=5800")
        tool.refuses("--prior", "--prior", "mass=1:0.1")
        tool.refuses("--fix", "--fix", "vsini=0:1")
        tool.refuses("is to be fixed at 90000", "--fix", "teff=90000")
    for wrong in WRONG:
        print(wrong)
    return len(WRONG) > 0


if __name__ == "__main__":
    sys.exit(main())
