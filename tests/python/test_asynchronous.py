# SPDX-License-Identifier: Apache-2.0
"""Tests asynchronous calls on arrays."""
import numpy as np
import pytest

import cleave

BIG = np.arange(5000, dtype=np.float32)


def test_results_are_those_of_synchronous_calls(context):
    a = cleave.array(BIG, context=context)
    want = np.sqrt(BIG[::-1] * 2 + 1)
    with cleave.asynchronous(context):
        b = np.sqrt(a[::-1] * 2 + 1)
        np.testing.assert_allclose(b.numpy(), want, rtol=1e-6)  # in between
        c = b.copy()
        c[10:20] += b[:10]
        b.shape = (50, 100)
        total = cleave.sum(b, axis=0)
    want_c = want.copy()
    want_c[10:20] += want[:10]
    np.testing.assert_allclose(c.numpy(), want_c, rtol=1e-6)
    np.testing.assert_allclose(total.numpy(), want.reshape(50, 100).sum(0), rtol=1e-5)
    assert "50, 100" in repr(b)


def test_blocks_of_threads_may_end_in_any_order(reference):
    one, other = cleave.asynchronous(reference), cleave.asynchronous(reference)
    with reference.held() as handle:
        one.__enter__()
        other.__enter__()
        one.__exit__(None, None, None)
        assert reference._asynchronous and cleave._library.lib.clv_array_is_asynchronous(handle)
        other.__exit__(None, None, None)
        assert not reference._asynchronous and not cleave._library.lib.clv_array_is_asynchronous(handle)


def test_errors_come_once(reference):
    a = cleave.array(BIG, context=reference)
    with cleave.asynchronous(reference):
        with pytest.raises(cleave.ShapeError):
            a + a[:7]
        with cleave.offload("device"):
            b = a + 1
        with pytest.raises(cleave.NoDeviceError, match="a device was demanded"):
            b.numpy()
        cleave.synchronize(reference)
        with cleave.offload("device"):
            b = a + 1
        with pytest.raises(cleave.NoDeviceError):
            cleave.synchronize(reference)
        cleave.synchronize(reference)
    with pytest.raises(cleave.NoDeviceError):
        with cleave.asynchronous(reference), cleave.offload("device"):
            b = a + 1
    with pytest.raises(KeyError):
        with cleave.asynchronous(reference), cleave.offload("device"):
            b = a + 1
            raise KeyError
    assert (a + 1).numpy()[1] == 2


def test_a_pending_array_can_be_freed_and_its_context_closed():
    made = cleave.Context(mode="reference")
    with made:
        with cleave.asynchronous(made):
            a = cleave.array(BIG)
            for _ in range(20):
                a = a + 1
    assert a.numpy()[0] == 20


def test_memory_of_numpy_is_not_used_later(reference):
    mine = BIG.copy()
    with cleave.asynchronous(reference):
        out = cleave.compute("x + 1", x=mine, context=reference)
        mine[:] = 0
        assert out[1] == 2
        a = cleave.array(BIG, context=reference) + 1
        seen = np.from_dlpack(a)
        a += 1
        assert seen[0] == 2
