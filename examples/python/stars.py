# SPDX-License-Identifier: Apache-2.0
"""Fits velocities and parameters of stars with a synthetic library, in which the
depths of lines depend on the parameters."""
import itertools

import numpy as np

import cleave

FIRST, LAST, POINTS, LIGHT_KMS = 4480.0, 4920.0, 1024, 299792.458
random = np.random.default_rng(6)
centres = np.sort(random.uniform(4500, 4900, 40))
slopes = random.uniform(-1, 1, (4, 40)) * [[2.0], [0.05], [0.1], [0.1]]


def log_flux(wavelength, teff, logg, feh, alpha):
    q = np.array([np.log10(teff) - 3.7, logg, feh, alpha])
    lines = np.exp(-(wavelength[:, None] - centres) ** 2 / 1.5)
    return -lines @ (0.35 + q @ slopes)


axes = [[3.62, 3.78], [1.0, 5.0], [-2.0, 0.0], [0.0, 0.4]]  # log10 teff, log g, [Fe/H], [alpha/Fe]
nodes = np.array([[10 ** q[0], *q[1:]] for q in itertools.product(*axes)])
wavelength = np.geomspace(FIRST, LAST, POINTS)
templates = np.array([log_flux(wavelength, *node) for node in nodes])
arm = cleave.SpectraArm("blue", FIRST, LAST, [], [], np.zeros(4), np.ones(4), np.zeros((0, 4)),
                        np.exp(templates), np.log(FIRST), np.log(LAST), 3000.0, axes=axes,
                        grid=np.arange(16).reshape(2, 2, 2, 2), log_flux=templates)
library = cleave.SpectraLibrary([arm], nodes)

truth = np.array([[120, 4700, 2.4, -1.3, 0.1], [-63, 5300, 4.2, -0.2, 0.3], [5, 5600, 3.5, -0.7, 0.2]])
pixels = 4500 + 0.8 * np.arange(500)
flux = np.array([np.exp(log_flux(pixels / (1 + v / LIGHT_KMS), *rest)) for v, *rest in truth])
flux += random.normal(0, 0.01, flux.shape)
fits = cleave.specfit([{"arm": "blue", "wavelength": pixels, "flux": flux,
                        "ivar": np.full_like(flux, 1e4)}], library)
for fit in fits:
    print(f"{fit['velocity']:7.2f} +- {fit['velocity_error']:.2f} km/s, teff {fit['teff']:.0f} +- "
          f"{fit['teff_error']:.0f} K, log g {fit['logg']:.2f}, [Fe/H] {fit['feh']:.2f}")
assert np.all(np.abs(fits["velocity"] - truth[:, 0]) < 2)
assert np.all(np.abs(fits["teff"] - truth[:, 1]) < 60)
