# SPDX-License-Identifier: Apache-2.0
"""Tests memory that Arrays share with NumPy and PyTorch, and counts the bytes that operations move: none, where the
device shares the host's memory."""
import gc
import weakref

import numpy as np
import pytest

import cleave
from cleave import array_api as xp

GRID = np.random.default_rng(5).random((24, 16), np.float32)


@pytest.fixture(scope="module")
def sharing(cores):
    """A context whose device is the host's processor."""
    return cores


def test_numpy_writes_into_an_arrays_memory(sharing):
    a = cleave.array(GRID, context=sharing)
    seen = np.from_dlpack(a) if np.lib.NumpyVersion(np.__version__) < "2.1.0" else np.from_dlpack(a, copy=False)
    also = np.asarray(a.T[::2, 1:]) if np.lib.NumpyVersion(np.__version__) < "2.0.0" else \
        np.asarray(a.T[::2, 1:], copy=False)
    with cleave.offload("device"):
        a += 1
    assert np.array_equal(seen, GRID + 1) and np.array_equal(also, (GRID + 1).T[::2, 1:])
    assert seen.ctypes.data == np.from_dlpack(a).ctypes.data
    if seen.flags.writeable:
        seen[2, 3] = 7
        with cleave.offload("device"):
            assert (a + 0).numpy()[2, 3] == 7
    del a
    gc.collect()
    assert seen[0, 0] == GRID[0, 0] + 1  # the memory lives as long as NumPy uses it


def test_arrays_write_into_numpys_memory(sharing):
    mine = GRID.copy()
    for given in (mine, mine.T, mine[::2, 3:], mine[5]):
        a = cleave.from_dlpack(given, device=sharing, copy=False)
        assert a.shape == given.shape and np.array_equal(a.numpy(), given)
        for side in ("host", "device"):
            with cleave.offload(side):
                before = given.copy()
                a *= 2
                assert np.array_equal(given, before * 2)
    assert np.shares_memory(np.from_dlpack(xp.asarray(mine, device=sharing, copy=False)), mine)
    lent = GRID.copy()
    there = weakref.ref(lent)
    keeps = xp.asarray(lent, device=sharing, copy=False)[3:]
    del lent
    gc.collect()
    assert there() is not None and np.array_equal((keeps + 0).numpy(), GRID[3:])
    del keeps
    gc.collect()
    assert there() is None


def test_what_cannot_be_shared_is_copied_or_refused(sharing):
    fixed = GRID.copy()
    fixed.flags.writeable = False
    for given in (GRID[::-1], fixed, np.arange(10, dtype=">i4")):
        with pytest.raises((BufferError, ValueError)):
            xp.asarray(given, device=sharing, copy=False)
    with pytest.raises(BufferError, match="copied"):
        cleave.from_dlpack(GRID[::-1], device=sharing, copy=False)
    a = cleave.from_dlpack(GRID[::-1], device=sharing)
    a += 1
    assert np.array_equal(a.numpy(), GRID[::-1] + 1)
    copied = cleave.from_dlpack(GRID, device=sharing, copy=True)
    copied += 1
    assert np.array_equal(copied.numpy(), GRID + 1)


def test_memory_is_shared_with_pytorch(sharing):
    torch = pytest.importorskip("torch", reason="no Python module torch")
    a = cleave.array(GRID, context=sharing)
    tensor = torch.from_dlpack(a)
    tensor[1] = 5
    assert (a[1] + 0).tolist() == [5] * 16
    back = cleave.from_dlpack(tensor, device=sharing, copy=False)
    with cleave.offload("device"):
        back += 1
    assert float(tensor[1, 0]) == 6 and a.numpy()[1, 0] == 6
    del a, back
    gc.collect()
    assert float(tensor.sum()) == pytest.approx(float(GRID.sum()) + GRID.size - GRID[1].sum() + 80, rel=1e-5)


OPERATIONS = {
    "operators": lambda a, w: (a + a * 2 - 1) / a, "comparison": lambda a, w: (a > 0.5) & (a < 0.9),
    "functions": lambda a, w: np.exp(np.sin(a)), "where": lambda a, w: np.where(a > 0.5, a, 0),
    "reductions": lambda a, w: a.sum(axis=0) + a.mean(axis=0) + a.std(axis=0) + a.max(axis=0),
    "extremes": lambda a, w: (a.argmin(axis=1), a.any(), a.prod(axis=0)), "view": lambda a, w: a[1:, ::2].T[None],
    "mask": lambda a, w: a[a > 0.5], "indices": lambda a, w: a[[3, 1, 2]], "assignment": lambda a, w: put(a),
    "matrix product": lambda a, w: a @ a.T, "with a vector": lambda a, w: a @ a[0],
    "in float64": lambda a, w: w @ w.T, "concat": lambda a, w: np.concatenate([a, a]),
    "stack": lambda a, w: np.stack([a, a]), "sort": lambda a, w: np.sort(a, axis=0),
    "argsort": lambda a, w: np.argsort(a), "running sums": lambda a, w: a.cumsum(1), "unique": lambda a, w:
    cleave.unique_values(a), "take": lambda a, w: cleave.take(a, cleave.array([1, 0], context=a.context), axis=1),
    "types": lambda a, w: a.astype("float64").astype("int32"), "fft": lambda a, w: cleave.fft.ifft2(cleave.fft.fft2(a)),
    "rfft": lambda a, w: cleave.fft.irfft(cleave.fft.rfft(a)), "solve": lambda a, w: cleave.linalg.solve(
        w[:16], w[0]), "svd": lambda a, w: cleave.linalg.svd(a), "eigh": lambda a, w: cleave.linalg.eigh(w.T @ w),
    "cholesky": lambda a, w: cleave.linalg.cholesky(w.T @ w), "inv": lambda a, w: cleave.linalg.inv(w[:16]),
    "qr": lambda a, w: cleave.linalg.qr(a), "random": lambda a, w: cleave.random.default_rng(
        3, context=a.context).normal(size=a.shape) + a, "expression": lambda a, w: cleave.compute("sqrt(x) + 1", x=a),
    "normalize": lambda a, w: cleave.normalize(a).z, "own memory": lambda a, w: cleave.from_dlpack(
        np.ones((24, 16), np.float32), device=a.context) + a, "numpy": lambda a, w: a.numpy(),
}


def put(a):
    a = a.copy()
    a[a > 0.5] = 0
    a[2] = a[3]
    a[:, [1, 2]] += 1
    return a


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_operation_moves_bytes(sharing, name):
    a = cleave.array(GRID, context=sharing)
    w = cleave.array(GRID.astype(np.float64) + np.eye(24, 16), context=sharing)
    OPERATIONS[name](a, w)  # what a context does once
    before = cleave.array_stats(sharing)
    made = OPERATIONS[name](a, w)
    after = cleave.array_stats(sharing)
    assert made is not None
    assert after.bytes_to_device == before.bytes_to_device and after.bytes_from_device == before.bytes_from_device
    assert after.uploads == before.uploads and after.downloads == before.downloads
