# SPDX-License-Identifier: Apache-2.0
"""Compares Tracks with sums that are written out in NumPy, and with simulated motion."""
import copy

import numpy as np
import pytest

import cleave

NAMES = ("frame", "z", "y", "x", "particle")


def brownian(seed, d, error, tracks, length, *, axes=2, drift=0.0, gaps=0.0, blur=0.0):
    """Returns the columns of synthetic tracks; `blur` is the fraction of the interval in which light is collected."""
    rng = np.random.default_rng(seed)
    steps = 24 if blur else 1
    fine = np.cumsum(rng.normal(0, np.sqrt(2 * d / steps), (tracks, length * steps, axes)), axis=1)
    fine = fine.reshape(tracks, length, steps, axes)
    places = fine[:, :, :max(int(steps * blur), 1)].mean(axis=2) + rng.uniform(0, 100, (tracks, 1, axes))
    places += rng.normal(0, error, places.shape) + drift * np.arange(length)[:, None]
    keep = rng.uniform(size=(tracks, length)) >= gaps
    particle, frame = np.nonzero(keep)
    order = rng.permutation(len(frame))
    table = {"frame": frame[order] + 5, "particle": 3 * particle[order]}
    table.update((name, places[keep][order, axis]) for axis, name in enumerate(("z", "y", "x")[3 - axes:]))
    return table


def msd_of(table, particle, lag, axes):
    own = {int(f): np.array([table[a][i] for a in axes]) for i, f in enumerate(table["frame"])
           if table["particle"][i] == particle}
    steps = [own[f + lag] - own[f] for f in own if f + lag in own]
    return (np.mean([np.sum(step ** 2) for step in steps]) if steps else np.nan), len(steps)


@pytest.mark.parametrize("axes,gaps", [(2, 0.0), (3, 0.3)])
def test_mean_squared_displacements_are_the_written_out_sums(axes, gaps):
    table = brownian(1, 0.5, 0.1, 6, 12, axes=axes, gaps=gaps)
    tracks = cleave.Tracks(table)
    assert tracks.axes == axes and tracks.table["particle"].tolist() == [0, 3, 6, 9, 12, 15]
    sums = np.zeros((2, 11))
    for at, particle in enumerate(tracks.table["particle"]):
        rows = tracks.msd(track=at)
        assert rows["lag"].tolist() == list(range(1, 12))
        if not gaps:  # Qian et al. 1991: all are independent at lag 1, one at the last lag
            np.testing.assert_allclose(rows["independent"][[0, 1, -1]], [11, 6 * 100 * 2 / (24 - 2 + 192 - 40), 1])
        for row in rows:
            want, pairs = msd_of(table, particle, row["lag"], ("z", "y", "x")[3 - axes:])
            assert row["pairs"] == pairs
            np.testing.assert_allclose(row["msd"], want, rtol=1e-9)
            np.testing.assert_allclose(row["square"].sum(), want, rtol=1e-9)
            if pairs:
                sums[:, row["lag"] - 1] += row["independent"] * np.array([row["msd"], 1])
    np.testing.assert_allclose(tracks.msd()["msd"], sums[0] / sums[1], rtol=1e-9)


def test_errors_of_mean_squared_displacements_are_their_scatter():
    for tracks, length in ((1, 60), (30, 40)):
        found = [cleave.Tracks(brownian(seed, 1.0, 0, tracks, length)).msd(12) for seed in range(200)]
        scatter = np.std([rows["msd"] for rows in found], axis=0)
        told = np.mean([rows["error"] for rows in found], axis=0)
        np.testing.assert_allclose(told[[0, 3, 11]], scatter[[0, 3, 11]], rtol=0.2)


CASES = [  # D, error of positions, tracks, frames, how the tracks are made, options
    (1.0, 0.0, 150, 200, {}, {}),
    (0.05, 0.2, 400, 200, {}, {}),
    (0.5, 0.5, 3000, 20, {}, {}),
    (0.2, 0.2, 500, 100, {"gaps": 0.3}, {}),
    (0.5, 0.3, 300, 100, {"axes": 3}, {}),
    (1.0, 0.3, 300, 100, {"blur": 1.0}, {"exposure": 1.0}),
    (1.0, 0.3, 150, 100, {"blur": 0.5}, {"exposure": 0.5, "position_error": 0.3}),
    (0.02, 0.3, 300, 200, {}, {"position_error": 0.3}),
]


@pytest.mark.parametrize("d,error,count,length,made,options", CASES)
def test_diffusion_is_found_within_3_percent(d, error, count, length, made, options):
    for seed in (11, 12):
        found = cleave.Tracks(brownian(seed, d, error, count, length, **made)).diffusion(**options)
        assert abs(found.d / d - 1) < 0.03 and abs(found.d - d) < 4 * found.d_error < 0.06 * d
        assert abs(found.position_error - error) < 0.06 * np.sqrt(d) + 0.01
        assert np.isnan(found.axial) == ("axes" not in made)


def test_errors_of_diffusion_are_the_scatter_of_short_tracks():
    tracks = cleave.Tracks(brownian(4, 0.5, 0.3, 400, 60))
    found = [tracks.diffusion(i) for i in range(len(tracks))]
    scatter, told = np.std([f.d for f in found]), np.mean([f.d_error for f in found])
    assert abs(told / scatter - 1) < 0.12
    assert abs(np.mean([f.d for f in found]) / 0.5 - 1) < 0.06


def test_units_scale_what_is_found():
    table = brownian(2, 1.0, 0.2, 50, 50)
    plain, scaled = cleave.Tracks(table), cleave.Tracks(table, scale=0.1, interval=0.05)
    assert scaled.diffusion().d == pytest.approx(plain.diffusion().d * 0.01 / 0.05, rel=1e-5)
    assert scaled.msd()["msd"][3] == pytest.approx(plain.msd()["msd"][3] * 0.01)


@pytest.mark.parametrize("count,smooth", [(12, 1), (12, 8)])
def test_drift_is_found_and_what_it_takes_of_the_diffusion_is_given_back(count, smooth):
    raw, back = [], []
    for seed in range(6):
        table = brownian(30 + seed, 0.5, 0.1, count, 1000, drift=0.7)
        tracks = cleave.Tracks(table)
        raw.append(tracks.diffusion().d)
        drift = tracks.drift(smooth)
        assert abs(drift[-1] / (0.7 * 999) - 1).max() < 0.05
        before = tracks.spots
        after = tracks.subtract_drift(smooth=smooth).spots
        np.testing.assert_allclose(after["x"], before["x"] - drift[before["frame"] - 5, -1])
        back.append(tracks.diffusion().d)
    assert np.mean(raw) > 0.6  # the drift counts as diffusion unless it is subtracted
    assert abs(np.mean(back) / 0.5 - 1) < 0.015


def test_a_drift_from_elsewhere_takes_nothing_away():
    table = brownian(5, 0.5, 0.0, 4, 400, drift=2.0)
    truth = 2.0 * np.arange(400)[:, None].repeat(2, axis=1)
    still = cleave.Tracks(brownian(5, 0.5, 0.0, 4, 400)).diffusion()
    assert cleave.Tracks(table).subtract_drift(truth).diffusion().d == pytest.approx(still.d, rel=1e-4)


def test_filters_keep_what_is_within_bounds():
    table = brownian(6, 0.5, 0.1, 80, 40, gaps=0.4)
    rows = cleave.Tracks(table).table
    for bounds, keep in (({"min_spots": 24}, rows["spots"] >= 24), ({"max_spots": 24}, rows["spots"] <= 24),
                         ({"min_extent": 9}, rows["extent"] >= 9), ({"max_extent": 9}, rows["extent"] <= 9),
                         ({"min_displacement": 6}, rows["displacement"] >= 6),
                         ({"max_displacement": 6}, rows["displacement"] <= 6)):
        assert 0 < keep.sum() < 80
        np.testing.assert_array_equal(cleave.Tracks(table).filter(**bounds).table, rows[keep])
    one = [table["particle"] == rows["particle"][7]]
    places = np.stack([table["y"][tuple(one)], table["x"][tuple(one)]])
    assert rows["extent"][7] == pytest.approx(np.hypot(*np.ptp(places, axis=1)))


def test_odd_tables():
    none = cleave.Tracks({"frame": [], "y": [], "x": [], "particle": []})
    assert len(none) == 0 and len(none.msd()) == 0 and np.isnan(none.diffusion().d) and none.frames == (0, -1)
    assert none.drift().shape == (0, 2) and len(none.subtract_drift()) == 0
    still = cleave.Tracks(np.array([[0, 1, 1], [1, 1, 1], [2, 1, 1]]), [7, 7, 7])
    assert still.diffusion().d == 0 and still.msd()["msd"].tolist() == [0, 0]
    assert np.isnan(cleave.Tracks([[0, 1, 1], [1, 2, 1]], [7, 7]).diffusion().d)
    assert cleave.Tracks([[0, 5, 1, 1], [1, 5, 2, 1]], [7, 7]).axes == 2
    apart = cleave.Tracks([[-(10 ** 15), 0, 0], [10 ** 15, 3, 4]], [1, 1])
    assert apart.table["displacement"].tolist() == [5] and np.isnan(apart.msd(3)["msd"]).all()
    with pytest.raises(cleave.ArgumentError, match="two spots in frame 4"):
        cleave.Tracks([[4, 0, 0], [4, 1, 0]], [2, 2])
    with pytest.raises(cleave.ArgumentError, match="1e150"):
        cleave.Tracks([[4, 0, float("nan")]], [2])
    with pytest.raises(cleave.ShapeError, match="particle"):
        cleave.Tracks([[4, 0, 0]])
    for cut in (0.5, 1e300, float("inf"), float("nan"), 2 ** 64 - 1):  # as an int64, some are negative: no track
        with pytest.raises(cleave.ArgumentError, match="particle: number 1 is .*, but whole numbers of 64 bits"):
            cleave.Tracks([[4, 0, 0], [5, 0, 0]], np.array([0, cut]))
    with pytest.raises(cleave.ShapeError):
        still.subtract_drift(np.zeros((2, 2)))
    for wrong in ({"exposure": 2}, {"position_error": -1}, {"track": 1}):
        with pytest.raises(cleave.ArgumentError):
            still.diffusion(**wrong)
    with pytest.raises(cleave.ArgumentError, match="bound"):
        still.filter(min_extent=-1)
    with pytest.raises(TypeError):
        copy.copy(still)
