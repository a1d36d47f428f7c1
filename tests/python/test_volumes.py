# SPDX-License-Identifier: Apache-2.0
"""Tests spots in volumes with the scenes of scikit-image's tests of blob_log and blob_dog in three dimensions, and with
simulated spots and noise.

Adapted from scikit-image's skimage/feature/tests/test_blob.py (BSD-3-Clause): the scenes, the expected spots and
the tolerances are scikit-image's. Different here: volumes() in place of blob_log() and blob_dog(), with kernel="scipy",
subpixel="none" and float32; `threshold` is passed where scikit-image's tests use the default (0.2 and 0.5); sigmas
along the axes are given as voxel_size, so they share one ratio (min_sigma [1, 2, 2] to max_sigma [5, 10, 10] and [1.5,
3, 3] to [5, 10, 10] become 2 to 10 and 3 to 10 with voxels of 2, 1, 1); [2, 2.01, 2.005] becomes a voxel with the
reciprocals as its sides. Left out: 1-D and 4-D arrays."""
import itertools
import math

import numpy as np
import pytest

import cleave

LIKE_THEIRS = {"kernel": "scipy", "subpixel": "none", "table": "array"}


def ellipsoid(a, b, c):
    """Returns the voxels inside an ellipsoid with a rim of one voxel, as skimage.draw.ellipsoid does."""
    z, y, x = (np.arange(-math.ceil(side) - 1, math.ceil(side) + 2) for side in (a, b, c))
    return ((z[:, None, None] / a) ** 2 + (y[:, None] / b) ** 2 + (x / c) ** 2 <= 1).astype(np.float32)


@pytest.mark.parametrize("limit", [{"threshold": 0.001}, {"threshold_rel": 0.5}])
@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.float64])
def test_blob_dog_3d(context, dtype, limit):
    r, pad = 10, 10
    volume = np.pad(ellipsoid(r, r, r), pad).astype(dtype)
    spots = cleave.volumes(volume, dog=True, min_sigma=3, max_sigma=10, sigma_ratio=1.2, **limit, **LIKE_THEIRS,
                           context=context)
    best = spots[np.argmax(spots["response"])]
    assert (best["z"], best["y"], best["x"]) == (r + pad + 1,) * 3
    assert abs(math.sqrt(3) * best["sigma"] - r) < 1.1


@pytest.mark.parametrize("limit", [{"threshold": 0.001}, {"threshold_rel": 0.5}])
def test_blob_dog_3d_anisotropic(context, limit):
    r, pad = 10, 10
    volume = np.pad(ellipsoid(r / 2, r, r), pad)
    spots = cleave.volumes(volume, voxel_size=(2, 1, 1), dog=True, min_sigma=3, max_sigma=10, sigma_ratio=1.2,
                           **limit, **LIKE_THEIRS, context=context)
    best = spots[np.argmax(spots["response"])]
    assert (best["z"], best["y"], best["x"]) == (r / 2 + pad + 1, r + pad + 1, r + pad + 1)
    assert abs(math.sqrt(3) * best["sigma_z"] - r / 2) < 1.1
    assert abs(math.sqrt(3) * best["sigma"] - r) < 1.1


def test_blob_log_3d(context):
    r, pad = 6, 10
    volume = np.pad(ellipsoid(r, r, r), pad)
    spots = cleave.volumes(volume, min_sigma=3, max_sigma=10, num_sigma=10, threshold=0.2, **LIKE_THEIRS,
                           context=context)
    assert (spots["z"][0], spots["y"][0], spots["x"][0]) == (r + pad + 1,) * 3
    assert abs(math.sqrt(3) * spots["sigma"][0] - r) < 1


def test_blob_log_3d_anisotropic(context):
    r, pad = 6, 10
    volume = np.pad(ellipsoid(r / 2, r, r), pad)
    spots = cleave.volumes(volume, voxel_size=(2, 1, 1), min_sigma=2, max_sigma=10, num_sigma=10, threshold=0.2,
                           **LIKE_THEIRS, context=context)
    best = spots[np.argmax(spots["response"])]
    assert (best["z"], best["y"], best["x"]) == (r / 2 + pad + 1, r + pad + 1, r + pad + 1)
    assert abs(math.sqrt(3) * best["sigma_z"] - r / 2) < 1
    assert abs(math.sqrt(3) * best["sigma"] - r) < 1


@pytest.mark.parametrize("voxel", [None, (1 / 2, 1 / 2.01, 1 / 2.005)])
def test_blob_log_overlap_3d(context, voxel):
    volume = np.pad(ellipsoid(7, 7, 7), 11)
    other = np.pad(ellipsoid(6, 6, 6), [(12, 12), (3, 21), (12, 12)])
    spots = cleave.volumes(np.maximum(volume, other), voxel_size=voxel, min_sigma=2, max_sigma=10, num_sigma=10,
                           overlap=0.1, threshold=0.2, **LIKE_THEIRS, context=context)
    assert len(spots) == 1


@pytest.mark.parametrize("dog", [False, True])
def test_no_peaks(context, dog):
    spots = cleave.volumes(np.zeros((16, 16, 16), np.float32), dog=dog, max_sigma=8, table="array", context=context)
    assert spots.shape == (0,) and spots.dtype == cleave.VOLUME_SPOT


def test_borders_are_left_out(context):
    volume = np.pad(ellipsoid(5, 5, 5), [(0, 40), (10, 20), (10, 20)])[1:]
    options = {"min_sigma": 1.5, "max_sigma": 5, "threshold": 0.1, **LIKE_THEIRS, "context": context}
    assert cleave.volumes(volume, **options)["z"].tolist() == [5]
    assert len(cleave.volumes(volume, exclude_border=6, **options)) == 0


# ---- accuracy

def part(at, centre, width):
    erf = np.vectorize(math.erf)
    return (erf((at + 0.5 - centre) / width / 2 ** 0.5) - erf((at - 0.5 - centre) / width / 2 ** 0.5)) / 2


def spot(z, y, x, light, ground, sigma, sigma_z, shape=(24, 16, 16)):
    a, b, c = (np.arange(side) for side in shape)
    return ground + light * part(a, z, sigma_z)[:, None, None] * part(b, y, sigma)[:, None] * part(c, x, sigma)


def bound(light, ground, sigma, sigma_z):
    """Returns the Cramer-Rao bounds of z, y and x for a number of photons, with unknown brightness, background and
    widths."""
    rng, total = np.random.default_rng(1), np.zeros(3)
    for _ in range(6):
        at = [11.5 + rng.uniform(-.5, .5), 7.5 + rng.uniform(-.5, .5), 7.5 + rng.uniform(-.5, .5), light, ground,
              sigma, sigma_z]
        slopes = []
        for i, value in enumerate(at):
            step = 1e-4 * max(1, abs(value))
            up, down = list(at), list(at)
            up[i] += step
            down[i] -= step
            slopes.append((spot(*up) - spot(*down)).ravel() / (2 * step))
        slopes = np.array(slopes)
        total += np.diag(np.linalg.inv(slopes / spot(*at).ravel() @ slopes.T))[:3] / 6
    return np.sqrt(total)


@pytest.mark.parametrize("sigma, sigma_z, light, ground, voxel",
                         [(1.5, 1.5, 2000, 10, None), (1.3, 2.2, 3000, 20, (0.6, 1, 1)),
                          (2.0, 1.0, 6000, 20, (2, 1, 1))])
def test_places_are_at_the_bound(context, sigma, sigma_z, light, ground, voxel):
    rng, side = np.random.default_rng(7), 16
    volume, truth = np.empty((24, 16 * side, 16 * side)), []
    for j, k in itertools.product(range(side), range(side)):
        z, y, x = 11.5 + rng.uniform(-.5, .5), 7.5 + rng.uniform(-.5, .5), 7.5 + rng.uniform(-.5, .5)
        volume[:, 16 * j:16 * j + 16, 16 * k:16 * k + 16] = spot(z, y, x, light, ground, sigma, sigma_z)
        truth.append((z, 16 * j + y, 16 * k + x))
    found = cleave.volumes(rng.poisson(volume).astype(np.uint16), voxel_size=voxel, subpixel="fit", table="array",
                           context=context)
    assert len(found) == len(truth) and not (found["flags"] & 1).any()
    places = np.stack([found["z"], found["y"], found["x"]], 1).astype(float)
    errors = []
    for place in truth:
        i = np.argmin(((places - place) ** 2).sum(1))
        errors.append(np.append(places[i] - place, (places[i] - place) /
                                [found["z_err"][i], found["y_err"][i], found["x_err"][i]]))
    errors = np.array(errors)
    assert (np.sqrt((errors[:, :3] ** 2).mean(0)) / bound(light, ground, sigma, sigma_z) < 1.1).all()
    assert abs(errors[:, 3:].std(0) - 1).max() < 0.15  # 256 spots determine the ratio to 0.045
    assert np.median(found["sigma"]) == pytest.approx(sigma, rel=0.03)
    assert np.median(found["sigma_z"]) == pytest.approx(sigma_z, rel=0.03)


@pytest.mark.parametrize("scene", ["white", "photons", "few photons", "uneven light"])
def test_noise_is_no_spot(context, scene):
    rng, shape = np.random.default_rng(5), (48, 160, 160)
    volume = {"white": lambda: rng.normal(0, 1, shape).astype(np.float32),
              "photons": lambda: rng.poisson(10, shape).astype(np.uint16),
              "few photons": lambda: rng.poisson(0.5, shape).astype(np.uint16),
              "uneven light": lambda: rng.poisson(np.broadcast_to(np.linspace(5, 200, 160), shape)).astype(np.uint16),
              }[scene]()
    found = cleave.volumes(volume, threshold_sigma=5, table="array", context=context)
    assert len(found) <= 10 * volume.size / 1e6


def test_stacks_are_numbered(reference):
    volume = np.zeros((2, 12, 20, 20), np.float32)
    volume[1, 6, 10, 9] = 50
    volume[0, 4, 5, 6] = 50
    found = cleave.volumes(volume, threshold=5, table="array", context=reference)
    assert [(s["frame"], round(float(s["z"])), round(float(s["y"])), round(float(s["x"]))) for s in found] == \
        [(0, 4, 5, 6), (1, 6, 10, 9)]
    again = cleave.volumes(volume, voxel_size=np.ones(3), threshold=5, table="array", context=reference)
    assert (again == found).all()
    for sides in (1, 2), 2, (), (1, 0, 1), (1, 1, math.nan):
        with pytest.raises(cleave.errors.ArgumentError):
            cleave.volumes(volume, voxel_size=sides, context=reference)
    with pytest.raises(cleave.errors.ShapeError):
        cleave.volumes(volume[0, 0], context=reference)


def test_links_are_in_space():
    spots = np.zeros(4, [("frame", "i8"), ("z", "f8"), ("y", "f8"), ("x", "f8")])
    spots["frame"], spots["z"] = [0, 1, 0, 1], [0, 9, 5, 6]
    assert cleave.link(spots, 3).tolist() == [0, 2, 1, 1]
    assert cleave.link({"frame": spots["frame"], "y": spots["y"], "x": spots["x"] + spots["z"]}, 3).tolist() == \
        [0, 2, 1, 1]
    assert cleave.link(np.array([[0, 0, 1, 1], [1, 9, 1, 1]]), 3).tolist() == [0, 1]
