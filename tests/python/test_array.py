# SPDX-License-Identifier: Apache-2.0
"""Compares filters, eigenvalues and random counts of the library with those of NumPy."""
import operator

import numpy as np
import pytest

import cleave
from cleave import _device_array

PADS = {"reflect": "symmetric", "nearest": "edge", "mirror": "reflect", "wrap": "wrap",
        "constant": "constant"}


def convolved(image, kernel, edge, constant):
    """Returns the sum of the definition in float64."""
    h, w = kernel.shape
    more = {"constant_values": constant} if edge == "constant" else {}
    wide = np.pad(image.astype(float), ((h, h), (w, w)), mode=PADS[edge], **more)
    out = np.zeros(image.shape)
    for i in range(h):
        for j in range(w):
            y, x = h + h // 2 - i, w + w // 2 - j
            out += kernel[i, j] * wide[y:y + image.shape[0], x:x + image.shape[1]]
    return out


@pytest.mark.parametrize("edge", list(PADS))
def test_convolve_is_the_sum_of_its_definition(reference, edge):
    random = np.random.default_rng(6)
    image, kernel = random.random((23, 31)), random.random((4, 5))
    got = cleave.convolve_2d(image, kernel, edge=edge, constant=2.5, context=reference)
    np.testing.assert_allclose(got, convolved(image, kernel, edge, 2.5), rtol=1e-5)
    part = np.float32(random.random((23, 40)))[:, 4:35]  # rows with padding
    got = cleave.convolve_2d(part, kernel, edge=edge, constant=2.5, context=reference)
    np.testing.assert_allclose(got, convolved(part, kernel, edge, 2.5), rtol=1e-5)


def test_gaussians_and_wrong_input(reference):
    image = np.random.default_rng(7).random((40, 50)).astype(np.float32)
    gaussian = cleave.gaussian_2d(1.2, 3)
    assert gaussian.shape == (7, 7) and gaussian.sum() == pytest.approx(1, abs=1e-6)
    assert gaussian[3, 4] / gaussian[3, 3] == pytest.approx(np.exp(-0.5 / 1.2**2), rel=1e-5)
    report = cleave.Report()
    got = cleave.convolve_2d(image, gaussian, context=reference, report=report)
    np.testing.assert_allclose(got, convolved(image, gaussian, "reflect", 0), rtol=1e-5)
    assert sum(share.units for share in report.shares) > 0
    with pytest.raises(cleave.ArgumentError, match="edge is 'round'"):
        cleave.convolve_2d(image, gaussian, edge="round")
    with pytest.raises(cleave.ShapeError, match="kernel: got .* 2 axes"):
        cleave.convolve_2d(image, gaussian[0])


def test_eigenvalues_are_numpys(reference):
    random = np.random.default_rng(8)
    half = random.standard_normal((9, 6, 6))
    matrices = half + half.transpose(0, 2, 1)
    got = cleave.eigvalsh(matrices, context=reference)
    np.testing.assert_allclose(got, np.linalg.eigvalsh(matrices), atol=2e-5)
    np.testing.assert_allclose(cleave.eigvalsh(np.tril(matrices[3]), context=reference), got[3],
                               atol=1e-6)
    assert cleave.eigvalsh(np.empty((0, 4, 4)), context=reference).shape == (0, 4)
    with pytest.raises(cleave.ShapeError):
        cleave.eigvalsh(np.zeros((2, 3)))


def test_counts_are_exact(context, reference):
    samples = 300_001
    inside = cleave.monte_carlo_pi(samples, key=(1, 2), context=context)
    assert inside == cleave.monte_carlo_pi(samples, key=(1, 2), context=reference)
    assert abs(4 * inside / samples - np.pi) < 5 * 1.64 / np.sqrt(samples)
    assert inside != cleave.monte_carlo_pi(samples, key=(1, 3), context=reference)
    with pytest.raises(cleave.ArgumentError):
        cleave.monte_carlo_pi(-1)


def test_explain_and_force_these_too(context, reference):
    image, kernel = np.ones((20, 20), np.float32), cleave.gaussian_2d(1, 2)
    stack = np.ones((3, 4, 4), np.float32)
    calls = {"convolve": (cleave.convolve_2d, image, kernel), "eigvalsh": (cleave.eigvalsh, stack),
             "monte carlo": (cleave.monte_carlo_pi, 1000)}
    for name, (function, *arguments) in calls.items():
        plan = cleave.explain(function, *arguments, context=context)
        assert plan.operation == name and plan.side in ("host", "device") and plan.flops > 0
        with cleave.offload("host"):
            function(*arguments, context=context)
        assert cleave.last_plan().operation == name and cleave.last_plan().side == "host"
        with cleave.offload("device"), pytest.raises(cleave.NoDeviceError):
            function(*arguments, context=reference)


def test_nothing_is_lost_without_a_word(reference):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for call in (lambda: cleave.matmul(x + 1j, x.T), lambda: cleave.eigvalsh(np.eye(2) + 1j),
                 lambda: cleave.compute("x + 1", x=x + 1j), lambda: cleave.reduce(cleave.array(x + 1j)),
                 lambda: cleave.compute("x + 1", x=None), lambda: cleave.compute("x", x="abc"),
                 lambda: cleave.matmul(np.array([[None]], object), x[:1, :1])):
        with pytest.raises(cleave.ShapeError, match="real numbers are expected"):
            call()
    masked = np.ma.masked_equal(x, 5)
    assert np.isnan(cleave.compute("x + 1", x=masked)[1, 1])
    assert np.isnan(cleave.matmul(masked, x.T)[1]).all()


def test_empty_and_impossible_sizes(reference):
    x = np.ones((3, 4), np.float32)
    assert cleave.matmul(np.empty((0, 2, 3)), np.empty((1, 3, 2))).shape == (0, 2, 2)
    assert not cleave.matmul(np.empty((2, 0)), np.empty((0, 3))).any()
    with pytest.raises(cleave.ShapeError, match="extents must be at least 0"):
        cleave.empty((-1, 2))
    with pytest.raises(cleave.ShapeError, match="extent 0"):
        cleave.compute("x + 1", x=x[:0])
    with pytest.raises(cleave.ArgumentError, match="must be a text"):
        cleave.compute(3, x=x)
    for steps in (0, -1, 1 << 40):
        with pytest.raises(cleave.ArgumentError, match="1 to 2.32 - 1"):
            cleave.linear_train(x, x[:, 0], np.zeros(4, np.float32), rate=0.1, steps=steps)
    with pytest.raises(TypeError, match="integer"):
        cleave.monte_carlo_pi(1.5)


def test_strides_of_every_kind(reference):
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    odd = np.frombuffer(b"." + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(4, 6)
    for view in (x[::-1, ::-1], x[:, ::2], np.broadcast_to(x[0], (4, 6)), x.astype(">f4"), odd):
        want = np.array(view, np.float32)
        np.testing.assert_array_equal(cleave.compute("x + 1", x=view), want + 1)
        np.testing.assert_allclose(cleave.matmul(view, view.T), want @ want.T)
        np.testing.assert_array_equal(cleave.convolve_2d(view, np.ones((1, 1))), want)


BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "lt", "le", "gt", "ge", "eq", "ne")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "int64"])
def test_small_calls_compute_as_large_ones(context, dtype):
    """Small arrays take a short way, which has to give the values and types of the long one, for operands in either
    order."""
    x = np.array([[1, 2, 3], [4, 5, 7]], dtype)
    small, large = cleave.array(x, context=context), cleave.array(np.tile(x, (200, 3)), context=context)
    numbers = (2, 5, 2.5) if x.dtype.kind == "f" else (2, 5)
    for name in BINARY:
        function = getattr(operator, name)
        for number in numbers:
            for wanted, got, long in ((function(x, number), function(small, number), function(large, number)),
                                      (function(number, x), function(number, small), function(number, large))):
                np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-6, err_msg="%s %s" % (name, number))
                np.testing.assert_array_equal(got.numpy(), long.numpy()[:2, :3], err_msg="%s %s" % (name, number))
                assert got.dtype == long.dtype
    beyond = (1 << 24) + 1
    assert (small + beyond).dtype == (large + beyond).dtype if x.dtype.itemsize > 1 else True
    assert type(_device_array.small("subtract", small, 2, True)) is cleave.Array  # this is the short way
    assert _device_array.small("subtract", large, 2, True) is None
