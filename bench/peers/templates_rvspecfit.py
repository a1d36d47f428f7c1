#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `cleave templates` with rvspecfit's builder: the libraries that both make of the same models, and fits with
these libraries.

usage: templates_rvspecfit.py CLEAVE [SEED]
The program makes models in PHOENIX's published layout, with sharp lines whose depths are not linear in the parameters,
and with fluxes of 1e14. `read_grid`, `make_interpol`, `make_nd --regulargrid` and `make_ccf` make one library of them
and `cleave templates` another, for an arm of constant sigma and for one of constant resolving power. It compares the
templates at the nodes, those between nodes at random parameters (ours as the device interpolates them: the best-fit
model of a fit in which all parameters are fixed; theirs by their interpolator), and the velocities of noisy stars.
Needs the environment of requirements-rvspecfit.txt."""
import csv
import logging
import os
import subprocess
import sys
import tempfile

import numpy as np
import astropy.io.fits as fits
from rvspecfit import make_ccf, make_interpol, make_nd, read_grid, spec_fit, spec_inter, utils, vel_fit

LIGHT = 299792.458
# The same number of nodes along every axis: with NumPy 2, rvspecfit 0.9.0 cannot write other grids.
TEFF, LOGG, FEH, ALPHA = [4800., 5300., 5800.], [3., 4., 5.], [-1., -0.5, 0.], [0., 0.2, 0.4]
NAMES = ["teff", "logg", "feh", "alpha"]
STEP, POWER = 0.012, 500000  # step in Angstrom and resolving power of the models
#        from   to     step  sigma R
ARMS = {"one": (5050., 5350., 0.2, 0.5, None), "two": (8450., 8750., 0.3, None, 4000.)}
BETWEEN, STARS = 30, 24
FWHM = 2 * np.sqrt(2 * np.log(2))


class Models:
    def __init__(self, dice):
        self.wave = np.concatenate([np.arange(low / 1.0045, high * 1.0045, STEP) for low, high, *_ in ARMS.values()])
        self.lines = []
        for low, high, *_ in ARMS.values():
            for _ in range(150):
                self.lines.append((dice.uniform(low - 20, high + 20), dice.uniform(0.03, 0.15), dice.uniform(0.1, 1.5),
                                   dice.uniform(-1, 1, 4) * [3., .2, .5, .8], dice.uniform(-4, 4)))

    def flux(self, teff, logg, feh, alpha):
        q = np.array([np.log10(teff) - 3.74, logg - 4, feh + 0.5, alpha - 0.2])
        depth = np.zeros_like(self.wave)
        for place, width, strength, slopes, bent in self.lines:
            first, end = np.searchsorted(self.wave, [place - 8 * width, place + 8 * width])
            x = (self.wave[first:end] - place) / width
            depth[first:end] += strength * np.exp(slopes @ q + bent * q[0] * q[2]) * np.exp(-0.5 * x * x)
        return 2e14 * (teff / 5000) ** 4 * (self.wave / 5000) ** -1.5 * np.exp(-depth)


def write_models(folder, models):
    name = "PHOENIX-ACES-AGSS-COND-2011"
    fits.PrimaryHDU(models.wave).writeto(os.path.join(folder, f"WAVE_{name}.fits"))
    for t, g, f, a in ((t, g, f, a) for t in TEFF for g in LOGG for f in FEH for a in ALPHA):
        below = f"Z{f:+.1f}" if f else "Z-0.0"
        below += f".Alpha={a:+.2f}" if a else ""
        os.makedirs(os.path.join(folder, name, below), exist_ok=True)
        hdu = fits.PrimaryHDU(models.flux(t, g, f, a).astype(np.float32))
        for key, value in zip(("PHXTEFF", "PHXLOGG", "PHXM_H", "PHXALPHA"), (t, g, f, a)):
            hdu.header[key] = value
        hdu.writeto(os.path.join(folder, name, below, f"lte{t:05.0f}-{g:.2f}{below[1:]}.{name}-HiRes.fits"))
    return os.path.join(folder, name) + "/", os.path.join(folder, f"WAVE_{name}.fits")


def build_theirs(prefix, wave, out):
    database = os.path.join(out, "files.db")
    os.makedirs(out)
    read_grid.makedb(prefix, dbfile=database, mask="*/*fits", name_metallicity="feh", name_alpha="alpha", keywords=dict(
        teff="PHXTEFF", logg="PHXLOGG", feh="PHXM_H", alpha="PHXALPHA"))
    for arm, (low, high, step, sigma, power) in ARMS.items():
        width = f"x/{sigma * FWHM:.12f}" if sigma else f"{power}+0*x"
        make_interpol.process_all(
            (arm, low, high, make_interpol.Resolution(resol_func=width), step, True), parnames=tuple(NAMES),
            dbfile=database, oprefix=out, prefix=prefix, wavefile=wave, air=False, resolution0=POWER, normalize=True,
            nthreads=1, log_parameters=[0])
        make_nd.execute(arm, prefix=out, regular=True)
        make_ccf.main(["--prefix", out, "--oprefix", out, "--setup", arm, "--lambda0", str(low), "--lambda1",
                       str(high), "--step", str(2 * step), "--every", "7", "--nthreads", "1"])


def build_ours(cleave, folder, out):
    arms = []
    for arm, (low, high, step, sigma, power) in ARMS.items():
        library = f"{out}-{arm}"
        subprocess.run([cleave, "templates", folder, "-o", library, "--arm", f"{arm}={low}:{high}:{step}", "-q",
                        *(["--sigma", str(sigma)] if sigma else ["--resolving-power", str(power)])], check=True)
        arms.append(library)
    return arms


def nodes_differ(theirs, ours, arm):
    """Returns the largest and the rms difference of ln flux over all nodes."""
    dat = np.load(os.path.join(theirs, f"interpdat_{arm}.npy"))
    grid = np.load(os.path.join(ours, arm, "grid.npy"))
    flux = np.load(os.path.join(ours, arm, "log_flux.npy"))
    info = spec_inter.getInterpolator(arm, {"template_lib": theirs + "/"})
    lam = np.load(os.path.join(ours, arm, "lam.npy")) if os.path.exists(os.path.join(ours, arm, "lam.npy")) else None
    if flux.shape[1] != dat.shape[1]:
        sys.exit(f"{arm}: {flux.shape[1]} points, theirs has {dat.shape[1]}")
    if lam is not None and np.max(np.abs(lam / info.lam - 1)) > 1e-12:
        sys.exit(f"{arm}: other wavelengths")
    differences = flux[grid.ravel()] - dat[info.interper.idgrid.ravel()]
    inner = differences[:, 30:-30]  # all Gaussians end within the range of the models
    return np.max(np.abs(inner)), np.sqrt(np.mean(inner ** 2))


def write_star(path, wave, flux, error):
    np.savetxt(path, np.c_[wave, flux, np.broadcast_to(error, flux.shape)], fmt=["%.6f", "%.9e", "%.6e"])


def fit_ours(cleave, library, paths, out, *options):
    listing = out + ".list"
    with open(listing, "w", encoding="ascii") as file:
        file.write("\n".join(paths) + "\n")
    subprocess.run([cleave, "specfit", "@" + listing, "--library", library, "-o", out + ".csv", "--wavelengths",
                    "vacuum", "--max-vel", "500", "-q", "--reject", "0", *options], check=True)
    with open(out + ".csv", encoding="ascii") as file:
        return list(csv.DictReader(file))


def between_nodes(cleave, theirs, ours, arm, folder, dice):
    """Returns the relative differences of the interpolated templates, and of their chi-square with errors of 0.1 %."""
    low, high, step, *_ = ARMS[arm]
    about = spec_inter.getInterpolator(arm, {"template_lib": theirs + "/"})
    inside = (about.lam > low) & (about.lam < high)
    wave, worst, spread = about.lam[inside][::2], 0., []
    for i in range(BETWEEN):
        q = [dice.uniform(values[0], values[-1]) for values in (TEFF, LOGG, FEH, ALPHA)]
        flux = about.eval(q)[inside][::2]
        path, out = os.path.join(folder, f"between-{i}.txt"), os.path.join(folder, f"between-{i}")
        write_star(path, wave, flux, 1e-3)
        held = ",".join(f"{name}={value:.9g}" for name, value in zip(["vrad", "vsini"] + NAMES, [0, 0] + q))
        fit_ours(cleave, ours, [path], out, "--fix", held, "--npoly", "1", "--models", out + ".fits")
        with fits.open(out + ".fits") as file:
            model = next(np.ravel(h.data) for h in file if h.name.endswith("MODEL"))
        ratio = model[:len(flux)] / flux
        ratio /= np.median(ratio)
        worst, spread = max(worst, np.max(np.abs(ratio - 1))), spread + [np.std(ratio)]
    return worst, np.sqrt(np.mean(np.square(spread)))


def velocities(cleave, theirs, ours, arm, models, folder, dice):
    """Returns our velocities minus theirs, each by its own library, in km/s, and the errors that we state."""
    low, high, *_ = ARMS[arm]
    config = utils.freezeDict({"template_lib": theirs + "/", "min_vel": -500, "max_vel": 500, "vel_step0": 5,
                               "min_vel_step": 0.05, "min_vsini": 0.1, "max_vsini": 500, "second_minimizer": True})
    about = spec_inter.getInterpolator(arm, config)
    wave = np.arange(low + 2, high - 2, 0.4)
    paths, truth, spectra = [], [], []
    for i in range(STARS):
        q = [dice.uniform(values[0], values[-1]) for values in (TEFF, LOGG, FEH, ALPHA)]
        v = dice.uniform(-200, 200)
        flux = np.interp(wave, about.lam * np.sqrt((1 + v / LIGHT) / (1 - v / LIGHT)), about.eval(q))
        error = np.median(flux) / 200
        flux = flux + dice.normal(0, error, len(flux))
        paths.append(os.path.join(folder, f"star-{arm}-{i}.txt"))
        write_star(paths[-1], wave, flux, error)
        truth.append((v, q))
        spectra.append(spec_fit.SpecData(arm, wave, flux, np.full(len(wave), error)))
    rows = fit_ours(cleave, ours, paths, os.path.join(folder, "stars-" + arm), "--npoly", "5", "--fix", "vsini=0")
    found = []
    for row, spectrum, (v, q) in zip(rows, spectra, truth):
        fit = vel_fit.process([spectrum], dict(zip(NAMES, q), vsini=0), fixParam=["vsini"], config=config,
                              options={"npoly": 5})
        found.append((float(row["VRAD"]) - fit["vel"], float(row["VRAD_ERR"]), float(row["VRAD"]) - v))
    return np.array(found)


def main():
    cleave, seed = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    logging.disable(logging.CRITICAL)
    dice = np.random.default_rng(seed)
    models, bad = Models(dice), False
    with tempfile.TemporaryDirectory() as folder:
        prefix, wave = write_models(folder, models)
        theirs = os.path.join(folder, "theirs")
        with open(os.devnull, "w", encoding="ascii") as nothing:
            said, sys.stdout = sys.stdout, nothing
            build_theirs(prefix, wave, theirs)
            sys.stdout = said
        for arm, ours in zip(ARMS, build_ours(cleave, folder, os.path.join(folder, "ours"))):
            most, rms = nodes_differ(theirs, ours, arm)
            print(f"{arm}: nodes: ln flux differs by {most:.1e} at most, rms {rms:.1e}")
            between, spread = between_nodes(cleave, theirs, ours, arm, folder, dice)
            print(f"{arm}: between nodes: {between:.1e} at most, rms {spread:.1e}")
            v = velocities(cleave, theirs, ours, arm, models, folder, dice)
            print(f"{arm}: velocities: ours less theirs {np.max(np.abs(v[:, 0])):.4f} km/s at most, rms "
                  f"{np.sqrt(np.mean(v[:, 0] ** 2)):.4f}; errors {np.median(v[:, 1]):.3f}; ours less truth: pulls of "
                  f"sd {np.std(v[:, 2] / v[:, 1]):.2f}", flush=True)
            bad = bad or most > 1e-3 or between > 1e-3 or np.max(np.abs(v[:, 0])) > 0.1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
