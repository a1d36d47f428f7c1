# SPDX-License-Identifier: Apache-2.0
"""Tests lines that people port from NumPy and CuPy: each gives the result of NumPy, and an array if NumPy gives one."""
import numpy as np
import pytest

import cleave

MATRIX = np.random.default_rng(0).normal(size=(64, 64))
ROW = np.random.default_rng(1).normal(size=64)
BOX = np.ones((3, 3), np.float32)
FILL = "__kernel void fill(__global float *out, uint n) { if (get_global_id(0) < n) out[get_global_id(0)] = 1; }"


def less(xp, row):
    row = row.copy()
    row -= row * 0.1
    return row


def first_row_set(xp, m):
    m = m.copy()
    m[0] = 1
    return m


def softmax(xp, m):
    e = np.exp(m - m.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def cosines(xp, m):
    m = (m - m.mean(axis=0)) / m.std(axis=0)
    return m @ m.T


# The line, and which of MATRIX and ROW it takes. `xp` is numpy or cleave.
LINES = {
    "product": (lambda xp, m: m @ m, "m"),
    "sum of vectors": (lambda xp, v: v + v, "v"),
    "mean, std and product": (cosines, "m"),
    "matrix times vector": (lambda xp, m, v: m @ v, "mv"),
    "gradient": (lambda xp, m, v: m.T @ v / len(v), "mv"),
    "in place": (less, "v"),
    "inside a circle": (lambda xp, v: ((v ** 2 + v ** 2) <= 1.0).sum(), "v"),
    "masks": (lambda xp, v: (v > 0) & (v < 1), "v"),
    "boolean index": (lambda xp, v: v[v > 0], "v"),
    "set a row": (first_row_set, "m"),
    "softmax": (softmax, "m"),
    "stack of products": (lambda xp, m: xp.ones((4, 8, 8)) @ xp.ones((4, 8, 8)), "m"),
    "np.concatenate": (lambda xp, m: np.concatenate([m, m]), "m"),
    "np.exp": (lambda xp, m: np.exp(m), "m"),
    "row": (lambda xp, m: m[0], "m"),
    "fft2": (lambda xp, m: xp.fft.fft2(m), "m"),
    "solve": (lambda xp, m, v: xp.linalg.solve(m, v), "mv"),
    "take": (lambda xp, m: xp.take(m, [0, 1], axis=0), "m"),
    "argsort": (lambda xp, v: xp.argsort(v), "v"),
    "zeros": (lambda xp, v: xp.zeros(3), "v"),
}


@pytest.mark.parametrize("name", LINES)
def test_line_gives_what_numpy_gives(context, name):
    line, takes = LINES[name]
    given = {"m": MATRIX, "v": ROW}
    want = line(np, *(given[k] for k in takes))
    got = line(cleave, *(cleave.array(given[k], context=context) for k in takes))
    assert isinstance(got, cleave.Array) and got.shape == np.shape(want)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-9, atol=1e-9)


def test_types_are_kept():
    assert (cleave.array(np.array([1, 2, 3])) + cleave.array(np.array([4, 5, 6]))).dtype == np.int64
    assert cleave.array(np.ones(3, "f8")).dtype == np.float64


def test_eigenvalues():
    small = MATRIX[:20, :20]
    want = np.sort_complex(np.linalg.eigvals(small))
    for got in np.linalg.eigvals(cleave.array(small)), cleave.eigvals(small):
        np.testing.assert_allclose(np.sort_complex(np.asarray(got)), want, rtol=1e-3)
    np.testing.assert_allclose(np.asarray(cleave.eigvalsh(np.eye(200))), np.ones(200), rtol=1e-5)


def test_svd():
    u, s, vh = cleave.linalg.svd(cleave.array(MATRIX))
    np.testing.assert_allclose(((u * s) @ vh).numpy(), MATRIX, atol=1e-9)


def test_convolution(context):
    image = cleave.array(MATRIX, context=context)
    got = np.asarray(cleave.convolve_2d(image, BOX, context=context))
    np.testing.assert_allclose(got[1, 1], MATRIX[:3, :3].sum(), rtol=1e-5)


def test_random_numbers():
    made = cleave.random.random(100)
    assert made.shape == (100,) and 0 <= made.numpy().min() and made.numpy().max() < 1


def test_devices_and_memory(device_context):
    assert cleave.array(MATRIX).get().tolist() == cleave.asnumpy(cleave.array(MATRIX)).tolist() == MATRIX.tolist()
    cleave.devices()[0].trim()
    assert cleave.devices()[0].memory()
    with cleave.Context(devices="0"):
        assert cleave.Kernel(FILL, "fill")(cleave.Out(np.float32), cleave.COUNT, items=4).tolist() == [1, 1, 1, 1]
