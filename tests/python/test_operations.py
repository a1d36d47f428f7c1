# SPDX-License-Identifier: Apache-2.0
"""Tests paco, blobs, link, specfit and matmul with arrays as inputs and outputs."""
import inspect
import sys
import types

import numpy as np
import pytest

import cleave


# ---- paco

def test_paco_finds_the_planet(context, reference, sequence):
    cube, angles, psf, row, column = sequence
    result = cleave.paco(cube, angles, psf, context=context)
    best = result.detections[0]
    assert (best["y"], best["x"]) == (row, column) and best["snr"] > 5
    assert result.snr.shape == cube.shape[1:] and result.snr.dtype == np.float32
    assert sum(result.counts.values()) == result.snr.size
    assert result.fwhm == pytest.approx(3.5, abs=0.05)
    assert best["snr"] == pytest.approx(result.snr[row, column])
    valid = np.isfinite(result.a)
    assert valid.sum() == result.counts["valid"]
    np.testing.assert_allclose(result.snr[valid], (result.b / np.sqrt(result.a))[valid], rtol=1e-6)
    plain = cleave.paco(cube, angles, psf, context=reference)
    np.testing.assert_allclose(plain.snr, result.snr, atol=2e-3)


def test_paco_takes_what_numpy_has(reference, sequence):
    cube, angles, psf, _, _ = sequence
    want = cleave.paco(cube, angles, psf, context=reference)

    def same(cube, angles=angles, psf=psf):
        got = cleave.paco(cube, angles, psf, context=reference)
        return np.array_equal(got.a, want.a, equal_nan=True)

    room = np.full((len(cube) + 1, cube.shape[1] + 2, cube.shape[2] + 5), 7e7, np.float32)
    room[:-1, 1:-1, 2:-3] = cube
    assert same(room[:-1, 1:-1, 2:-3])  # rows and frames with padding
    assert same(cube.astype(">f4")) and same(cube.astype(np.float64))
    assert same(np.asfortranarray(cube)) and same(cube[::-1].copy()[::-1])
    assert same(cube, list(angles), psf.astype(np.float64))
    dead = np.ma.masked_array(cube, np.zeros(cube.shape, bool))
    dead.mask[3, 5, 6] = True
    got = cleave.paco(dead, angles, psf, context=reference)
    assert got.counts["not_finite"] > 0 and want.counts["not_finite"] == 0


def test_paco_options_reach_the_library(reference, sequence):
    cube, angles, psf, row, column = sequence
    base = cleave.paco(cube, angles, psf, context=reference)
    peak = cleave.paco(cube, angles, 2 * psf, psf_norm="peak", context=reference)
    np.testing.assert_allclose(peak.flux, base.flux, rtol=1e-4)
    turned = cleave.paco(cube, -angles, psf, reverse_angles=True, context=reference)
    assert np.array_equal(turned.a, base.a, equal_nan=True)
    fixed = cleave.paco(cube, angles, psf, psf_mode="fixed", context=reference)
    assert not np.array_equal(fixed.a, base.a, equal_nan=True)
    assert cleave.paco(cube, angles, psf, radius=3, context=reference).counts["valid"] > \
        base.counts["valid"]
    none = cleave.paco(cube, angles, psf, threshold=None, context=reference)
    assert len(none.detections) == 0 and none.fwhm is None
    moved = cleave.paco(cube, angles, psf, center=(19.5, 20.5), context=reference)
    assert not np.array_equal(moved.a, base.a, equal_nan=True)
    with pytest.raises(cleave.ArgumentError, match="psf_mode is 'round', but it must be one of"):
        cleave.paco(cube, angles, psf, psf_mode="round", context=reference)
    with pytest.raises(cleave.ShapeError, match="angles: there are 3"):
        cleave.paco(cube, angles[:3], psf, context=reference)
    with pytest.raises(cleave.ShapeError, match="numbers are expected|numbers is expected"):
        cleave.paco(cube.astype(str), angles, psf, context=reference)


def test_psf_helpers_leave_their_input_alone(sequence):
    psf = 3 * sequence[2]
    before = psf.copy()
    assert cleave.psf_normalize(psf, "sum").sum() == pytest.approx(1, rel=1e-5)
    assert cleave.psf_normalize(psf, "peak").max() == 1
    assert cleave.psf_normalize(psf, "aperture").sum() > 1
    assert np.array_equal(psf, before)
    with pytest.raises(cleave.FormatError):
        cleave.psf_fwhm(np.zeros((11, 11)))


# ---- blobs, link

def test_blobs_finds_and_link_follows(context, reference, movie):
    spots = cleave.blobs(movie, threshold_rel=0.3, table="array", context=context)
    assert spots.dtype == cleave.SPOT and len(spots) == 2 * len(movie)
    first = spots[spots["frame"] == 2]
    np.testing.assert_allclose(first["y"], [12.25, 34], atol=0.05)
    np.testing.assert_allclose(first["x"], [12.5, 17], atol=0.05)
    particle = cleave.link(spots, 2.0)
    assert particle.tolist() == [0, 1] * len(movie)
    plain = cleave.blobs(movie, threshold_rel=0.3, table="array", context=reference)
    for name in ("y", "x", "response"):
        np.testing.assert_allclose(plain[name], spots[name], rtol=1e-4)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int16, np.float64, ">u2", np.float16])
def test_blobs_takes_every_type(reference, movie, dtype):
    rounded = np.rint(movie)
    want = cleave.blobs(rounded, table="array", context=reference)
    got = cleave.blobs(rounded.astype(dtype), table="array", context=reference)
    assert len(got) == len(want) > 0
    np.testing.assert_allclose(got["x"], want["x"], atol=1e-5)
    part = cleave.blobs(rounded.astype(dtype)[::2, 3:, :-3], table="array", context=reference)
    assert set(part["frame"]) == {0, 1, 2}


def test_blobs_options_reach_the_library(reference, movie):
    assert len(cleave.blobs(movie[0], threshold_rel=0.3, table="array", context=reference)) == 2
    assert len(cleave.blobs(movie[0], threshold=1e9, table="array", context=reference)) == 0
    whole = cleave.blobs(movie[:1], subpixel="none", table="array", context=reference)
    assert np.array_equal(whole["x"], np.rint(whole["x"]))
    dark = cleave.blobs(-movie[:1], invert=True, table="array", context=reference)
    bright = cleave.blobs(movie[:1], table="array", context=reference)
    np.testing.assert_allclose(dark["x"], bright["x"])
    assert len(cleave.blobs(movie[:1], exclude_border=20, table="array", context=reference)) < \
        len(bright)
    with pytest.raises(cleave.ShapeError, match="got int64"):
        cleave.blobs(movie.astype(np.int64), context=reference)
    with pytest.raises(cleave.ArgumentError):
        cleave.blobs(movie, min_sigma=5, max_sigma=1, context=reference)


def test_blobs_gives_a_frame_where_pandas_is(context, movie, monkeypatch):
    class Frame(dict):
        columns = property(lambda self: list(self))

    module = types.ModuleType("pandas")
    module.DataFrame = Frame
    monkeypatch.setitem(sys.modules, "pandas", module)
    frame = cleave.blobs(movie, threshold_rel=0.3, context=context)
    assert isinstance(frame, Frame) and frame.columns == list(cleave.SPOT.names)
    assert cleave.link(frame, 2.0).max() == 1
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(cleave.blobs(movie, context=context), np.ndarray)
    with pytest.raises(ImportError):
        cleave.blobs(movie, table="pandas", context=context)


def test_a_stream_gives_the_same_spots(reference, movie):
    want = cleave.blobs(movie, threshold_sigma=5, table="array", context=reference)
    with cleave.BlobStream(movie.shape[1:], np.float32, capacity=2, threshold_sigma=5,
                           context=reference) as stream:
        parts = [stream.push(movie[0]), stream.push(movie[1:3]), stream.push(movie[3:5]),
                 stream.push(movie[5])]
        assert stream.summary["frames"] == len(movie)
        with pytest.raises(cleave.ShapeError, match="frames of float32"):
            stream.push(movie.astype(np.uint8))
        assert stream.errors.shape == (len(parts[-1]), 2) and np.isnan(stream.errors).all()
    assert np.array_equal(np.concatenate(parts), want)
    with cleave.BlobStream(movie.shape[1:], np.float32, threshold_sigma=5, subpixel="fit", context=reference) as stream:
        spots = stream.push(movie[0])
        assert len(spots) and (stream.errors[spots["flags"] & 1 == 0] > 0).all()
    with pytest.raises(cleave.ArgumentError, match="closed"):
        stream.push(movie[0])
    with pytest.raises(cleave.ArgumentError, match="there is no option 'colour'"):
        cleave.BlobStream((8, 8), np.uint8, colour=1)


def test_link_takes_tables_of_all_kinds():
    rows = [[0, 1.0, 1.0], [0, 9.0, 9.0], [1, 9.5, 9.0], [1, 1.0, 1.5], [3, 1.0, 2.0]]
    assert cleave.link(rows, 2.0).tolist() == [0, 1, 1, 0, 2]
    assert cleave.link(rows, 2.0, memory=1).tolist() == [0, 1, 1, 0, 0]
    assert cleave.link(rows, 2.0, min_length=2).tolist() == [0, 1, 1, 0, -1]
    columns = dict(zip(("frame", "y", "x"), np.array(rows).T))
    assert cleave.link(columns, 2.0).tolist() == [0, 1, 1, 0, 2]
    assert cleave.link(np.empty((0, 3)), 2.0).shape == (0,)
    with pytest.raises(cleave.ArgumentError, match="whole number"):
        cleave.link([[0.5, 1, 1]], 2.0)
    with pytest.raises(cleave.ShapeError, match="no column 'y'"):
        cleave.link({"frame": [0], "x": [0]}, 2.0)
    with pytest.raises(cleave.ArgumentError):
        cleave.link(rows, 0.0)
    with pytest.raises(cleave.ArgumentError):
        cleave.link([[0, np.nan, 0]], 1.0)
    assert cleave.link(rows, 2.0, memory=2**64 - 1).tolist() == [0, 1, 1, 0, 0]
    with pytest.raises(cleave.ArgumentError, match=r"memory is 18446744073709551616, but it must be 0 to 2\^64 - 1"):
        cleave.link(rows, 2.0, memory=2**64)
    with pytest.raises(cleave.ArgumentError, match="2\\^63 or more"):
        cleave.link({"frame": np.array([2**63], np.uint64), "y": [0], "x": [0]}, 1.0)


# ---- matmul

def test_matmul_is_numpys(context):
    random = np.random.default_rng(3)

    def close(got, a, b):
        want = a.astype(np.float64) @ b.astype(np.float64)
        limit = 1e-6 * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)) + 1e-30
        assert got.shape == want.shape and got.dtype == np.float32
        assert (np.abs(got - want) <= limit).all()

    for m, n, k in ((1, 1, 1), (3, 5, 2), (70, 33, 129), (300, 200, 257)):
        a, b = (random.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n)))
        close(cleave.matmul(a, b, context=context), a, b)
        close(cleave.matmul(b.T, a.T, context=context), b.T, a.T)
        close(cleave.matmul(a[::-1], b[:, ::-1], context=context), a[::-1], b[:, ::-1])
    stack = random.standard_normal((4, 9, 6)).astype(np.float32)
    one = random.standard_normal((6, 5)).astype(np.float32)
    close(cleave.matmul(stack, one, context=context), stack, one)
    close(cleave.matmul(stack[::2], one[None], context=context), stack[::2], one[None])
    close(cleave.matmul(one.T, stack.transpose(0, 2, 1), context=context), one.T,
          stack.transpose(0, 2, 1))
    same = np.broadcast_to(one[:1], (6, 5))
    close(cleave.matmul(stack, same, context=context), stack, same)


def test_matmul_writes_where_it_is_told(context):
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((3, 4), np.float32)
    room = np.full((2, 6), 5, np.float32)
    out = room[:, 1:5]
    assert cleave.matmul(a, b, out=out, alpha=2.0, beta=3.0, context=context) is out
    np.testing.assert_array_equal(out, 2 * (a @ b) + 15)
    assert (room[:, [0, 5]] == 5).all()
    for wrong in (np.empty((2, 3), np.float32), np.empty((2, 4)), np.empty((2, 4), np.float32)[::-1]):
        with pytest.raises(cleave.ShapeError):
            cleave.matmul(a, b, out=wrong, context=context)
    with pytest.raises(cleave.ShapeError, match="overlaps"):
        cleave.matmul(np.eye(2, dtype=np.float32), room[:, :4], out=room[:, 1:5], context=context)
    with pytest.raises(cleave.ShapeError, match="do not fit"):
        cleave.matmul(a, a, context=context)
    assert cleave.matmul(np.empty((0, 3)), b, context=context).shape == (0, 4)
    room = np.zeros((3 * 2, 2), np.float32)  # a stack in which all matrices are the first one
    stack = np.lib.stride_tricks.as_strided(room, (3, 2, 2), (0, 8, 4))
    with pytest.raises(cleave.ShapeError, match=r"strides are \(0, 8, 4\) bytes, but they must be positive"):
        cleave.matmul(np.ones((3, 2, 2)), np.eye(2), out=stack, context=context)
    assert not room.any()
    with pytest.raises(cleave.ArgumentError, match="list .*, but it must be an array of NumPy"):
        cleave.matmul(np.eye(2), np.eye(2), out=[[0, 0], [0, 0]], context=context)


# ---- specfit

def library_of_lines():
    """Returns a network of one layer: three lines, the second of which is deep in cool stars."""
    points, start, last = 900, 4480.0, 4800.0
    ln = np.linspace(np.log(start), np.log(last), points)
    wave = np.exp(ln)
    lines = [(4530.0, 0.5), (4600.0, 0.2), (4710.0, 0.6), (4650.0, 0.3), (4560.0, 0.4)]
    shape = np.array([np.exp(-0.5 * ((wave - at) / 1.2)**2) for at, _ in lines])
    bias = -(np.array([depth for _, depth in lines]) @ shape)
    weight = np.zeros((points, 4))
    for i in range(4):
        weight[:, i] = 0.12 * shape[i] * (1 if i else 2)
    grid = np.linspace(np.log(4500.0), np.log(4780.0), 1024)
    parameters = np.array([[t, g, -0.5, 0.2] for t in (4500, 5500, 6500) for g in (2.0, 4.0)])
    mean, std = np.array([3.74, 3.0, -0.5, 0.2]), np.array([0.08, 1.0, 0.8, 0.2])
    corners = np.array([[i >> k & 1 for k in range(4)] for i in range(16)]) * 5.0 - 2.5

    def template(teff, logg, feh, alpha):
        q = (np.array([np.log10(teff), logg, feh, alpha]) - mean) / std
        return np.exp(weight @ q + bias)

    ccf = [np.interp(grid, ln, template(*p)) for p in parameters]
    arm = cleave.SpectraArm("blue", start, last, [weight], [bias], mean, std, corners, ccf,
                            grid[0], grid[-1], 3000.0)
    return cleave.SpectraLibrary([arm], parameters), template, wave


def test_specfit_finds_the_velocity(reference):
    library, template, grid = library_of_lines()
    random, wave = np.random.default_rng(5), np.arange(4510.0, 4770.0, 0.6)
    velocities, flux = np.array([-150.0, 0.0, 220.0]), []
    for v in velocities:
        beta = v / 299792.458
        clean = np.interp(wave * np.sqrt((1 - beta) / (1 + beta)), grid,
                          template(5500, 3.0, -0.5, 0.2))
        flux.append(100 * clean + random.standard_normal(len(wave)))
    flux.append(np.full(len(wave), 50.0))
    ivar = np.ones((4, len(wave)))
    ivar[3] = 0
    stars = {"arm": "blue", "wavelength": wave, "flux": flux, "ivar": ivar}
    rows, (model,) = cleave.specfit(stars, library, max_velocity=500, terms=3, models=True,
                                    context=reference)
    np.testing.assert_allclose(rows["velocity"][:3], velocities, atol=5)
    assert (rows["velocity_error"][:3] > 0).all() and rows["warnings"][3] & 32
    assert np.isnan(rows["velocity"][3]) and rows["chisq"].shape == (4, 1)
    assert rows["covariance"].shape == (4, 6, 6)
    np.testing.assert_array_equal(rows["covariance"], rows["covariance"].transpose(0, 2, 1))
    scatter = (flux[0] - model[0]).std()
    assert model.shape == (4, len(wave)) and scatter < 1.5
    again = cleave.specfit([stars], library, max_velocity=500, terms=3, context=reference)
    np.testing.assert_allclose(again["velocity"], rows["velocity"], atol=0.1)
    holes, got = np.zeros(ivar.shape, bool), []
    holes[:, 100:140] = True
    masked = np.ma.array(np.where(holes, 1e6, flux), mask=holes)
    unknown = np.ma.array(np.where(holes, 9.0, ivar), mask=holes)
    for part in ({"flux": masked}, {"ivar": unknown}):
        got.append(cleave.specfit({**stars, **part}, library, max_velocity=500, terms=3,
                                  context=reference)["velocity"])
    want = cleave.specfit({**stars, "ivar": np.where(holes, 0, ivar)}, library, max_velocity=500,
                          terms=3, context=reference)
    np.testing.assert_array_equal(got, [want["velocity"]] * 2)
    assert (got[0][:3] != rows["velocity"][:3]).any()
    known = cleave.specfit(stars, library, max_velocity=500, terms=3, context=reference,
                           fixed={"vsini": 3.0, "logg": [3.0, 2.9, 3.1, 3.0]}, priors={"velocity": (0.0, 0.1)})
    np.testing.assert_allclose(known["logg"][:3], [3.0, 2.9, 3.1], atol=1e-6)
    assert (known["vsini"][:3] == 3).all() and (known["logg_error"][:3] == 0).all()
    assert (np.abs(known["velocity"][:3]) < np.abs(rows["velocity"][:3]) + 0.1).all()
    np.testing.assert_allclose(known["velocity_error"][:3], 0.1, rtol=0.02)  # the likelihood is nearly flat
    with pytest.raises(cleave.ArgumentError, match="priors: got 'mass'"):
        cleave.specfit(stars, library, priors={"mass": (1.0, 0.1)}, context=reference)
    with pytest.raises(cleave.ShapeError, match="fixed: logg"):
        cleave.specfit(stars, library, fixed={"logg": [3.0, 2.0]}, context=reference)


def test_zero_is_a_number_and_no_default(reference):
    """The library takes 0 as the default, but a caller from Python who passes 0 means 0."""
    library, template, grid = library_of_lines()
    wave = np.arange(4510.0, 4770.0, 0.6)
    clean = np.interp(wave * (1 + 150 / 299792.458), grid, template(5500, 3.0, -0.5, 0.2))
    star = {"arm": "blue", "wavelength": wave, "flux": 100 * clean, "ivar": np.ones(len(wave))}
    asked = {"max_velocity": 500, "terms": 3, "context": reference}
    assert abs(cleave.specfit(star, library, **asked)["velocity"][0] + 150) < 5
    assert cleave.specfit(star, library, min_velocity=0, **asked)["velocity"][0] >= 0
    with pytest.raises(cleave.ArgumentError, match="max_vsini is 0, but it must be more than 0"):
        cleave.specfit(star, library, max_vsini=0, **asked)
    y, x = np.mgrid[:40, :40]
    pair = sum(np.exp(-((y - 20.0)**2 + (x - at)**2) / 8) for at in (15, 20.5)).astype(np.float32)
    count = {part: len(cleave.blobs(pair, min_sigma=2, max_sigma=2, num_sigma=1, overlap=part,
                                    table="array", context=reference)) for part in (0, 0.5)}
    assert count == {0: 1, 0.5: 2}


def test_specfit_takes_masks_of_any_type(reference):
    library, template, grid = library_of_lines()
    wave = np.arange(4510.0, 4770.0, 0.6)
    flux = 100 * np.interp(wave, grid, template(5500, 3.0, -0.5, 0.2))
    bad = np.arange(len(wave)) % 7 == 0
    star = {"arm": "blue", "wavelength": wave, "flux": np.where(bad, 1e5, flux),
            "ivar": np.ones(len(wave))}
    for kind in (np.bool_, np.int32, np.uint32, np.int64, np.uint64):
        mask = bad if kind is np.bool_ else bad * kind(1 << 8 * np.dtype(kind).itemsize - 2)
        mask = mask * kind(2) if np.dtype(kind).kind == "u" else mask  # the highest bit
        rows = cleave.specfit({**star, "mask": mask}, library, max_velocity=300, terms=3,
                              context=reference)
        assert rows["pixels"][0, 0] == (~bad).sum() and abs(rows["velocity"][0]) < 2, kind


def test_specfit_says_what_does_not_fit(reference, tmp_path):
    library, _, _ = library_of_lines()
    wave = np.arange(4510.0, 4770.0, 0.6)
    ones = np.ones((2, len(wave)))
    with pytest.raises(cleave.FormatError, match="no arm 'red'; the arms are blue"):
        cleave.specfit({"arm": "red", "wavelength": wave, "flux": ones, "ivar": ones}, library)
    with pytest.raises(cleave.ArgumentError, match="lacks 'ivar'; it has arm, wavelength, flux"):
        cleave.specfit({"arm": "blue", "wavelength": wave, "flux": ones}, library)
    with pytest.raises(cleave.ShapeError, match="flux"):
        cleave.specfit({"arm": "blue", "wavelength": wave, "flux": ones, "ivar": ones[:1]},
                       library, context=reference)
    with pytest.raises(cleave.ShapeError):  # beyond the library
        cleave.specfit({"arm": "blue", "wavelength": wave + 500, "flux": ones, "ivar": ones},
                       library, context=reference)
    with pytest.raises(cleave.FileError, match="lib.json: No such file"):
        cleave.SpectraLibrary.load(tmp_path)
    (tmp_path / "lib.json").write_text('{"arms": {"blue": {}}}')
    with pytest.raises(cleave.FormatError, match="lib.json"):
        cleave.SpectraLibrary.load(tmp_path)


_OBVIOUS = {"sum", "mean", "var", "std", "min", "max", "argmin", "argmax", "close"}


def test_everything_public_has_types_and_words():
    """Every public name has what an editor shows: a docstring, and the type of every parameter and result."""
    bare = []
    for name in cleave.__all__:
        thing = getattr(cleave, name)
        if not callable(thing):
            continue
        if not inspect.getdoc(thing):
            bare.append(f"{name}: no docstring")
        members = [(name, thing)] if inspect.isfunction(thing) else [
            (f"{name}.{member}", value) for member, value in vars(thing).items()
            if inspect.isfunction(value) and not member.startswith("_")]
        for label, function in members:
            signature = inspect.signature(function)
            if signature.return_annotation is inspect.Signature.empty:
                bare.append(f"{label}: no type of the result")
            bare += [f"{label}: no type of {parameter.name}"
                     for parameter in signature.parameters.values()
                     if parameter.annotation is inspect.Parameter.empty and parameter.name != "self"]
            if label != name and not inspect.getdoc(function) and "__" not in label and \
                    function.__name__ not in _OBVIOUS:
                bare.append(f"{label}: no docstring")
    assert not bare
