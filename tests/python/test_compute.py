# SPDX-License-Identifier: Apache-2.0
"""Tests expressions, reductions, products and regression, arrays that stay on a device, and the choice of host or
device."""
import threading

import numpy as np
import pytest

import cleave
from conftest import need_devices, without_lapack


@pytest.fixture(params=["plain", "host", "device"])
def side(request, context, reference):
    """A context, and the side on which its work is forced to run."""
    if request.param == "device":
        need_devices(context)
    with cleave.offload("auto" if request.param == "plain" else request.param):
        yield reference if request.param == "plain" else context


def test_compute_broadcasts_as_numpy(side):
    x = np.linspace(-2, 2, 60, dtype=np.float32).reshape(4, 15)
    row, column = x[1] + 3, x[:, :1]
    got = cleave.compute("where(x > 0, x ** 2, -x) * row + k * column", x=x, row=row, column=column,
                         k=2.5, context=side)
    np.testing.assert_allclose(got, np.where(x > 0, x**2, -x) * row + 2.5 * column, rtol=1e-6)
    out = np.empty_like(x)
    assert cleave.compute("x % row", x=x, row=row, out=out, context=side) is out
    np.testing.assert_allclose(out, x % row, atol=1e-6)
    assert cleave.compute("2 + 3 * k", k=4, context=side).shape == ()
    ints = cleave.compute("x + 1", x=np.arange(6).reshape(2, 3)[:, ::-1], context=side)
    assert ints.tolist() == [[3, 2, 1], [6, 5, 4]]


def test_faults_of_expressions_are_placed(reference):
    with pytest.raises(cleave.FormatError, match='position 4: found "\\* y"'):
        cleave.compute("x + * y", x=1, y=2, context=reference)
    with pytest.raises(cleave.FormatError, match="name of an input or of a function"):
        cleave.compute("__import__('os')", context=reference)
    with pytest.raises(cleave.ShapeError, match="does not fit"):
        cleave.compute("a + b", a=np.ones(3), b=np.ones(4), context=reference)
    with pytest.raises(cleave.ShapeError, match="the result"):
        cleave.compute("a", a=np.ones(3), out=np.empty(4, np.float32), context=reference)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_reductions(side, axis):
    x = np.random.default_rng(2).standard_normal((37, 11, 3)).astype(np.float32)
    for what in ("sum", "mean", "var", "std", "min", "max", "argmin", "argmax"):
        want = getattr(x.astype(np.float64), what)(axis)
        got = cleave.reduce(x, what, axis, context=side)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    with pytest.raises(cleave.ShapeError):
        cleave.reduce(x, "sum", 3, context=side)
    with pytest.raises(cleave.ArgumentError):
        cleave.reduce(x, "median", context=side)


def test_normalize_and_products(side):
    x = (np.random.default_rng(3).standard_normal((20, 6)) * 3 + 50).astype(np.float32)
    want = (x - x.mean(0, dtype=float)) / x.std(0, dtype=float)
    found = cleave.normalize(x, gram=True, context=side)
    np.testing.assert_allclose(found.z, want, atol=2e-4)
    np.testing.assert_allclose(found.gram, want @ want.T, atol=5e-3)
    np.testing.assert_allclose(found.mean, x.mean(0, dtype=float), rtol=1e-6)
    stack = np.stack([x, 2 * x])
    np.testing.assert_allclose(cleave.product(stack, x, transpose_b=True, context=side),
                               stack @ x.T, rtol=1e-5)
    with pytest.raises(cleave.ShapeError):
        cleave.product(x, x, context=side)


def test_regression(side):
    random = np.random.default_rng(4)
    x, y, w = (random.standard_normal(s).astype(np.float32) for s in ((50, 7), 50, 7))
    loss, gradient = cleave.linear_step(x, y, w, context=side)
    r = x.astype(float) @ w - y
    np.testing.assert_allclose(loss, (r**2).mean(), rtol=1e-6)
    np.testing.assert_allclose(gradient, 2 * x.T.astype(float) @ r / 50, rtol=1e-5, atol=1e-6)
    losses = cleave.linear_train(x, y, w, rate=0.1, steps=30, context=side)
    assert losses[0] == loss and losses[-1] < losses[0] / 2
    with pytest.raises(cleave.ArgumentError, match="w:"):
        cleave.linear_train(x, y, [0.0] * 7, rate=0.1, steps=3, context=side)


def test_a_long_training_can_be_ended(reference, monkeypatch):
    x = np.random.default_rng(8).standard_normal((50, 4)).astype(np.float32)
    y, w, cut = x[:, 0] * 2, np.zeros(4, np.float32), np.zeros(4, np.float32)
    whole = cleave.linear_train(x, y, w, rate=0.1, steps=30, context=reference)
    monkeypatch.setattr(cleave._compute, "_FLOPS_A_CALL", 4 * x.size * 7)
    seen = []
    assert np.array_equal(whole, cleave.linear_train(
        x, y, cut, rate=0.1, steps=30, context=reference,
        progress=lambda done, total: seen.append((done, total))))
    assert np.array_equal(w, cut) and seen == [(n, 30) for n in (7, 14, 21, 28, 30)]
    there = cleave.array(np.zeros(4), context=reference)
    losses = cleave.linear_train(x, y, there, rate=0.1, steps=30)
    assert isinstance(losses, cleave.Array) and np.array_equal(losses.numpy(), whole)
    with pytest.raises(cleave.CancelledError, match="after 14 of 30 steps"):
        cleave.linear_train(x, y, cut, rate=0.1, steps=30, context=reference,
                            progress=lambda done, _total: done < 14)
    monkeypatch.setattr(cleave._compute, "_STEPS_A_CALL", 4)  # however short a step is
    del seen[:]
    cleave.linear_train(x, y, cut, rate=0.1, steps=10, context=reference,
                        progress=lambda done, _total: seen.append(done))
    assert seen == [4, 8, 10]
    plan = cleave.explain(cleave.linear_train, x, y, cut, rate=0.1, steps=30, context=reference)
    assert plan.flops > 4 * x.size * 20  # the number of all steps, not of those of a part


def test_matmul_of_arrays_stays_where_they_are(reference):
    x = np.random.default_rng(9).random((5, 7), np.float32)
    there = cleave.array(x, context=reference)
    got = cleave.matmul(there, x.T)
    assert isinstance(got, cleave.Array)
    np.testing.assert_allclose(got, x @ x.T, rtol=1e-5)
    out = cleave.empty((5, 5), context=reference)
    assert cleave.matmul(x, np.ascontiguousarray(x.T), out=out, context=reference) is out
    assert cleave.matmul(x, x.T, out=out) is out  # in the context of the array, whatever the default context is
    with pytest.raises(cleave.ArgumentError, match="alpha"):
        cleave.matmul(there, x.T, alpha=2)


def test_general_eigenvalues_have_a_plan(context):
    cleave.compute("x + 1", x=np.ones(3, np.float32), context=context)
    try:
        plan = cleave.explain(cleave.eigvals, np.eye(3)[None], context=context)
    except cleave.UnsupportedError as error:
        without_lapack(error)
    assert (plan.operation, plan.side) == ("eigvals", "host") and "LAPACK" in plan.reason


def test_operands_of_a_regression_may_be_one_array():
    x = np.random.default_rng(5).random((6, 6), np.float32)
    y = x[0].copy()
    loss, gradient = cleave.linear_step(x, y, y.copy())
    for again in (cleave.linear_step(x, y, y), cleave.linear_step(x, x[0], x[0])):
        assert np.array_equal(again[0], loss) and np.array_equal(again[1], gradient)
    there = cleave.array(y)
    same = cleave.linear_step(cleave.array(x), there, there)
    assert float(same[0]) == loss and np.array_equal(same[1].numpy(), gradient)


def test_eigvals(reference):
    with pytest.raises(cleave.ShapeError):
        cleave.eigvals(np.ones((2, 3)), context=reference)
    try:
        found = cleave.eigvals([[0, 1], [-1, 0]], context=reference)
    except cleave.UnsupportedError as error:
        without_lapack(error)
    assert found.tolist() == [-1j, 1j]


def test_arrays_stay_on_the_device(device_context):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    with device_context.held():
        a = cleave.array(x, context=device_context)
    before = cleave.array_stats(device_context)
    b = (2 * a + 1 - a / 4) % 3
    total = b.sum(axis=1)
    c = a @ cleave.compute("a", a=a).reshape(4, 3)
    after = cleave.array_stats(device_context)
    assert b.on_device and total.on_device and c.on_device
    assert after.downloads == before.downloads and after.uploads == before.uploads
    assert after.calls_device + after.calls_host >= before.calls_device + before.calls_host + 7
    np.testing.assert_allclose(b, (2 * x + 1 - x / 4) % 3, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(c), x @ x.reshape(4, 3))
    assert float(a.max()) == 11 and float(a.argmax()) == 11 and len(a) == 3 and a.size == 12
    assert (a > 5).numpy().sum() == 6 and (-a ** 2).numpy()[0, 1] == -1
    assert np.from_dlpack(a).shape == (3, 4) and np.array_equal(cleave.array(a, context=device_context), x)
    a.write(7)
    assert (a.numpy() == 7).all() and "on the device" in repr(a)
    with pytest.raises(cleave.ShapeError):
        a.reshape(5, 5)
    with pytest.raises(cleave.ShapeError):
        a.shape = 5, 5
    with pytest.raises(TypeError):
        float(a)


def test_a_shape_is_changed_in_a_view_or_in_place(side):
    a = cleave.array([[1, 2, 3], [4, 5, 6]], context=side)
    b, c, view = a.flatten().reshape(3, -1), a.copy(), a.reshape(3, -1)
    assert a.shape == (2, 3) and view.shape == b.shape == (3, 2) and b.on_device == a.on_device
    a.write(0)
    assert view.tolist() == [[0, 0], [0, 0], [0, 0]]
    assert b.tolist() == [[1, 2], [3, 4], [5, 6]] and c.tolist() == [[1, 2, 3], [4, 5, 6]]
    b.shape = -1
    assert b.shape == (6,) and b.tolist() == [1, 2, 3, 4, 5, 6] and len(b) == 6
    assert cleave.empty(6, context=side).reshape(2, 3).write(1).sum().item() == 6


def test_arrays_without_a_device(reference):
    a = cleave.array([1, 2, 3], context=reference)
    assert not a.on_device and (a + a).numpy().tolist() == [2, 4, 6]
    with pytest.raises(cleave.ArgumentError, match="different contexts"):
        with cleave.Context(mode="reference") as other:
            cleave.compute("a + b", a=a, b=cleave.array([1], context=other))
    with pytest.raises(cleave.ShapeError, match="9 axes"):
        cleave.array(np.ones((1,) * 9), context=reference)
    made = cleave.empty(3, context=reference)
    with pytest.raises(cleave.ArgumentError, match="no values"):
        made.numpy()


def test_a_chain_is_planned(context):
    a, b = (cleave.array(np.ones((64, 64), np.float32), context=context) for _ in range(2))
    plan = cleave.explain(lambda: (a + b) @ b)
    assert plan.operation == "matmul" and plan.flops == 2 * 64 ** 3
    assert cleave.explain(lambda: ((a + b) @ b).mean(0)).operation == "mean"
    where = {}
    shared = not context.devices or context.devices[0].facts["class"] in ("cpu", "software")  # then nothing moves
    for side in "device", "host":
        def chain():
            with cleave.offload(side):
                made = a + b
            return cleave.compute("x * y", x=made, y=1)
        where[side] = cleave.explain(chain).resident_bytes
    assert where["device"] - where["host"] == (0 if shared else a.size * 4)
    with pytest.raises(cleave.ArgumentError, match="no values"):
        cleave.explain(lambda: float((a + b).sum()))
    made = cleave.empty((64, 64), context=context)
    cleave.explain(cleave.compute, "a + b", a=a, b=b, out=made)
    with pytest.raises(cleave.ArgumentError, match="no values"):  # the array was only planned
        cleave.compute("x + 1", x=made)
    with pytest.raises(cleave.ArgumentError, match="no values"):
        cleave.explain(lambda: cleave.empty(3, context=context) + 1)


def test_the_choice_is_told_and_forced(context, reference):
    a = np.ones((8, 8), np.float32)
    plan = cleave.explain(cleave.matmul, a, a, context=context)
    assert plan.operation == "matmul" and plan.flops == 1024 and plan.side in str(plan)
    with pytest.raises(cleave.ArgumentError, match="no call"):  # not the earlier plan
        cleave.explain(cleave.array, a, context=reference)
    with cleave.offload("host"):
        cleave.matmul(a, a, context=context)
        assert cleave.last_plan().side == "host" and cleave.last_plan().forced
        seen = []
        thread = threading.Thread(target=lambda: (
            cleave.compute("1", context=reference), seen.append(cleave.last_plan())))
        thread.start()
        thread.join()
        assert "no device" in seen[0].reason  # an override belongs to one thread
    with cleave.offload("device"), pytest.raises(cleave.NoDeviceError):
        cleave.matmul(a, a, context=reference)
    with pytest.raises(cleave.ArgumentError):
        with cleave.offload("gpu"):
            pass
    room = np.zeros(3, np.float32)
    cleave.explain(cleave.compute, "1 + k", k=room, out=room, context=context)
    assert not room.any()


def test_memory_of_a_device(device_context):
    device = device_context.devices[0]
    device.reserve(1 << 20, 2)
    room = device.room()
    assert 0 < room.free_bytes <= room.limit_bytes and room.total_bytes > 0
    assert device.memory().cached_bytes >= 2 << 20
    busy = device.utilisation()
    assert busy is None or 0 <= busy <= 100
    device.trim()
    assert device.memory().cached_bytes == 0
    with pytest.raises(cleave.ArgumentError):
        device.reserve(0)
