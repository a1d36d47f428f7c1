# SPDX-License-Identifier: Apache-2.0
"""Tests the search in several wavelengths together: the gain in S/N, false alarms in noise, and spectra."""
import numpy as np
import pytest
from test_companions import FRAMES, MIDDLE, RADIUS, SIDE, SIGMA, planets, spot

import cleave

FWHM = 2.3548 * SIGMA
ANGLES = np.linspace(-20, 75, FRAMES)
PSF = spot(13, 13, 6, 6).astype(np.float32)
PLACE = (30.6, 24.3)


def halo():
    y, x = np.indices((SIDE, SIDE))
    return 200 * np.exp(-np.hypot(y - MIDDLE, x - MIDDLE) / 6)


def noise(rng, channels, alike=0.0, side=SIDE, frames=FRAMES):
    """Returns noise that neighbouring pixels share; channels share the part `alike` of its variance."""
    def one():
        white = rng.normal(size=(frames, side + 2, side + 2))
        return white[:, 1:-1, 1:-1] + 0.5 * white[:, :-2, 1:-1] + 0.5 * white[:, 1:-1, 2:]
    shared = one()
    return np.array([np.sqrt(alike) * shared + np.sqrt(1 - alike) * one() for _ in range(channels)])


def with_planet(cubes, fluxes, place=PLACE):
    image = planets(ANGLES, (*place, 1.0))
    return (cubes + halo() + np.multiply.outer(fluxes, image)).astype(np.float32)


@pytest.mark.parametrize("channels", [4, 16, 39])
def test_independent_channels_add_up(context, channels):
    """Several channels reach 0.95 sqrt(L) of the S/N of one, on average over places, when the planet is not part of the
    noise."""
    rng = np.random.default_rng(channels)
    cube = with_planet(noise(rng, channels), np.full(channels, 4.0))
    result = cleave.asdi(cube, ANGLES, PSF, radius=RADIUS, context=context)
    assert len(result.companions) == 1
    column, row = (round(v) for v in PLACE)
    spots = np.s_[row - 1:row + 2, column - 1:column + 2]
    single = (result.b / np.sqrt(result.a))[:, *spots].mean()
    assert result.snr_raw[spots].mean() / single > 0.95 * np.sqrt(channels)
    for channel in (0, channels - 1):
        alone = cleave.paco(cube[channel], ANGLES, PSF, radius=RADIUS, threshold=None, context=context)
        np.testing.assert_array_equal(alone.a, result.a[channel])
        np.testing.assert_array_equal(alone.b, result.b[channel])


@pytest.mark.parametrize("alike", [0.0, 0.9])
def test_noise_stays_normal_where_channels_are_alike(context, alike):
    rng = np.random.default_rng(5)
    values = []
    for _ in range(3):
        cube = noise(rng, 8, alike, side=61).astype(np.float32)
        values.append(cleave.asdi(cube, ANGLES, PSF, radius=RADIUS, threshold=None, context=context).snr)
    values = np.concatenate([v[np.isfinite(v)] for v in values])
    assert abs(values.mean()) < 0.05 and values.std() == pytest.approx(1, abs=0.05)
    assert (values > 3).mean() < 2 * 1.35e-3


def test_whitening_gains_where_channels_are_alike(context):
    """A planet whose spectrum differs from that of the noise that all channels share stands out."""
    cube = with_planet(noise(np.random.default_rng(8), 6, 0.9), [6.0, 0, 0, 0, 0, 0])
    spectra = np.eye(6)[:1]
    result = cleave.asdi(cube, ANGLES, PSF, spectra=spectra, radius=RADIUS, context=context)
    column, row = (round(v) for v in PLACE)
    single = result.b[0, row, column] / np.sqrt(result.a[0, row, column])
    assert result.snr_raw[row, column] > 1.5 * single


def test_a_spectrum_comes_back(context):
    true = np.array([3.0, 9.0, 14.0, 6.0])
    cube = with_planet(noise(np.random.default_rng(11), 4), true)
    result = cleave.asdi(cube, ANGLES, PSF, spectra=[np.ones(4), [1, 3, 5, 2], [5, 1, 0, 0]], radius=RADIUS,
                         context=context)
    assert len(result.companions) == 1 and result.spectrum[0] == 1
    one = result.companions[0]
    assert np.hypot(one["x"] - PLACE[0], one["y"] - PLACE[1]) < 4 * np.hypot(one["x_err"], one["y_err"]) < 0.8
    assert (abs(result.fluxes[0] - true) < 4 * result.flux_errs[0]).all() and (result.flux_errs[0] < 3).all()
    assert one["flux"] == pytest.approx(true.mean(), abs=4 * one["flux_err"])
    assert abs(result.rest - with_planet(noise(np.random.default_rng(11), 4), np.zeros(4))).max() < 4


def test_channels_below_the_threshold_are_found_together(context):
    cube = with_planet(noise(np.random.default_rng(3), 12), np.full(12, 2.0))
    alone = [len(cleave.companions(c, ANGLES, PSF, radius=RADIUS, context=context).companions) for c in cube[:3]]
    found = cleave.asdi(cube, ANGLES, PSF, radius=RADIUS, context=context)
    assert sum(alone) <= 1 and len(found.companions) == 1 and found.companions["false_alarm"][0] < 1e-6


def test_spectra_that_are_tried_have_a_price(context):
    cube = with_planet(noise(np.random.default_rng(3), 4), np.full(4, 8.0))
    one = cleave.asdi(cube, ANGLES, PSF, radius=RADIUS, threshold=None, context=context)
    same = cleave.asdi(cube, ANGLES, PSF, spectra=np.ones((5, 4)), radius=RADIUS, threshold=None, context=context)
    many = cleave.asdi(cube, ANGLES, PSF, spectra=np.concatenate([np.ones((1, 4)), np.eye(4)]), radius=RADIUS,
                       threshold=None, context=context)
    column, row = (round(v) for v in PLACE)
    np.testing.assert_allclose(same.snr, one.snr, atol=0.02)  # the same spectrum five times does not lower the S/N
    assert 0.02 < one.snr[row, column] - many.snr[row, column] < 1
    quiet = [cleave.asdi(with_planet(noise(np.random.default_rng(seed), 4), np.zeros(4)), ANGLES, PSF,
                         spectra=np.eye(4), radius=RADIUS, threshold=None, context=context).snr for seed in range(4)]
    assert np.nanstd(quiet) == pytest.approx(1, abs=0.08) and abs(np.nanmean(quiet)) < 0.08


def test_nothing_is_found_on_the_star(context):
    """Beside a peak near the star few positions are left, and the noise rises outwards: formerly such a peak had an S/N
    of 7."""
    cube = with_planet(noise(np.random.default_rng(11), 4), np.array([3.0, 9.0, 14.0, 6.0]))
    found = cleave.asdi(cube, ANGLES, PSF, radius=RADIUS, context=context).companions
    assert (found["separation_px"] > FWHM).all() and len(found) == 1


def test_one_channel_is_a_search(context):
    cube = with_planet(noise(np.random.default_rng(4), 1), [25.0])
    together = cleave.asdi(cube, ANGLES, PSF, radius=RADIUS, context=context)
    alone = cleave.companions(cube[0], ANGLES, PSF, radius=RADIUS, context=context)
    assert len(together.companions) == len(alone.companions) == 1
    for name in ("x", "y", "flux", "snr"):
        assert together.companions[name][0] == pytest.approx(alone.companions[name][0], rel=2e-3), name
    np.testing.assert_allclose(together.snr_raw, alone.snr_raw, rtol=1e-5, atol=1e-5)


def test_every_channel_has_its_own_psf(context):
    cube = with_planet(noise(np.random.default_rng(4), 2), [20.0, 20.0])
    result = cleave.asdi(cube, ANGLES, np.array([PSF, 2 * PSF]), radius=RADIUS, context=context)
    ratio = result.fluxes[0, 0] / result.fluxes[0, 1]
    assert ratio == pytest.approx(2, rel=0.25)


def test_wrong_arguments_are_refused(reference):
    cube = noise(np.random.default_rng(4), 2).astype(np.float32)
    for wrong, match in (([[1.0, -1.0]], "spectrum 0 is -1"), ([[0.0, 0.0]], "0 in all"), ([[1.0, np.nan]], "nan")):
        with pytest.raises(cleave.ArgumentError, match=match):
            cleave.asdi(cube, ANGLES, PSF, spectra=wrong, radius=RADIUS, context=reference)
    with pytest.raises(cleave.ShapeError, match="spectra"):
        cleave.asdi(cube, ANGLES, PSF, spectra=np.ones(3), radius=RADIUS, context=reference)
    with pytest.raises(cleave.ShapeError, match="psf"):
        cleave.asdi(cube, ANGLES, np.ones((3, 13, 13)), radius=RADIUS, context=reference)


def test_the_same_channel_twice_gains_nothing(context):
    cube = with_planet(noise(np.random.default_rng(4), 1), [10.0])
    result = cleave.asdi(np.concatenate([cube, cube]), ANGLES, PSF, radius=RADIUS, threshold=None, context=context)
    single = (result.b[0] / np.sqrt(result.a[0]))
    column, row = (round(v) for v in PLACE)
    assert result.snr_raw[row, column] == pytest.approx(single[row, column], rel=0.05)
