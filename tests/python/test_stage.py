# SPDX-License-Identifier: Apache-2.0
"""Tests stage_drift() and registered() on a simulated movie in which all spots move together."""
import numpy as np
import pytest

import cleave
from cleave._library import lib

SIGMA, PHOTONS = 1.5, 1500
HERE = lib.clv_stage_available()


def scene(rng, drift, height=128, width=160, count=120):
    y, x = rng.uniform(-20, height + 20, count), rng.uniform(-20, width + 20, count)
    rows, columns = np.arange(height)[:, None], np.arange(width)[:, None]
    frames = []
    for dy, dx in drift:
        tall, wide = (np.exp(-(at - place) ** 2 / 2 / SIGMA**2) for at, place in ((rows, y + dy), (columns, x + dx)))
        frames.append(rng.poisson(20 + PHOTONS / (2 * np.pi * SIGMA**2) * tall @ wide.T))
    return np.array(frames, np.uint16)


@pytest.mark.skipif(not HERE, reason="built without KISS FFT")
@pytest.mark.parametrize("dtype", [np.uint16, np.float32])
def test_a_drift_is_measured(dtype):
    rng = np.random.default_rng(3)
    drift = np.cumsum(np.vstack([[0, 0], rng.normal([0.3, -0.15], 0.3, (29, 2))]), 0)
    movie = scene(rng, drift).astype(dtype)
    found = cleave.stage_drift(movie, table="array")
    assert found["found"].all() and list(found["frame"]) == list(range(30))
    off = np.stack([found["y"], found["x"]], -1) - drift
    assert np.abs(off).max() < 0.1 and off.std(0).max() < 0.03
    assert (found["y_err"][1:] < 0.03).all() and found["y_err"][0] == 0
    spots = cleave.blobs(movie, table="array", subpixel="fit")
    still = np.stack([spots["y"], spots["x"]], -1) - np.stack([found["y"], found["x"]], -1)[spots["frame"]]
    first = still[spots["frame"] == 0]
    first = first[(np.abs(first - [64, 80]) < [40, 55]).all(1)]
    for place in first:  # each spot keeps its position
        near = still[np.hypot(*(still - place).T) < 1]
        assert len(near) >= 15 and near.std(0).max() < 0.2


@pytest.mark.skipif(not HERE, reason="built without KISS FFT")
def test_a_registered_movie_stands_still():
    rng = np.random.default_rng(4)
    drift = np.array([[0, 0], [2.4, -1.3], [-3, 5], [1.5, 0.5]])
    movie = scene(rng, drift)
    found = cleave.stage_drift(movie)
    moved = cleave.registered(movie, found)
    assert moved.dtype == np.float32 and np.isnan(moved[1]).any()
    again = cleave.stage_drift(np.nan_to_num(moved, nan=20.0), table="array")
    assert np.abs(again["y"]).max() < 0.1 and np.abs(again["x"]).max() < 0.1
    whole = cleave.registered(movie[:2], [[0, 0], [3, -2]])
    assert (whole[0] == movie[0]).all() and (whole[1][:-3, 2:] == movie[1][3:, :-2]).all()


def test_wrong_use_is_told():
    movie = np.zeros((2, 40, 40), np.uint8)
    with pytest.raises(cleave.ShapeError, match=r"drift: got shape \(1, 2\)"):
        cleave.registered(movie, [[0, 0]])
    with pytest.raises(cleave.ArgumentError, match="finite"):
        cleave.registered(movie, [[0, 0], [np.nan, 0]])
    if not HERE:
        with pytest.raises(cleave.UnsupportedError, match="KISS FFT"):
            cleave.stage_drift(movie)
        return
    with pytest.raises(cleave.ShapeError, match="at least 32"):
        cleave.stage_drift(movie[:, :20])
    with pytest.raises(cleave.ArgumentError, match="memory"):
        cleave.stage_drift(movie, memory=0)
    blank = cleave.stage_drift(movie, table="array")
    assert list(blank["found"]) == [True, False] and np.isnan(blank["y_err"][1])
