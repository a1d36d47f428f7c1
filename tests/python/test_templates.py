# SPDX-License-Identifier: Apache-2.0
"""Compares libraries of templates made in Python with those of `cleave templates`, and fits stars with them."""
import dataclasses
import itertools
import os
import subprocess

import numpy as np
import pytest

import cleave

LIGHT_KMS = 299792.458
WAVE = np.arange(5020.0, 5180.0, 0.05)
ARM = {"first": 5060.0, "last": 5140.0, "step": 0.1, "resolving_power": 8000}
NODES = [node for node in itertools.product([5000, 5500, 6200], [4.5], [-0.5, 0.0], [0.0, 0.4])
         if node != (6200, 4.5, 0.0, 0.4)]
DICE = np.random.default_rng(314)
CENTRES, DEPTHS = np.sort(DICE.uniform(5025, 5175, 45)), DICE.uniform(0.1, 0.6, 45)
SLOPES = DICE.uniform(-1, 1, (4, 45)) * np.array([[2.0], [0.0], [0.3], [0.8]])


def flux(teff, logg, feh, alpha):
    """Returns lines on a slope, with fluxes that float32 cannot hold."""
    q = np.array([np.log10(teff) - 3.72, logg, feh, alpha])
    lines = np.exp(-0.5 * ((WAVE[:, None] - CENTRES) / 0.15) ** 2) @ (DEPTHS * (1 + q @ SLOPES))
    return 1e-60 * (1 - 0.002 * (WAVE - 5100)) * np.exp(-lines)


@pytest.fixture(scope="module")
def made(context):
    maker = cleave.TemplateMaker(WAVE, **ARM)
    models = np.array([flux(*node) for node in NODES])
    log_flux = np.concatenate([maker.log_flux(part, context=context) for part in (models[:4], models[4:])])
    return maker, cleave.spectra_library({"green": (maker, log_flux)}, NODES, starts=6)


def test_library_is_that_of_the_command(made, tmp_path):
    rows = ["FILE,TEFF,LOGG,FEH,ALPHA"]
    for i, node in enumerate(NODES):
        scaled = flux(*node) * 1e60
        lines = [f"{w:.4f} {f:.12g}" for w, f in zip(WAVE, scaled)]
        (tmp_path / f"{i}.txt").write_text("wave flux\n" + "\n".join(lines) + "\n")
        rows.append(f"{i}.txt," + ",".join(map(str, node)))
    (tmp_path / "models.csv").write_text("\n".join(rows) + "\n")
    done = subprocess.run(
        [os.environ["CLEAVE_COMMAND"], "templates", str(tmp_path / "models.csv"), "-o", str(tmp_path / "library"),
         "--arm", "green=5060:5140:0.1", "--resolving-power", "8000", "--starts", "6", "-q"],
        capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    maker, library = made
    one, two = library.arms[0], cleave.SpectraLibrary.load(tmp_path / "library").arms[0]
    for name in ("first", "last", "ccf_log0", "ccf_log1", "ccf_spline_kms", "sigma"):
        assert getattr(one, name) == pytest.approx(getattr(two, name), rel=1e-11), name
    for a, b in zip(one.axes, two.axes):
        np.testing.assert_allclose(a, b, rtol=1e-14)
    np.testing.assert_array_equal(one.grid, two.grid)
    assert (one.grid < 0).sum() == 2 and one.grid.shape == (3, 2, 2, 2)
    np.testing.assert_allclose(one.log_flux, two.log_flux, rtol=0, atol=2e-6)
    np.testing.assert_allclose(one.ccf, two.ccf, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(library._keep[0], np.load(tmp_path / "library" / "ccf_params.npy"))
    assert len(library._keep[0]) == 6 and maker.points == one.log_flux.shape[1]
    np.testing.assert_allclose(maker.wavelength, np.geomspace(two.first, two.last, maker.points), rtol=1e-11)


def test_star_is_found_and_the_library_comes_back(made, context, tmp_path):
    maker, library = made
    truth, velocity = (5250.0, 4.5, -0.3, 0.1), -87.4
    pixels = np.arange(5062.0, 5138.0, 0.25)
    # the second star is nearest to a start template whose cell lacks a corner
    between = np.mean([library.arms[0].log_flux[i] for i, node in enumerate(NODES) if node[0] < 6000], axis=0)
    want = np.array([maker.log_flux(flux(*truth), context=context)[0], between])
    stars = np.exp([np.interp(pixels / (1 + velocity / LIGHT_KMS), maker.wavelength, one) for one in want])
    spectrum = {"arm": "green", "wavelength": pixels, "flux": stars, "ivar": np.full(stars.shape, 1e6)}
    asked = {"max_velocity": 300, "terms": 3, "fixed": {"logg": 4.5, "vsini": 0}, "context": context}
    fits = cleave.specfit(spectrum, library, **asked)
    for fit, teff, feh in zip(fits, (truth[0], np.sqrt(5000 * 5500)), (truth[2], -0.25)):
        assert abs(fit["velocity"] - velocity) < 0.1 and abs(fit["teff"] - teff) < 20 and abs(fit["feh"] - feh) < 0.02
    library.save(tmp_path / "new" / "library")
    again = cleave.SpectraLibrary.load(tmp_path / "new" / "library")
    np.testing.assert_array_equal(again.arms[0].log_flux, library.arms[0].log_flux)
    assert again.arms[0].sigma == library.arms[0].sigma
    np.testing.assert_array_equal(cleave.specfit(spectrum, again, **asked), fits)
    with pytest.raises(cleave.FileError, match="new or empty"):
        library.save(tmp_path / "new" / "library")
    assert sorted(os.listdir(tmp_path / "new")) == ["library"]


def test_network_comes_back(tmp_path):
    widths = [4, 8, 100]
    arm = cleave.SpectraArm("blue", 4500, 4900, [DICE.normal(size=(b, a)) for a, b in zip(widths, widths[1:])],
                            [np.zeros(n) for n in widths[1:]], np.arange(4), np.ones(4), DICE.normal(size=(9, 4)),
                            np.ones((2, 64)), 8.4, 8.5, 3000.0)
    cleave.SpectraLibrary([arm], np.ones((2, 4))).save(tmp_path / "network")
    again = cleave.SpectraLibrary.load(tmp_path / "network").arms[0]
    for a, b in zip(arm.weights, again.weights):
        np.testing.assert_array_equal(np.float32(a), b)
    np.testing.assert_array_equal(again.hull, arm.hull)


def test_wrong_use_is_told(made, context):
    maker, library = made
    with pytest.raises(cleave.ArgumentError, match="either sigma or resolving_power, not both"):
        cleave.TemplateMaker(WAVE, sigma=1.0, **ARM)
    with pytest.raises(cleave.ShapeError, match="are needed for 5000.00 to 5140.00"):
        cleave.TemplateMaker(WAVE, **{**ARM, "first": 5000.0})
    with pytest.raises(cleave.ShapeError, match=r"\[N, 3200\] is expected"):
        maker.log_flux(np.ones((2, 5)), context=context)
    with pytest.raises(cleave.FormatError, match="spectrum 1"):
        maker.log_flux(np.stack([flux(*NODES[0]), np.zeros(len(WAVE))]), context=context)
    templates = library.arms[0].log_flux
    with pytest.raises(cleave.ArgumentError, match="two models have"):
        cleave.spectra_library({"green": (maker, templates)}, [NODES[0], *NODES[:-1]])
    with pytest.raises(cleave.ShapeError, match="11 templates, but 3 models"):
        cleave.spectra_library({"green": (maker, templates)}, NODES[:3])
    huge = [[5000.0, 1e10 * (1 + i), 0.0, 0.0] for i in range(len(templates))]  # 0.001 beside them is the same number
    for parameters in (huge, [[*huge[0][:1], -7.7e14, 0.0, 0.0]]):
        with pytest.raises(cleave.ArgumentError, match=r"logg is .*, but it must lie between -1e\+06 and 1e\+06"):
            cleave.spectra_library({"green": (maker, templates[:len(parameters)])}, parameters)
    arm = library.arms[0]
    wide = arm.grid + ((arm.grid == 1).astype(np.int64) << 32)  # the lowest 32 bits stay
    wrong = dataclasses.replace(arm, grid=wide)
    with pytest.raises(cleave.ArgumentError, match=r"grid: number \d+ is 4294967297, but whole numbers of 32"):
        wrong._fill_grid(cleave._abi.SpectraArm(), [])
