# SPDX-License-Identifier: Apache-2.0
"""Tests lines that users of NumPy write (numpy_lines.txt): each gives the same numbers, types and shapes with Arrays as
with NumPy's arrays, or both raise an exception."""
import os
import warnings

import numpy as np
import pytest

import cleave

with open(os.path.join(os.path.dirname(__file__), "numpy_lines.txt"), encoding="utf-8") as given:
    LINES = given.read().splitlines()
GRID = np.arange(12, dtype=np.float32).reshape(3, 4)
#: Lines about views of other types, which run on every side.
ON_ALL_SIDES = [line for line in LINES if any(word in line for word in (".real", ".imag", ".view("))]


def made(wrap):
    """Returns the variables of the lines: matrices of several types, a row of complex numbers, and a square matrix."""
    rng = np.random.default_rng(0)
    f = rng.standard_normal((5, 4)).astype("f4")
    d = rng.standard_normal((5, 4))
    d[0, 0] = 0
    t = rng.standard_normal((3, 4, 5)).astype("f4")
    i = rng.integers(-9, 9, (5, 4))
    i[0, 0] = 3
    i8, u8 = rng.integers(-100, 100, (5, 4)).astype("i1"), rng.integers(0, 250, (5, 8)).astype("u1")
    b = np.array([True, False, True, True])
    c = (rng.standard_normal(4) + 1j * rng.standard_normal(4)).astype("c8")
    n = f.copy()
    n[1, 1] = np.nan
    s = rng.standard_normal((4, 4)).astype("f4") + 4 * np.eye(4, dtype="f4")
    arrays = dict(f=f, d=d, t=t, i=i, i8=i8, u8=u8, b=b, c=c, n=n, s=s)
    return {"np": np, **{name: wrap(x) for name, x in arrays.items()}}


def result(line, wrap):
    """Returns what a line assigns to r, or the exception that it raises."""
    names = made(wrap)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(line, names)  # pylint: disable=exec-used
        except Exception as error:  # pylint: disable=broad-exception-caught
            return error
    return names["r"]


def expect_same(line, got, want):
    if isinstance(want, Exception):
        assert isinstance(got, Exception), f"{line}: NumPy raises {want!r}"
        return
    assert not isinstance(got, Exception), f"{line}: {got!r}"
    if isinstance(want, (tuple, list)):
        assert isinstance(got, (tuple, list)) and len(got) == len(want), line
        for one, other in zip(got, want):
            expect_same(line, one, other)
        return
    got, want = (one.numpy() if isinstance(one, cleave.Array) else one for one in (got, want))
    if not isinstance(want, (np.ndarray, np.generic)) and not isinstance(got, np.ndarray):
        assert got == want or want == pytest.approx(got, rel=1e-4), line
        return
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape), line
    if want.dtype.kind in "fc":
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=line)
    else:
        assert np.array_equal(got, want), line


@pytest.mark.parametrize("line", LINES)
def test_a_line_gives_what_it_gives_numpy(line, reference):
    expect_same(line, result(line, lambda x: cleave.array(x, context=reference)), result(line, np.array))


@pytest.mark.parametrize("line", ON_ALL_SIDES)
def test_views_of_other_types_on_every_side(line, side):
    expect_same(line, result(line, lambda x: cleave.array(x, context=side)), result(line, np.array))


def test_parts_of_complex_numbers_are_views(side):
    given = (np.arange(12) + 1j * np.arange(12)[::-1]).astype(np.complex64).reshape(3, 4)
    a = cleave.array(given, context=side)
    a.real[1:] = 0
    a.imag[:, ::2] += a.real[:, 1::2]
    want = given.copy()
    want.real[1:] = 0
    want.imag[:, ::2] += want.real[:, 1::2]
    assert np.array_equal(a, want)
    a.real, a.imag = a.imag, a.real.copy()
    assert np.array_equal(a, want.imag + 1j * want.real)
    whole = cleave.array(GRID, context=side)
    whole.real[0] = 7
    assert whole.numpy()[0].tolist() == [7] * 4 and not whole.imag.any()
    with pytest.raises(cleave.Error, match="share memory"):
        whole.imag[...] = 1
    with pytest.raises(TypeError, match="no imaginary parts"):
        whole.imag = 1


def test_a_view_reads_the_same_bytes(side):
    a = cleave.array(GRID, context=side)
    bits = a.view(np.int32)
    assert np.array_equal(bits, GRID.view(np.int32)) and bits.shape == a.shape
    bits[1] = 0
    assert not a.numpy()[1].any()
    assert np.array_equal(a[::2].view("u1"), a.numpy()[::2].view("u1"))
    assert np.array_equal(a.view("u1")[:, 8:].view("f4"), a.numpy()[:, 2:])
    for wrong in (lambda: a.T.view("f8"), lambda: a[:, :3].view("f8"), lambda: a[:, 1:3].view("f8"),
                  lambda: a.view("c8")[:, :1].view("c16"), lambda: a[0, 0].view("u1")):
        with pytest.raises(cleave.ShapeError, match="view: "):
            wrong()
