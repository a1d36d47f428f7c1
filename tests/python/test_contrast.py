# SPDX-License-Identifier: Apache-2.0
"""Tests detection limits: planets that this test injects are found as often as the limit predicts."""
import numpy as np
import pytest
from test_companions import spot

import cleave

SIGMA, FRAMES, SIDE, RADIUS, MIDDLE = 1.7, 48, 49, 3, 24

FWHM = 2.3548 * SIGMA
SEPARATIONS = (12.0, 18.0)


def planets(angles, place):
    """Returns a planet of flux 1 in every frame. It is analytic, so that it shares no interpolation with the
    library."""
    t, dx, dy = np.radians(angles), place[0] - MIDDLE, place[1] - MIDDLE
    return np.array([spot(SIDE, SIDE, MIDDLE + row, MIDDLE + column)
                     for row, column in zip(dy * np.cos(t) - dx * np.sin(t), dx * np.cos(t) + dy * np.sin(t))])


@pytest.fixture(scope="module")
def field():
    rng = np.random.default_rng(28)
    noise = rng.normal(size=(FRAMES, SIDE + 2, SIDE + 2))
    noise = noise[:, 1:-1, 1:-1] + 0.5 * noise[:, :-2, 1:-1] + 0.5 * noise[:, 1:-1, 2:]
    y, x = np.indices((SIDE, SIDE))
    halo = 200 * np.exp(-np.hypot(y - MIDDLE, x - MIDDLE) / 6)
    return halo + noise, np.linspace(-30, 90, FRAMES), spot(13, 13, 6, 6).astype(np.float32)


def on_circle(radius, angle):
    return MIDDLE + radius * np.cos(angle), MIDDLE + radius * np.sin(angle)


@pytest.fixture(scope="module")
def limits(context, field):
    return cleave.contrast(*field, SEPARATIONS, radius=RADIUS, context=context)


def snr_at(cube, angles, psf, x, y, context):
    """Returns the highest calibrated S/N near the place, with the noise elsewhere as the unit."""
    raw = cleave.paco(cube, angles, psf, radius=RADIUS, threshold=None, context=context).snr
    snr = cleave.calibrate_snr(raw, (MIDDLE, MIDDLE), FWHM, [(x, y)])
    rows, columns = np.indices(snr.shape)
    return snr[np.hypot(rows - y, columns - x) <= FWHM / 2].max()


def test_half_of_the_planets_at_the_limit_are_detected(context, field, limits):
    """Near the star, 1 % of the flux changes the detection of up to 5 % of the planets, hence the tolerance."""
    cube, angles, psf = field
    rng = np.random.default_rng(91)
    seen = {0.6: [], 1.0: [], 1.5: []}
    for point in limits.curve:
        for i, angle in enumerate(rng.uniform(0, 2 * np.pi, 40)):
            x, y = on_circle(point["separation_px"], angle)
            image = planets(angles, (x, y))
            for factor in (1.0,) if i % 4 else seen:
                with_one = (cube + factor * point["flux"] * image).astype(np.float32)
                seen[factor].append(snr_at(with_one, angles, psf, x, y, context) > 5)
    assert np.mean(seen[1.0]) == pytest.approx(0.5, abs=0.2)
    assert np.mean(seen[0.6]) < 0.15 and np.mean(seen[1.5]) > 0.85


def test_the_curve_is_in_order(limits):
    curve = limits.curve
    assert (curve["flux_low"] < curve["flux"]).all() and (curve["flux"] < curve["flux_high"]).all()
    assert (curve["flux_normal"] < curve["flux"]).all() and (curve["threshold"] > 5).all()
    assert (np.diff(curve["threshold"]) < 0).all()  # Student's correction decreases with the separation
    assert ((0.1 < curve["throughput"]) & (curve["throughput"] < 1)).all()
    assert (curve["injections"] == [max(24, np.ceil(4 * np.pi * r / limits.fwhm)) for r in SEPARATIONS]).all()
    # the limit that a linear method would compute from noise and throughput
    np.testing.assert_allclose(curve["threshold"] * curve["noise"] / curve["throughput"], curve["flux"], rtol=0.2)


def test_the_map_agrees_with_the_curve(limits):
    rows, columns = np.indices(limits.map.shape)
    radius = np.hypot(rows - MIDDLE, columns - MIDDLE)
    assert limits.map.shape == (SIDE, SIDE) and np.isnan(limits.map[0]).all()
    for point in limits.curve:
        ring = limits.map[abs(radius - point["separation_px"]) < 0.7]
        assert np.median(ring) == pytest.approx(point["flux"], rel=0.12)


def test_known_companions_are_no_part_of_it(context, field):
    cube, angles, psf = field
    place = on_circle(15.0, 1.0)
    options = {"injections": 12, "radius": RADIUS, "context": context, "snr": 4.0}
    clean = cleave.contrast(cube, angles, psf, [15.0], **options).curve[0]
    known = cleave.contrast(cube, angles, psf, [15.0], known=[place], **options).curve[0]
    assert clean["injections"] == 12 and known["injections"] < 12
    assert known["flux"] == pytest.approx(clean["flux"], rel=0.2)


def test_devices_and_plain_c_agree(device_context, reference, field):
    one, other = (cleave.contrast(*field, [12.0], injections=8, radius=RADIUS, calibrated=False, context=where).curve[0]
                  for where in (device_context, reference))
    for name in ("flux", "flux_low", "flux_high", "flux_normal", "throughput", "noise"):
        assert one[name] == pytest.approx(other[name], rel=0.01), name
    assert one["threshold"] == 5 and one["flux"] == one["flux_normal"]


def test_a_planet_that_does_not_turn_is_never_detected(context, field):
    cube, _, psf = field
    points = cleave.contrast(cube, np.linspace(0, 0.5, FRAMES), psf, [10.0], injections=6, radius=RADIUS,
                             context=context).curve
    assert np.isnan(points["flux"][0]) and points["injections"][0] == 6


def test_separations_are_chosen(context, field):
    made = cleave.contrast(*field, injections=1, radius=RADIUS, context=context).curve["separation_px"]
    assert made[0] == pytest.approx(FWHM, rel=0.01) and 20.5 - made[-1] <= FWHM / 2 + 0.01


def test_wrong_arguments_are_refused(reference, field):
    for wrong in ([0.0], [-3.0], [np.nan], [1000.0]):
        with pytest.raises(cleave.ArgumentError, match="separation"):
            cleave.contrast(*field, wrong, radius=RADIUS, context=reference)
    with pytest.raises(cleave.ArgumentError, match="S/N"):
        cleave.contrast(*field, [9.0], snr=-1.0, radius=RADIUS, context=reference)
