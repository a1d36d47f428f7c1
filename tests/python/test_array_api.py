# SPDX-License-Identifier: Apache-2.0
"""Compares arrays of every type with NumPy's: precision, views, indices, NumPy's protocols, the array API standard."""
import itertools
import pickle

import numpy as np
import pytest

import cleave
from conftest import without_lapack

xp = cleave.array_api
CUBE = np.arange(3 * 4 * 5).reshape(3, 4, 5) * 7 % 23


def same(got, want):
    assert isinstance(got, cleave.Array)
    assert got.dtype == want.dtype and got.shape == want.shape, (got.dtype, got.shape, want.dtype, want.shape)
    if want.dtype.kind in "fc":
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-12 if want.dtype.itemsize > 8 else 1e-6)
    else:
        np.testing.assert_array_equal(got.numpy(), want)


def test_no_digit_is_lost(context):
    near = cleave.array(np.array([1 + 1e-9]), context=context)
    assert (near - 1.0).item() == np.float64(1 + 1e-9) - 1
    assert (cleave.array(np.array([16777217]), context=context) + 0).item() == 16777217
    near[...] = 0.1  # not the neighbouring float32 number
    assert near.item() == 0.1 and xp.full((), 1e-300, dtype=np.float64, device=context).item() == 1e-300
    whole = xp.zeros(3, dtype=np.int64, device=context)
    whole[1:] = 2 ** 62 + 1
    assert whole.tolist() == [0, 2 ** 62 + 1, 2 ** 62 + 1]
    for dtype in ("bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"):
        values = np.arange(-3, 3).astype(dtype)
        there = cleave.array(values, context=context)
        same(there, values)
        same(pickle.loads(pickle.dumps(there)), values)
    for values, dtype in (([1, 2], "int64"), ([1.5], "float32"), ([True], "bool"), ([1j], "complex64")):
        assert cleave.array(values, context=context).dtype == dtype
    with pytest.raises(cleave.ArgumentError, match="must be one of bool, complex128"):
        cleave.array([1], "datetime64[s]", context=context)


def test_types_are_promoted_as_numpys(side):
    numbers = np.arange(1, 7)
    for a, b in (("i1", "u1"), ("i4", "i8"), ("f4", "f8"), ("u2", "f4"), ("f4", "c8"), ("bool", "i2"), ("f8", "c8")):
        x, y = numbers.astype(a), numbers[::-1].astype(b)
        for operation in (np.add, np.multiply, np.equal):
            same(operation(cleave.array(x, context=side), y), operation(x, y))
    small = cleave.array(numbers.astype(np.int8), context=side)
    assert (small + 1).dtype == np.int8 and (small * 1.5).dtype == np.float64 and (2 ** small).dtype == np.int8
    assert (cleave.array(numbers.astype(np.float32), context=side) * 1.5).dtype == np.float32
    with pytest.raises(OverflowError, match="300 cannot be stored as int8"):
        small + 300
    with pytest.raises(TypeError, match="does not fit into int8"):
        small += 0.5
    with pytest.raises(TypeError):
        small + "1"


INDICES = [0, -1, (1, 2), (slice(None), 1), (Ellipsis, -2), (slice(None, None, -1), slice(1, 3), slice(4, None, -2)),
           None, (slice(None), None, 2), (2, 3, 4), (slice(2, 2),), CUBE > 9, [2, 0], (slice(None), [0, -1, 0]),
           ([0, 1], [2, 3]), ([0, 1], slice(None), [4, 0]), (0, [1, 1]),
           (slice(None), np.array([True, False, True, True])),
           (CUBE[:, :, 0] > 5), (np.array([[0, 1], [2, 2]]),), (Ellipsis, np.array([3, 0])),
           (np.arange(2)[:, None], [1, 3, 0])]


@pytest.mark.parametrize("key", INDICES, ids=str)
def test_indices_are_numpys(side, key):
    there = cleave.array(CUBE, context=side)
    same(there[key], CUBE[key])
    for value in (99, np.arange(CUBE[key].size).reshape(CUBE[key].shape)):
        mine, copy = CUBE.copy(), there.copy()
        mine[key], copy[key] = value, value
        same(copy, mine)
    turned, mine = there.T, CUBE.T.copy()
    if isinstance(key, (int, slice)) or key is None:
        turned[key] = 5
        mine[key] = 5
        same(turned, mine)
        same(there, mine.T)


def test_places_on_the_device_are_taken_there(context):
    there = cleave.array(CUBE, context=context)
    places = cleave.array(np.array([2, 0, -1]), context=context)
    same(there[places], CUBE[[2, 0, -1]])
    same(there[there > 9], CUBE[CUBE > 9])
    there[there > 9] = -1
    same(there, np.where(CUBE > 9, -1, CUBE))
    for wrong in (3, (0, 0, 0, 0), [4], np.zeros((2, 2), bool), 1.5, "a", ([0, 1], [0, 1, 2])):
        with pytest.raises(IndexError):
            there[wrong]
    with pytest.raises(ValueError):
        there[0] = np.arange(3)


def test_views_share_their_elements(context):
    base = cleave.array(np.zeros((4, 6)), context=context)
    part = base[1:, ::2]
    part += 1
    part.T[0] = 7
    want = np.zeros((4, 6))
    want[1:, ::2] += 1
    want[1:, 0] = 7
    same(base, want)
    base[:, 1:] = base[:, :-1]  # the result is as if the right side had been copied first
    want[:, 1:] = want[:, :-1].copy()
    same(base, want)
    del base
    same(part, want[1:, ::2])
    assert part.strides == (48, 16) and part.copy().strides == (24, 8)


@pytest.mark.parametrize("dtype", ["bool", "uint16", "float16", "float32", "float64", "complex64"])
def test_reductions_are_numpys(side, dtype):
    x = (CUBE % 5 - 1).astype(dtype) if dtype != "uint16" else (CUBE % 5).astype(dtype)
    for view, (mine, there) in enumerate(((x, cleave.array(x, context=side)),
                                          (x.T[1:], cleave.array(x, context=side).T[1:]))):
        for name, axis in itertools.product(("sum", "prod", "min", "max", "mean", "std", "any", "all", "argmax"),
                                            ((0, 2), -1) if view else (None, 0)):
            if (name == "argmax" and isinstance(axis, tuple)) or (
                    dtype == "complex64" and name in ("min", "max", "argmax")) or (dtype == "bool" and name == "std"):
                continue
            want = getattr(mine, name)(axis=axis)
            got = getattr(there, name)(axis=axis)
            assert got.dtype == np.asarray(want).dtype, name
            np.testing.assert_allclose(got.numpy(), want, rtol=2e-3 if dtype == "float16" else 1e-5, atol=1e-6,
                                       err_msg=name)
        if dtype not in ("bool", "float16"):
            same(np.cumsum(there, axis=1), np.cumsum(mine, axis=1))


def test_sorted_orders_are_numpys(side):
    x = np.array([[3, 1, np.nan, -2, 1], [0, -0.0, 5, np.inf, -np.inf]])
    there = cleave.array(x, context=side)
    same(np.sort(there), np.sort(x))
    same(np.argsort(there), np.argsort(x, kind="stable"))
    same(xp.sort(there, axis=0, descending=True)[:, 0], np.array([3.0, 0.0]))
    row = np.array([5, 1, 5, 2, 2, 2, 9], np.uint8)
    found = xp.unique_all(cleave.array(row, context=side))
    for got, want in zip(found, np.unique(row, return_index=True, return_inverse=True, return_counts=True)):
        assert np.array_equal(got, want)
    same(np.searchsorted(cleave.array(np.sort(row), context=side), row), np.searchsorted(np.sort(row), row))
    same(np.take(there, [1, 1, 0], axis=0), x[[1, 1, 0]])
    same(np.take_along_axis(there, np.argsort(there), axis=-1), np.sort(x))


def test_indices_along_an_axis_are_checked(side):
    x = np.arange(6.0).reshape(2, 3)
    a = cleave.array(x, context=side)
    places = np.array([[-3, 2, 2], [0, -1, 1]], np.int8)
    same(xp.take_along_axis(a, cleave.array(places, context=side)), np.take_along_axis(x, places, -1))
    for wrong, why in (([[5], [0]], "from 0 to 5 are out of range for an axis of 3"), ([[-4], [2]], "from -4 to 2"),
                       (np.array([[2**64 - 1]], np.uint64), f"to {2**64 - 1} are"), ([[0.9]], "are of float32")):
        with pytest.raises(IndexError, match=why):
            xp.take_along_axis(a, cleave.array(wrong, context=side))


def test_shifts_and_parts_are_numpys(side):
    x = np.arange(12).reshape(3, 4)
    a = cleave.array(x, context=side)
    for shift, axis in (((1, 2), None), ((1, 2), 0), ([5], (0, 1)), (-3, (0, 1)), ((1, -2), (1, 0)), (7, 1)):
        same(xp.roll(a, shift, axis=axis), np.roll(x, shift, axis))
    with pytest.raises(cleave.ShapeError, match="got 3 shifts for 2 axes; give one for each axis, or one for all"):
        xp.roll(a, (1, 2, 3), axis=(0, 1))
    for parts in (-2, 0):
        for function in (np.split, np.array_split):
            with pytest.raises(ValueError, match=f"got {parts} parts, but a whole number from 1 on"):
                function(a, parts)
    with pytest.raises(ValueError, match="n is -1, but it must be 0 or more"):
        np.diff(a, n=-1)


def test_indices_may_be_of_narrow_types(side):
    x = np.arange(600).reshape(2, 300)
    a = cleave.array(x, context=side)
    rows, columns = np.array([1, -1, 0], np.int8), np.array([255, 0, 7], np.uint8)
    same(a[rows, columns], x[rows, columns])
    same(a[:, columns], x[:, columns])
    a[rows, columns] = -5
    x[rows, columns] = -5
    same(a, x)


def test_masked_writes_keep_the_other_elements(side):
    x = np.array([2**53 + 1, -1, -2])
    a = cleave.array(x, context=side)
    a[a < 0] = 0.0  # as float64, the first element would be 2^53
    same(a, np.array([2**53 + 1, 0, 0]))
    for wrong, error in ((1j, TypeError), (np.nan, ValueError)):
        with pytest.raises(error):
            a[a == 0] = wrong
    same(a, np.array([2**53 + 1, 0, 0]))


def test_functions_of_floats_compute_integers_as_floats(side):
    whole, real = np.array([100, -3, 7], np.int8), np.array([2.5, 4, 0.5], np.float32)
    a, b = (cleave.array(one, context=side) for one in (whole, real))
    same(np.float_power(a, 2), np.float_power(whole, 2))
    same(np.float_power(a, a), np.float_power(whole, whole))
    same(np.float_power(b, b), np.float_power(real, real))
    same(np.float_power(real.astype(complex), b), np.float_power(real.astype(complex), real))
    assert np.fabs(a).dtype == np.fabs(whole).dtype and np.fabs(a).tolist() == [100, 3, 7]
    same(np.fabs(-b), real)
    with pytest.raises(TypeError):
        np.fabs(cleave.array(real.astype(complex), context=side))


def test_traces_are_those_of_the_first_axes(side):
    x = np.arange(12.0).reshape(2, 2, 3)
    a = cleave.array(x, context=side)
    for offset in (0, 1, -1):
        same(np.trace(a, offset), np.trace(x, offset))
    same(np.trace(a[0]), np.trace(x[0]))


def test_dot_is_numpys(side):
    x, y = np.arange(24.0).reshape(2, 3, 4), np.arange(40.0).reshape(2, 4, 5)
    a, b = (cleave.array(one, context=side) for one in (x, y))
    for k, one in ((a, x), (a[0], x[0]), (a[0, 0], x[0, 0])):
        for m, other in ((b, y), (b[0], y[0]), (b[0, :, 0], y[0, :, 0])):
            same(np.dot(k, m), np.dot(one, other))
            same(k.dot(m), one.dot(other))
    same(np.dot(a, 2), x * 2)


def test_limits_of_other_types_are_not_cut(side):
    x, floats = np.array([0, 1, 200], np.uint8), np.array([0.5, 1.5, 300])
    a = cleave.array(x, context=side)
    same(xp.clip(a, max=cleave.array(floats, context=side)), np.minimum(x, floats))
    for limit, dtype in ((300, np.int64), (-5, np.int64), (100, np.int8), (-100, np.int8), (2**64 - 1, np.uint64)):
        there = cleave.array(np.array([limit], dtype), context=side)
        assert xp.clip(a, min=there).tolist() == [min(max(int(one), limit), 255) for one in x]
        assert xp.clip(a, max=there).tolist() == [max(min(int(one), limit), 0) for one in x]


def test_norms_keep_their_axes(side):
    x = np.arange(24.0).reshape(2, 3, 4)
    a = cleave.array(x, context=side)
    for order in ("fro", 2, None):
        same(np.linalg.norm(a, order, (0, 1), keepdims=True), np.linalg.norm(x, order, (0, 1), keepdims=True))
    with pytest.raises(ValueError, match="got 3 axes and ord 2; name the one axis"):
        np.linalg.norm(a, 2)


def test_rounded_integers_stay_what_they_are(side):
    x = np.array([2**53 + 1, -7])
    same(cleave.array(x, context=side).round(2), x)
    same(np.round(cleave.array(x, context=side), 1), x)


def test_random_numbers_have_the_type_that_is_asked_for(context):
    rng = cleave.random.default_rng(3, context=context)
    for function in (rng.random, rng.standard_normal, rng.uniform):
        assert function(size=2, dtype="float64").dtype == np.float64
        with pytest.raises(cleave.ArgumentError, match="dtype is int8, but it must be float32 or float64"):
            function(size=2, dtype=np.int8)
    with pytest.raises(cleave.ArgumentError, match="scale is -1, but it must be 0 or more"):
        rng.normal(0, -1, 2)


def test_numpys_functions_stay_where_arrays_lie(device_context):
    x = np.random.default_rng(3).random((6, 8), np.float32)
    a = cleave.array(x, context=device_context)
    with cleave.offload("device"):
        a + 0  # what a context does only once
        before = cleave.array_stats(device_context)
        made = [np.exp(a), np.concatenate([a, a.T[:6, :6]], axis=1), np.stack([a, a]), np.where(a > 0.5, a, 0),
                a[1:, ::2], np.sum(a, axis=0), a.astype(np.float16), a @ a.T, a.T @ a, (a > 0.5) & (a < 0.9),
                np.clip(a, 0.2, 0.4),
                a.reshape(8, 6), np.transpose(a), np.maximum(a, 0.5), a.std(ddof=1), np.tile(a, (2, 1))]
        after = cleave.array_stats(device_context)
    assert all(isinstance(one, cleave.Array) and one.on_device for one in made)
    assert after.bytes_from_device == before.bytes_from_device and after.bytes_to_device == before.bytes_to_device
    np.testing.assert_allclose(made[0], np.exp(x), rtol=1e-6)
    np.testing.assert_allclose(made[8], x.T @ x, rtol=1e-5)
    same(made[1], np.concatenate([x, x.T[:6, :6]], axis=1))


def test_products_are_numpys(side):
    rng = np.random.default_rng(5)
    for dtype in (np.float32, np.float64, np.int32, np.complex128):
        for first, second in (((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((2, 3, 4), (4, 5)),
                              ((2, 1, 3, 4), (5, 4, 2)), ((3, 0), (0, 2)), ((7, 3, 4), (7, 4, 2))):
            a, b = ((rng.random(shape) * 9).astype(dtype) for shape in (first, second))
            got = cleave.array(a, context=side) @ cleave.array(b, context=side)
            np.testing.assert_allclose(got.numpy(), a @ b, rtol=1e-5)
            assert got.dtype == dtype and got.shape == np.shape(a @ b)
    with pytest.raises(cleave.ShapeError, match="do not fit together"):
        cleave.array(np.ones((2, 3)), context=side) @ np.ones((2, 3))


def test_linear_algebra_and_transforms(context):
    x = np.random.default_rng(7).random((5, 5))
    a = cleave.array(x, context=context)
    for name in ("inv", "det", "eigvalsh", "svdvals", "slogdet", "pinv"):
        want = np.linalg.svd(x, compute_uv=False) if name == "svdvals" else getattr(np.linalg, name)(x)
        np.testing.assert_allclose(np.asarray(getattr(cleave.linalg, name)(a)[-1] if name == "slogdet" else
                                              getattr(cleave.linalg, name)(a)),
                                   want[-1] if name == "slogdet" else want, rtol=1e-10)
    u, s, vh = np.linalg.svd(a)
    np.testing.assert_allclose((u * s) @ vh, x, rtol=1e-10)
    q, r = cleave.linalg.qr(a)
    np.testing.assert_allclose(q @ r, x, rtol=1e-10)
    np.testing.assert_allclose(a @ cleave.linalg.solve(a, x[0]), x[0], rtol=1e-9)
    for function in (np.fft.fft, np.fft.rfft, np.fft.ifft2, np.fft.fftshift):
        same(function(a), function(x))
    assert cleave.fft.fft2(a.astype(np.float32)).dtype == np.complex64
    try:  # with 200 rows, more than devices accept
        values = cleave.eigvalsh(np.kron(np.eye(40), x @ x.T), context=context)
    except cleave.UnsupportedError as error:
        without_lapack(error)
    np.testing.assert_allclose(values, np.sort(np.tile(np.linalg.eigvalsh(x @ x.T), 40)), atol=1e-5)


def test_random_numbers_have_one_seed(context, reference):
    for name, given in (("random", (1000,)), ("normal", (0, 1, 1000)), ("integers", (0, 9, 1000)),
                        ("permutation", (50,))):
        made = [getattr(cleave.random.default_rng(5, context=one), name)(*given).numpy()
                for one in (context, reference)]
        assert np.array_equal(*made) and made[0].std() > 0
    assert cleave.random.random((2, 3)).shape == (2, 3)


def test_random_bits_are_the_same_on_every_device():
    made = {}
    for place in [*range(len(cleave.probe()["devices"])), None]:
        how = {"mode": "reference"} if place is None else {"devices": str(place)}
        with cleave.Context(**how) as context:
            numbers = cleave.random.default_rng(11, context=context)
            parts = [numbers.random(300), numbers.normal(size=99), numbers.integers(0, 1 << 40, size=77),
                     numbers.permutation(100), numbers.choice(50, 20), numbers.uniform(2, 3, size=(3, 5), dtype="f8")]
            made[place] = b"".join(part.numpy().tobytes() for part in parts)
    assert len(set(made.values())) == 1, f"{len(made)} sides"


def test_creation(context):
    same(xp.arange(5, device=context), np.arange(5))
    same(xp.arange(1.0, 2.0, 0.25, device=context), np.arange(1, 2, 0.25, dtype=np.float32))
    same(xp.linspace(0, 1, 7, dtype=np.float64, device=context), np.linspace(0, 1, 7))
    same(xp.eye(3, 4, k=1, device=context), np.eye(3, 4, 1, dtype=np.float32))
    same(xp.full((2, 2), 7, device=context), np.full((2, 2), 7))
    for got, want in zip(xp.meshgrid(xp.arange(3, device=context), xp.arange(2, device=context)),
                         np.meshgrid(np.arange(3), np.arange(2))):
        same(got, want)
    same(xp.tril(cleave.array(CUBE, context=context), k=1), np.tril(CUBE, 1))
    same(cleave.zeros((0, 3), device=context), np.zeros((0, 3), np.float32))
    assert "3.5" in repr(cleave.array([3.5], context=context)) and cleave.array(CUBE).get().shape == CUBE.shape
    assert cleave.zeros is xp.zeros and cleave.asnumpy(xp.ones(2)).tolist() == [1, 1]


def test_flags_base_and_flat_are_numpys(context):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    a = cleave.array(x, context=context)
    for mine, theirs in ((a, x.copy()), (a.T, x.T), (a[::2, 1:], x[::2, 1:]), (a[1], x[1]), (a[:, :1], x[:, :1]),
                         (a[:0], x[:0])):
        for name in ("c_contiguous", "f_contiguous", "owndata", "writeable", "aligned"):
            assert getattr(mine.flags, name) == getattr(theirs.flags, name) == mine.flags[name.upper()], name
        assert len(mine.flat) == len(theirs.flat) and list(mine.flat) == list(theirs.flat)
    assert a.base is None and a[1:].base is a and a[1:].T[0].base is a and a.view("int32").base is a
    assert "C_CONTIGUOUS : True" in repr(a.flags)
    with pytest.raises(KeyError, match="WRITABLE"):
        a.flags["WRITABLE"]
    y = x.copy()
    for mine, theirs in ((a, y), (a.T, y.T)):
        mine.flat[3], theirs.flat[3] = 50, 50
        mine.flat[5:7], theirs.flat[5:7] = -1, -1
        assert np.array_equal(a.numpy(), y) and float(mine.flat[3]) == theirs.flat[3]
        assert np.array_equal(np.asarray(mine.flat), np.asarray(theirs.flat))
    a.T.flat = y.T.flat = [1, 2, 3, 4, 5]
    assert np.array_equal(a.numpy(), y)


@pytest.mark.parametrize("name", ["all", "any", "argmax", "argsort", "count_nonzero", "cumulative_sum", "diff", "flip",
                                  "max", "mean", "min", "ones_like", "prod", "sort", "std", "sum", "unique_values",
                                  "var"])
def test_arrays_of_numpy_are_taken(name):
    row = np.array([3.0, 1.0, 2.0], np.float32)
    want = getattr(xp, name)(cleave.asarray(row))
    for given in row, row[::-1][::-1], row.astype(">f4"), [np.float32(one) for one in row]:
        got = getattr(cleave, name)(given)
        assert isinstance(got, cleave.Array) and got.dtype == want.dtype
        np.testing.assert_array_equal(got.numpy(), want.numpy())
    np.testing.assert_array_equal(cleave.take(row, cleave.asarray([2, 0]), axis=0).numpy(), [2.0, 3.0])
    np.testing.assert_array_equal(cleave.clip(row, 1.5, 2.5).numpy(), [2.5, 1.5, 2.0])


def test_reductions_begin_with_a_number(context):
    for x in (np.array([[3, -4], [5, 2]], np.int16), np.array([[3, -4], [np.nan, 2]], np.float32),
              np.zeros((0, 2), np.float32)):
        a = cleave.array(x, context=context)
        for what, first in (("min", -9), ("min", 1), ("max", 9), ("max", 0), ("sum", 7), ("prod", 2)):
            for named in ({}, {"axis": 0}, {"axis": 1}, {"axis": (0, 1), "keepdims": True}):
                if not x.size and what in ("min", "max") and named.get("axis") == 1:
                    continue
                got = getattr(a, what)(initial=first, **named)
                want = getattr(x, what)(initial=first, **named)
                assert got.dtype == want.dtype and np.array_equal(got.numpy(), want, equal_nan=True), (what, named)
    with pytest.raises(ValueError):
        cleave.array(np.zeros(0, np.float32), context=context).min()


def test_where_with_two_numbers(context):
    mask = np.array([True, False])
    for first, second, kind in ((1.0, 2.0, "float32"), (1, 2.5, "float32"), (1, 2, "int64"), (True, False, "bool"),
                                (1j, 2, "complex64")):
        for condition in (cleave.array(mask, context=context), mask):
            made = cleave.where(condition, first, second)
            assert made.dtype == kind and np.array_equal(made.numpy(), np.where(mask, first, second))
