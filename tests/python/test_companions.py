# SPDX-License-Identifier: Apache-2.0
"""Compares the flux, position and errors of companions with a float64 model in NumPy, on every driver and in plain C.
"""
import numpy as np
import pytest

import cleave

SIGMA = 1.7
FRAMES, SIDE, RADIUS, MIDDLE = 24, 41, 3, 20


def disc(radius):
    return np.array([(dy, dx) for dy in range(-radius, radius + 1) for dx in range(-radius, radius + 1)
                     if dy * dy + dx * dx <= radius * radius])


def spot(height, width, row, column):
    """Returns a Gaussian planet, which is analytic, so that it shares no interpolation with the library."""
    y, x = np.indices((height, width))
    return np.exp(-((y - row) ** 2 + (x - column) ** 2) / (2 * SIGMA ** 2))


def arc(angles, x, y):
    t = np.radians(angles)
    return MIDDLE + (y - MIDDLE) * np.cos(t) - (x - MIDDLE) * np.sin(t), \
        MIDDLE + (x - MIDDLE) * np.cos(t) + (y - MIDDLE) * np.sin(t)


def planets(angles, *which):
    cube = np.zeros((FRAMES, SIDE, SIDE))
    for x, y, flux in which:
        for image, row, column in zip(cube, *arc(angles, x, y)):
            image += flux * spot(SIDE, SIDE, row, column)
    return cube


def model_flux(cube, angles, x, y, rounds=60):
    """Computes algorithm 3 of Flasseur et al. 2018, with the planet removed from all frames of each patch."""
    image = planets(angles, (x, y, 1.0))
    rows, columns = (np.floor(v + 0.5).astype(int) for v in arc(angles, x, y))
    offsets, flux = disc(RADIUS), 0.0
    for _ in range(rounds):
        a = b = 0.0
        for frame, row, column in zip(range(FRAMES), rows, columns):
            yy, xx = row + offsets[:, 0], column + offsets[:, 1]
            pixels, h = cube[:, yy, xx], image[frame, yy, xx]
            left = pixels - flux * image[:, yy, xx]
            mean = left.mean(0)
            s = (left - mean).T @ (left - mean) / FRAMES
            diagonal = np.diag(s)
            squares, off = (diagonal ** 2).sum(), (s ** 2).sum() - (diagonal ** 2).sum()
            rho = min(max((off - squares + diagonal.sum() ** 2) / ((FRAMES + 1) * off), 0), 1)
            w = np.linalg.solve((1 - rho) * s + rho * np.diag(diagonal), h)
            a += w @ h
            b += w @ (pixels[frame] - mean)
        flux = max(b, 0) / a
    return flux, 1 / np.sqrt(a)


@pytest.fixture(scope="module")
def field():
    rng = np.random.default_rng(28)
    angles = np.linspace(-20, 75, FRAMES)
    noise = rng.normal(size=(FRAMES, SIDE + 2, SIDE + 2))
    noise = noise[:, 1:-1, 1:-1] + 0.5 * noise[:, :-2, 1:-1] + 0.5 * noise[:, 1:-1, 2:]
    y, x = np.indices((SIDE, SIDE))
    halo = 200 * np.exp(-np.hypot(y - MIDDLE, x - MIDDLE) / 6)
    psf = spot(13, 13, 6, 6).astype(np.float32)
    return halo + noise, angles, psf


def with_planets(field, *which):
    cube, angles, psf = field
    return (cube + planets(angles, *which)).astype(np.float32), angles, psf


def test_flux_is_that_of_the_model(context, field):
    places = [(29.3, 24.6), (12.0, 16.45), (20.2, 32.0)]
    cube, angles, psf = with_planets(field, *((x, y, f) for (x, y), f in zip(places, (12.0, 5.0, 300.0))))
    found = cleave.characterize(cube, angles, psf, places, keep_places=True, radius=RADIUS, context=context)
    for (x, y), one in zip(places, found):
        flux, sigma = model_flux(cube.astype(float), angles, x, y)
        assert one["flux"] == pytest.approx(flux, abs=0.02 * sigma + 2e-3 * flux)
        assert one["x_err"] == 0 and 0.3 * sigma < one["flux_err"] < 3 * sigma


def test_places_lie_between_pixels(context, field):
    true = [(29.3, 24.6)]
    cube, angles, psf = with_planets(field, *((x, y, 40.0) for x, y in true))
    found = cleave.characterize(cube, angles, psf, [np.round(p) for p in true], radius=RADIUS, context=context)
    for (x, y), one in zip(true, found):
        assert np.hypot(one["x"] - x, one["y"] - y) < 0.1
        assert 0 < one["x_err"] < 0.1 and abs(one["flux"] - 40) < 4 * one["flux_err"]
        assert one["separation_px"] == pytest.approx(np.hypot(one["x"] - MIDDLE, one["y"] - MIDDLE))


def test_companions_are_measured_with_a_patch_of_their_own(context, field):
    """The patch is wider, except where it would leave the frames."""
    inside, edge = (29.3, 24.6), (36.1, 20.2)
    cube, angles, psf = with_planets(field, (*inside, 30.0), (*edge, 30.0))
    options = {"radius": RADIUS, "threshold": 5.0, "context": context}
    own, wide = (cleave.companions(cube, angles, psf, measure_radius=r, **options) for r in (None, RADIUS + 1))
    assert len(own.companions) == len(wide.companions) == 2
    for place in (inside, edge):
        one, other = (found.companions[np.hypot(found.companions["x"] - place[0],
                                                found.companions["y"] - place[1]) < 1][0] for found in (own, wide))
        rest = cleave.inject(wide.rest, angles, psf, [(other["x"], other["y"])], [other["flux"]])
        again = cleave.characterize(rest, angles, psf, [place], radius=RADIUS + (place == inside), context=context)[0]
        assert abs(other["flux"] - again["flux"]) < 0.1 * other["flux_err"], place
        assert np.hypot(other["x"] - again["x"], other["y"] - again["y"]) < 0.1 * other["x_err"], place
        assert (abs(one["flux"] / other["flux"] - 1) > 1e-4) == (place == inside), place
        assert other["ring"] >= 6 and other["x_err"] > 0


def test_nothing_where_the_arc_leaves_the_frame(reference, field):
    found = cleave.characterize(*with_planets(field), [(1.0, 1.0)], radius=RADIUS, context=reference)
    assert np.isnan(found["flux"][0])


def test_a_bright_companion_leaves_no_ghosts(context, field):
    width = 2.3548 * SIGMA
    bright, near = (32.0, 22.4), (32.0 - 1.2, 22.4 + 2.1 * width)
    cube, angles, psf = with_planets(field, (*bright, 600.0), (*near, 30.0))
    result = cleave.companions(cube, angles, psf, radius=RADIUS, context=context)
    assert len(result.companions) == 2
    places = sorted((c["flux"], c["x"], c["y"]) for c in result.companions)
    for (flux, x, y), (true, flux0) in zip(places, ((near, 30.0), (bright, 600.0))):
        assert np.hypot(x - true[0], y - true[1]) < 0.25 and flux == pytest.approx(flux0, rel=0.12)
    assert (result.companions["false_alarm"] < 1e-2).all() and result.snr_raw.shape == result.snr.shape
    assert abs(result.rest - field[0]).max() < 0.1 * 600


def test_calibrated_noise_has_a_standard_deviation_of_one():
    rng = np.random.default_rng(5)
    y, x = np.indices((161, 150))
    radius = np.hypot(y - 80.3, x - 70.8)
    raw = (rng.normal(size=radius.shape) * (0.4 + radius / 90)).astype(np.float32)
    raw[100:104, 90:94] = 40
    raw[0, :9] = np.nan
    made = cleave.calibrate_snr(raw, (70.8, 80.3), 4.0, [(91.5, 101.5)])
    assert np.isnan(made).sum() == 9 and made[102, 92] > 10
    made[97:107, 87:97] = np.nan
    for low in range(4, 80, 6):
        assert np.nanstd(made[(radius >= low) & (radius < low + 6)]) == pytest.approx(1, abs=0.05)


def test_student_corrects_near_the_star():
    """Mawet et al. 2014: the scatter of n samples of a normal distribution is the unit."""
    rng = np.random.default_rng(7)
    raw = rng.normal(size=(61, 61)).astype(np.float32)
    far, near = raw.copy(), raw.copy()
    near[30, 35], far[30, 58] = 9, 9
    low = cleave.calibrate_snr(near, (30, 30), 4.0, [(35, 30)])[30, 35]
    high = cleave.calibrate_snr(far, (30, 30), 4.0, [(58, 30)])[30, 58]
    assert 2.5 < low < 5 < 7 < high < 9.5


def test_the_star_is_found(field):
    cube, _, _ = with_planets(field)
    for dx, dy in ((0, 0), (3, -2)):
        x, y = cleave.star_position(np.roll(cube, (dy, dx), (1, 2)), 2.3548 * SIGMA)
        assert np.hypot(x - MIDDLE - dx, y - MIDDLE - dy) < 0.1
    noise = np.random.default_rng(1).normal(size=(20, 41, 41))
    assert cleave.star_position(noise, 4.0) is None


def test_frames_unlike_the_others_are_rejected(field):
    cube, _, _ = with_planets(field)
    cube[5] *= 30
    cube[11] = np.nan
    cube[7, :10] = np.nan
    frames = cleave.frame_quality(cube)
    assert list(np.flatnonzero(frames["rejected"])) == [5, 11]
    assert frames["missing"][7] == pytest.approx(10 / 41) and 0.4 < np.nanmedian(frames["scale"]) < 2
    assert list(np.flatnonzero(cleave.frame_quality(cube, 1e9)["rejected"])) == [11]


def test_weights_follow_the_scale(field):
    cube, _, _ = with_planets(field)
    cube[5] *= 30
    frames = cleave.frame_quality(cube)
    scale = frames["scale"]
    np.testing.assert_allclose(cleave.frame_weights(frames), np.minimum(1, (2 / scale) ** 2), rtol=1e-12)
    np.testing.assert_allclose(cleave.frame_weights(frames, "variance"), 1 / scale ** 2, rtol=1e-12)
    frames["scale"][3] = np.nan
    assert cleave.frame_weights(frames)[3] == 1 and cleave.frame_weights(frames)[5] < 1e-3
    with pytest.raises(cleave.ArgumentError):
        cleave.frame_weights(frames, "median")


def test_weights_are_those_of_the_formula(context):
    """In a field that does not rotate, one patch serves all frames, and a few lines of NumPy compute a and b."""
    rng = np.random.default_rng(28)
    frames, radius, (row, column) = 30, 2, (7, 8)
    cube = rng.normal(100, 1, (frames, 16, 17)).astype(np.float32)
    weights = rng.uniform(0.1, 3, frames)
    spread = np.arange(-3, 4)
    psf = np.exp(-(spread[:, None] ** 2 + spread ** 2) / 4).astype(np.float32)
    made = cleave.paco(cube, np.zeros(frames), psf, radius=radius, psf_mode="fixed", threshold=None, weights=weights,
                       context=context)
    near = [(y, x) for y in range(-2, 3) for x in range(-2, 3) if y * y + x * x <= radius ** 2]
    patch = np.stack([cube[:, row + y, column + x] for y, x in near], 1).astype(float)
    h = np.array([psf[3 + y, 3 + x] for y, x in near], float)
    w = weights / weights.max()
    off = patch - (w @ patch) / w.sum()
    q = np.sqrt(w)[:, None] * off
    s = q.T @ q / frames
    all_, diagonal, trace = (s ** 2).sum(), (np.diag(s) ** 2).sum(), np.trace(s)
    rho = min(max((all_ + trace ** 2 - 2 * diagonal) / ((frames + 1) * (all_ - diagonal)), 0), 1)
    inverse = np.linalg.inv((1 - rho) * s + rho * np.diag(np.diag(s)))
    a, b = w.sum() * (h @ inverse @ h), (w[:, None] * off).sum(0) @ inverse @ h
    assert made.a[row, column] == pytest.approx(a, rel=1e-4)
    assert made.snr[row, column] == pytest.approx(b / np.sqrt(a), abs=1e-3)
    np.testing.assert_array_equal(cleave.paco(cube, np.zeros(frames), psf, radius=radius, psf_mode="fixed",
                                              threshold=None, weights=8 * weights, context=context).a, made.a)


def test_wrong_weights_are_told(context, field):
    cube, angles, psf = with_planets(field)
    for wrong, error in ((np.ones(FRAMES - 1), cleave.ShapeError), (np.zeros(FRAMES), cleave.ArgumentError),
                         (np.full(FRAMES, np.nan), cleave.ArgumentError)):
        with pytest.raises(error, match="weight"):
            cleave.paco(cube, angles, psf, weights=wrong, context=context)
        with pytest.raises(error, match="weight"):
            cleave.companions(cube, angles, psf, weights=wrong, context=context)


def test_a_frame_that_counts_little_spoils_little(context, field):
    x, y, flux = 29.0, 25.0, 20.0
    cube, angles, psf = with_planets(field, (x, y, flux))
    want = cleave.characterize(cube, angles, psf, [(x, y)], radius=RADIUS, context=context)[0]
    cube[9] = 30 * cube[9] + 500
    weights = cleave.frame_weights(cleave.frame_quality(cube))
    got = cleave.characterize(cube, angles, psf, [(x, y)], radius=RADIUS, weights=weights, context=context)[0]
    assert got["flux"] == pytest.approx(want["flux"], abs=0.5 * want["flux_err"])
    assert np.hypot(got["x"] - want["x"], got["y"] - want["y"]) < want["x_err"]


def test_missing_pixels_cost_little(context, field):
    x, y = 29.0, 25.0
    cube, angles, psf = with_planets(field, (x, y, 8.0))
    want = cleave.paco(cube, angles, psf, radius=RADIUS, context=context).snr
    holes = cube.copy()
    holes[np.random.default_rng(2).random(cube.shape) < 0.01] = np.nan
    holes[:, 3, 4] = np.nan
    whole = cleave.mend(holes, 2.3548 * SIGMA)
    assert np.isnan(whole).sum() == FRAMES and np.isnan(whole[:, 3, 4]).all()
    known = ~np.isnan(holes)
    np.testing.assert_array_equal(whole[known], holes[known])
    got = cleave.paco(whole, angles, psf, radius=RADIUS, context=context).snr
    assert got[25, 29] > 0.95 * want[25, 29]


def test_the_psf_is_centred():
    psf = spot(20, 20, 9.5, 10.3).astype(np.float32)
    made, (dx, dy) = cleave.psf_recentre(psf)
    assert (dx, dy) == pytest.approx((0.3, -0.5), abs=1e-3)
    np.testing.assert_allclose(made[4:-4, 4:-4], spot(20, 20, 10, 10)[4:-4, 4:-4], atol=2e-3)


def test_a_report_sums_jobs_of_one_kind(context, field):
    report = cleave.Report()
    for radius in (RADIUS, RADIUS, 2):
        cleave.paco(*with_planets(field), radius=radius, threshold=None, context=context, report=report)
    jobs = report.to_dict()["jobs"]
    assert [job["runs"] for job in jobs] == [2, 1]
    for job, units in zip(jobs, (2 * (SIDE - 2 * RADIUS), SIDE - 4)):
        assert job["units"] == units == sum(share["units"] for share in job["shares"])
        assert job["seconds"] > 0 and sum(share["share"] for share in job["shares"]) == pytest.approx(1)
