#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares priors and fixed parameters of `cleave specfit` with rvspecfit's `priors` and `fixParam`.

usage: priors_rvspecfit.py CLEAVE [SEED]
Both programs fit the same noisy stars, with libraries of the same models (those of templates_rvspecfit.py) and with the
same priors and fixed parameters. The program compares the sum that both minimise: rvspecfit's -2 log likelihood,
computed by rvspecfit at both optima, plus ((x - centre) / sigma)^2 for each prior. The program fails if an optimum of
ours is more than 0.05 above rvspecfit's. rvspecfit starts from the truth, Cleave from its own start values."""
import logging
import os
import sys
import tempfile

import numpy as np
from rvspecfit import spec_fit, spec_inter, utils, vel_fit

import templates_rvspecfit as models_of

ARM, STARS, SIGNAL, ALLOWED = "one", 8, 60, 0.05
# Offsets of priors from the truth with their sigmas, and offsets at which parameters are held; vsini is held at the
# given value itself. Every other star gets the offsets with the opposite sign. rvspecfit 0.9.0 cannot fix teff:
# get_hess_inv fails.
CASES = [
    ("free", {}, {}),
    ("prior of teff", {"teff": (80, 60)}, {}),
    ("priors of teff and logg", {"teff": (120, 40), "logg": (0.15, 0.1)}, {}),
    ("priors of feh and alpha", {"feh": (0.1, 0.05), "alpha": (-0.05, 0.03)}, {}),
    ("fixed vsini", {}, {"vsini": 0}),
    ("fixed logg and alpha", {}, {"logg": 0.1, "alpha": 0.02}),
    ("prior of teff, fixed feh and vsini", {"teff": (80, 60)}, {"feh": -0.05, "vsini": 0}),
]


def make_stars(config, dice, folder):
    low, high, *_ = models_of.ARMS[ARM]
    about = spec_inter.getInterpolator(ARM, config)
    wave = np.arange(low + 2, high - 2, 0.4)
    inside = [(4950, 5650), (3.3, 4.7), (-0.85, -0.15), (0.1, 0.3)]
    for i in range(STARS):
        q, v = [dice.uniform(*limits) for limits in inside], dice.uniform(-200, 200)
        stretch = np.sqrt((1 + v / models_of.LIGHT) / (1 - v / models_of.LIGHT))
        vsini = 20.
        flux = spec_fit.convolve_vsini(about.lam, about.eval(q), vsini)
        flux = spec_fit.evalRV(spec_fit.getRVInterpol(about.lam, flux), v, wave)
        error = np.median(flux) / SIGNAL
        flux = flux + dice.normal(0, error, len(flux))
        path = os.path.join(folder, f"star-{i}.txt")
        models_of.write_star(path, wave, flux, error)
        kept = np.loadtxt(path)  # with as many digits as Cleave reads
        yield path, dict(zip(models_of.NAMES, q), vsini=vsini), spec_fit.SpecData(ARM, *kept.T)


def fit_theirs(spectrum, start, priors, fixed, config, options):
    """Returns the lowest sum that rvspecfit finds when it starts from the truth."""
    start = dict(start, **fixed)
    fit = vel_fit.process([spectrum], start, fixParam=list(fixed), config=config, options=options, priors=priors)
    point = dict(fit["param"], vsini=fit.get("vsini", fixed.get("vsini")), vel=fit["vel"])
    return sum_at(spectrum, point, priors, config, options)


def sum_at(spectrum, point, priors, config, options):
    inside = []
    for name, nodes in zip(models_of.NAMES, (models_of.TEFF, models_of.LOGG, models_of.FEH, models_of.ALPHA)):
        edge = 1e-8 * (nodes[-1] - nodes[0])  # rvspecfit treats the last node as outside of the grid
        inside.append(min(max(point[name], nodes[0] + edge), nodes[-1] - edge))
    value = spec_fit.get_chisq([spectrum], point["vel"], inside, (point["vsini"],), options=options, config=config)
    return value + sum(((point[name] - centre) / sigma) ** 2 for name, (centre, sigma) in priors.items())


def fit_ours(cleave, library, path, priors, fixed, out):
    told = []
    if priors:
        told += ["--prior", ",".join(f"{name}={c:.9g}:{s:.9g}" for name, (c, s) in priors.items())]
    if fixed:
        told += ["--fix", ",".join(f"{name}={value:.9g}" for name, value in fixed.items())]
    row, = models_of.fit_ours(cleave, library, [path], out, "--npoly", "5", *told)
    point = {name: float(row[name.upper() if name != "alpha" else "ALPHAFE"]) for name in models_of.NAMES}
    return dict(point, vsini=float(row["VSINI"]), vel=float(row["VRAD"]))


def main():
    cleave, seed = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    logging.disable(logging.CRITICAL)
    dice, bad, options = np.random.default_rng(seed), False, {"npoly": 5}
    with tempfile.TemporaryDirectory() as folder:
        prefix, wave = models_of.write_models(folder, models_of.Models(dice))
        theirs = os.path.join(folder, "theirs")
        with open(os.devnull, "w", encoding="ascii") as nothing:
            said, sys.stdout = sys.stdout, nothing
            models_of.build_theirs(prefix, wave, theirs)
            sys.stdout = said
        library = models_of.build_ours(cleave, prefix, os.path.join(folder, "ours"))[0]
        config = utils.freezeDict({"template_lib": theirs + "/", "min_vel": -500, "max_vel": 500, "vel_step0": 5,
                                   "min_vel_step": 0.05, "min_vsini": 0.1, "max_vsini": 500, "second_minimizer": True})
        stars = list(make_stars(config, dice, folder))
        for name, offsets, held in CASES:
            above = []
            for i, (path, truth, spectrum) in enumerate(stars):
                sign = 1 if i % 2 else -1
                priors = {key: (truth[key] + sign * by, sigma) for key, (by, sigma) in offsets.items()}
                fixed = {key: truth[key] + sign * by if key != "vsini" else by for key, by in held.items()}
                ours = fit_ours(cleave, library, path, priors, fixed, os.path.join(folder, "out"))
                above.append(sum_at(spectrum, ours, priors, config, options) -
                             fit_theirs(spectrum, truth, priors, fixed, config, options))
            print(f"{name}: ours less rvspecfit's: {np.min(above):+.1e} to {np.max(above):+.1e}, "
                  f"median {np.median(above):+.1e}", flush=True)
            bad = bad or not np.max(above) <= ALLOWED
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
