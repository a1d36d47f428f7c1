# SPDX-License-Identifier: Apache-2.0
"""Tests several operations as one kernel: they give the numbers and types of separate operations, on both sides, and
clear errors."""
import pickle

import numpy as np
import pytest

import cleave

X = np.random.default_rng(1).normal(size=(40, 35)).astype(np.float32)
Y = np.random.default_rng(2).normal(size=35).astype(np.float32)
N = np.arange(-60, 60, dtype=np.int8).reshape(4, 30)


def waves(x, y):
    d = x - y
    return np.where(d > 0, np.exp(-d ** 2) * 2.5, abs(d).clip(0.1, 0.5)), d


def whole(n):
    m = n * 3
    m += 7
    return (m // 2 ^ n & 15) % 11, n / 4, n > -m, m.astype(np.float32) ** 3


@pytest.fixture(params=["host", "device"])
def where(request, context):
    """Yields calls on each side; on the device only if there is one."""
    if request.param == "device" and not context.devices:
        pytest.skip("no device works")
    with cleave.offload(request.param):
        yield context


def test_a_fused_function_gives_what_its_operations_give(where):
    x, y, n = (cleave.array(one, context=where) for one in (X, Y, N))
    for function, given in ((waves, (x, y)), (waves, (x.T[3:30:2], y[:1])), (whole, (n,)), (whole, (n[::-2, 5:],))):
        fused, alone = cleave.fuse(function)(*given), function(*given)
        for got, wanted in zip(fused, alone):
            assert isinstance(got, cleave.Array) and got.dtype == wanted.dtype and got.shape == wanted.shape
            np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=2e-6)


def test_numbers_are_arguments_too(where):
    x = cleave.array(X, context=where)

    @cleave.fuse
    def scaled(x, k):
        """Scaled."""
        return x * k if k > 1 else x / k + 1 + 2.5 + 3.25 + 4.125 + 5.0625

    assert scaled.__doc__ == "Scaled." and scaled.__name__ == "scaled"
    for k in (2, 0.5):
        wanted = X * np.float32(k) if k > 1 else X / np.float32(k) + 15.9375
        np.testing.assert_allclose(scaled(x, k).numpy(), wanted, rtol=1e-6)


def test_zeros_of_both_signs_are_two_numbers(where):
    x = cleave.array(np.ones(3, np.float32), context=where)
    divided = cleave.fuse(lambda x, k: x / k)
    for k in (0.0, -0.0, 0.0):
        assert divided(x, k).tolist() == [np.copysign(np.inf, k)] * 3


def test_what_needs_elements_is_refused(context):
    x = cleave.array(X, context=context)
    for function in (lambda x: 1 if x > 0 else 2, lambda x: x.sum(), lambda x: x[0], np.sum, np.sort, lambda x: x @ x,
                     list, float):
        with pytest.raises(TypeError, match="needs the elements"):
            cleave.fuse(function)(x)
    with pytest.raises(TypeError, match="not among its arguments"):
        cleave.fuse(lambda a: a + x)(x)
    with pytest.raises(TypeError, match="returned None"):
        cleave.fuse(lambda a: None)(x)
    with pytest.raises(cleave.ShapeError):
        cleave.fuse(lambda a, b: a + b)(x, x[:3])


def test_an_elementwise_kernel_is_cupys(where):
    x, y = (cleave.array(one, context=where) for one in (X, Y))
    squared = cleave.ElementwiseKernel("T x, T y", "T z", "T d = x - y;\nz = d * d;", "squared")
    for kernel in (squared, pickle.loads(pickle.dumps(squared))):
        got = kernel(x, y)
        assert got.dtype == np.float32
        np.testing.assert_allclose(got.numpy(), (X - Y) ** 2, rtol=1e-6)
    assert squared(x.astype(np.float64), 1.5).dtype == np.float64
    n = cleave.array(N, context=where)
    np.testing.assert_array_equal(squared(n, 3).numpy(), (N - np.int8(3)) ** 2)
    both = cleave.ElementwiseKernel("float x, float32 k", "float up, uint8 sign",
                                    "up = x > 0 ? x * k : 0.0f; sign = x < 0")
    up, sign = both(x, 2)
    np.testing.assert_array_equal(up.numpy(), np.where(X > 0, X * 2, 0))
    np.testing.assert_array_equal(sign.numpy(), X < 0)
    into = cleave.empty(X.shape, context=where)
    assert squared(x, y, into) is into
    np.testing.assert_allclose(into.numpy(), (X - Y) ** 2, rtol=1e-6)
    squared(x, y, x)
    np.testing.assert_allclose(x.numpy(), (X - Y) ** 2, rtol=1e-6)


def test_a_reduction_kernel_is_cupys(where):
    x, y = (cleave.array(one, context=where) for one in (X, Y))
    norm = cleave.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
    for kernel in (norm, pickle.loads(pickle.dumps(norm))):
        np.testing.assert_allclose(kernel(x).numpy(), np.sqrt((X * X).sum()), rtol=1e-6)
    for axis in range(X.ndim):
        got = norm(x, axis=axis, keepdims=True)
        np.testing.assert_allclose(got.numpy(), np.sqrt((X * X).sum(axis, keepdims=True)), rtol=1e-6)
        assert got.dtype == np.float32
    far = cleave.ReductionKernel("T x, T y", "T z", "abs(x - y)", "max(b, a)", "z = a", None, "far")
    np.testing.assert_array_equal(far(x, y).numpy(), np.abs(X - Y).max())
    into = cleave.empty((), context=where)
    assert far(x, y, out=into) is into and float(into) == np.abs(X - Y).max()
    low = cleave.ReductionKernel("float x", "float z", "x + 1", "min(a, b)", "z = a * 2", "", "low")
    np.testing.assert_array_equal(low(x, axis=-1).numpy(), (X + 1).min(-1) * 2)
    some = cleave.ReductionKernel("float x", "uint8 z", "x > 1", "a || b", "z = a", "0", "some")
    np.testing.assert_array_equal(some(x, axis=0).numpy(), (X > 1).any(0))
    product = cleave.ReductionKernel("double x", "double z", "x", "a * b", "z = a", "1", "product")
    np.testing.assert_allclose(product(x.astype("float64")).numpy(), X.astype(np.float64).prod(), rtol=1e-12)
    for written, wanted in (("a + b", np.sum), ("a * b", np.prod), ("min(a, b)", np.min), ("max(a, b)", np.max),
                            ("a && b", np.all), ("a || b", np.any)):
        for order in (written, written.translate(str.maketrans("ab", "ba")).replace("mbx", "max")):
            fold = cleave.ReductionKernel("float x", "float z", "x", order, "z = a", "", "fold")
            np.testing.assert_allclose(fold(x, axis=0).numpy(), wanted(X.astype(np.float64), axis=0), rtol=1e-5,
                                       atol=1e-5, err_msg=order)
    nothing = cleave.array(np.empty((3, 0), np.float32), context=where)
    assert norm(nothing, axis=1).tolist() == [0, 0, 0] and norm(nothing).shape == ()
    with pytest.raises(cleave.ArgumentError, match="no identity"):
        low(nothing)
    with pytest.raises(cleave.UnsupportedError, match="reduce_expr 'a - b'"):
        cleave.ReductionKernel("T x", "T y", "x", "a - b", "y = a", "0")
    with pytest.raises(cleave.ArgumentError, match="one type and one name"):
        cleave.ReductionKernel("T x", "T y, T z", "x", "a + b", "y = a", "0")
    with pytest.raises(cleave.ArgumentError, match="identity 'none'"):
        cleave.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "none")
    with pytest.raises(cleave.ArgumentError, match="got 2 arguments"):
        norm(x, y)
    with pytest.raises(cleave.ShapeError, match="out has the shape"):
        norm(x, out=cleave.empty((7, 7, 7), context=where), axis=0)


def test_errors_say_where_and_what(context):
    x, n = cleave.array(X, context=context), cleave.array(N, context=context)
    kernel = cleave.ElementwiseKernel
    with pytest.raises(cleave.FormatError, match="line 2, column 5: found \"q . 1\", but the name of an input"):
        kernel("float x", "float z", "z = x;\nz = q + 1")
    with pytest.raises(cleave.FormatError, match="for"):
        kernel("float x", "float z", "for (int i = 0; i < 3; i++) z = x")
    with pytest.raises(cleave.UnsupportedError, match="floor_divide"):
        kernel("int x", "int z", "z = x / 2")
    with pytest.raises(cleave.ArgumentError, match="raw"):
        kernel("raw float x", "float z", "z = x[0]")
    with pytest.raises(cleave.ArgumentError, match="a type and a name"):
        kernel("x", "float z", "z = x")
    with pytest.raises(cleave.ArgumentError, match="not among"):
        kernel("float x", "T z", "z = x")
    add = kernel("T x, T y", "T z", "z = x + y", "add")
    with pytest.raises(cleave.ArgumentError, match="add: y is int8, but T is float32"):
        add(x, n)
    with pytest.raises(cleave.ArgumentError, match="got 1 arguments, but 2 inputs"):
        add(x)
    with pytest.raises(cleave.ArgumentError, match="x is int8, but it must be float32"):
        kernel("float x", "float z", "z = x")(n)
    with pytest.raises(OverflowError):
        add(n, 300)


def test_calls_of_every_type_are_timed(device_context):
    with cleave.offload("host"):
        n = cleave.array(np.arange(1 << 16, dtype=np.int16), context=device_context) + 1
        z = n.astype(np.complex64) * 2
    for call in (lambda: n * 3, lambda: n > n, lambda: z * z):
        plan = cleave.explain(call)
        assert plan.measured and plan.host_s > 0 and plan.device_s > 0 and not plan.forced
