# SPDX-License-Identifier: Apache-2.0
"""Tests errors, progress, cancelling and threads, which work the same way in every call."""
import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest

import cleave
from conftest import need_devices

# Each item keeps a device busy for a while, so that a job of many lasts minutes.
SLOW = cleave.Kernel("""
__kernel void slow(__global float *out, uint turns)
{
    float a = 0.1f * get_global_id(0);
    for (uint n = 0; n < turns; ++n)
        a = sin(a) + 0.1f;
    out[get_global_id(0)] = a;
}""", "slow")


@pytest.fixture(name="chunks", scope="module")
def small_chunks():
    made = cleave.Context(batch=64)
    need_devices(made)
    yield made
    made.close()


def long_job(context, **options):
    return cleave.map(SLOW, cleave.Out(), np.uint32(60000), items=10**7, context=context, **options)


def test_errors_say_what_the_library_says(context, sequence):
    cube, angles, psf, _, _ = sequence
    with pytest.raises(cleave.ShapeError, match="1 frame") as caught:
        cleave.paco(cube[:1], angles[:1], psf, context=context)
    error = caught.value
    assert (error.status, error.name) == (2, "CLV_E_SHAPE")
    assert isinstance(error, cleave.Error) and isinstance(error, ValueError)
    assert str(error) == error.message and error.detail == ""
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.message, again.status) == (type(error), error.message, 2)


def test_what_is_not_there_is_an_error():
    with pytest.raises(cleave.NoDeviceError, match="name~no such device"):
        cleave.Context(devices="name~no such device")
    with pytest.raises(cleave.ArgumentError, match="sideways"):
        cleave.Context(mode="sideways")
    with pytest.raises(cleave.ArgumentError, match="must be one of 'adaptive'"):
        cleave.Context(schedule="best")


def test_progress_is_told_to_the_end(context, sequence):
    seen = []
    cleave.paco(*sequence[:3], context=context,
                progress=lambda done, total: seen.append((done, total)))
    assert seen and seen[-1][0] == seen[-1][1] > 0
    assert all(a[0] <= b[0] for a, b in zip(seen, seen[1:]))


def test_progress_can_cancel(chunks):
    with pytest.raises(cleave.CancelledError, match="cancelled"):
        long_job(chunks, progress=lambda done, total: False)


def test_what_progress_raises_reaches_the_caller(chunks):
    def progress(done, total):
        raise ZeroDivisionError("mine")
    with pytest.raises(ZeroDivisionError, match="mine"):
        long_job(chunks, progress=progress)


def test_the_bar_is_shown_on_stderr(context, sequence, capsys, monkeypatch):
    import sys
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    cleave.paco(*sequence[:3], context=context, progress=True)
    shown = capsys.readouterr()
    assert shown.out == "" and "paco: 100 %" in shown.err


def test_tqdm_shows_the_bar_where_it_is(context, sequence, monkeypatch):
    import sys
    import types
    bars = []

    class Bar:
        def __init__(self, desc, total):
            self.desc, self.total, self.n, self.closed = desc, total, 0, False
            bars.append(self)

        def update(self, more):
            self.n += more
            return True

        def close(self):
            self.closed = True

    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    module = types.ModuleType("tqdm.auto")
    module.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    cleave.paco(*sequence[:3], context=context, progress=True)
    assert [(b.desc, b.n == b.total > 0, b.closed) for b in bars] == [("paco", True, True)]


def test_ctrl_c_ends_a_call_and_leaves_everything_usable(chunks):
    before = signal.getsignal(signal.SIGINT)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        long_job(chunks)
    assert time.monotonic() - started < 120
    assert signal.getsignal(signal.SIGINT) is before
    assert cleave.map(SLOW, cleave.Out(), np.uint32(0), items=3, context=chunks).shape == (3,)


def interrupted(call):
    """Returns the seconds from a Ctrl-C in the middle of `call` to its KeyboardInterrupt."""
    sent = []

    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.5, send)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            call()
        return time.monotonic() - sent[0]
    finally:
        timer.cancel()


def test_ctrl_c_ends_a_long_product(context):
    rng = np.random.default_rng(3)
    a = rng.random((12000, 12000), np.float32)
    kept = a[:8].copy(), a[-8:].copy()
    small = a[:700, :3000] @ a[:3000, :700]
    assert np.allclose(cleave.matmul(a[:700, :3000], a[:3000, :700], context=context), small, 1e-4)

    def products():  # if one call takes less than half a second, the next ones wait for the Ctrl-C
        for _ in range(1000):
            cleave.matmul(a, a, context=context)

    assert interrupted(products) < 5
    assert (a[:8] == kept[0]).all() and (a[-8:] == kept[1]).all()
    assert np.allclose(cleave.matmul(a[:700, :3000], a[:3000, :700], context=context), small, 1e-4)


def test_a_long_product_on_the_host_ends_too():
    with cleave.Context(mode="reference") as context:
        a = np.ones((6000, 6000), np.float32)
        assert interrupted(lambda: cleave.matmul(a, a.T, context=context)) < 5
        assert (cleave.matmul(a[:, :1100], a[:1100], context=context) == 1100).all()


def test_a_product_in_parts_is_the_product(context):
    rng = np.random.default_rng(4)
    a, b = rng.random((3, 1500, 700), np.float32), rng.random((700, 600), np.float32)
    for left in (a, a.transpose(0, 2, 1).copy().transpose(0, 2, 1), a[:, ::2]):
        got = cleave.matmul(left, b, context=context)
        for one, want in zip(left, got):  # each call is too short to be watched
            assert (cleave.matmul(one[:500], b, context=context) == want[:500]).all()


def test_ctrl_c_ends_linking():
    spots = np.random.default_rng(5).random((9000, 3)) * 10
    spots[:, 0] = np.arange(9000) % 2  # two frames with one group: an assignment of 4,500 by 9,000
    kept = spots.copy()
    assert interrupted(lambda: cleave.link(spots, 20)) < 5
    assert (spots == kept).all()
    assert (cleave.link([[0, 1, 1], [1, 1, 2]], 3) == 0).all()


def test_linking_tells_how_far_it_is():
    told = []
    cleave.link(np.zeros((5, 3)) + np.arange(5)[:, None], 3, progress=lambda *at: told.append(at))
    assert told == [(5, 5)]
    with pytest.raises(cleave.CancelledError):
        spots = np.random.default_rng(5).random((9000, 3)) * 10
        spots[:, 0] = np.arange(9000) % 2
        cleave.link(spots, 20, progress=lambda done, total: False)


def test_a_handler_of_the_callers_own_is_called(chunks):
    caught = []

    def handler(number, frame):
        caught.append(number)
        raise RuntimeError("stop")

    before = signal.signal(signal.SIGINT, handler)
    try:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(RuntimeError, match="stop"):
            long_job(chunks)
    finally:
        signal.signal(signal.SIGINT, before)
    assert caught == [signal.SIGINT]


def test_other_threads_run_meanwhile(chunks):
    turns, over = [0], threading.Event()

    def count():
        while not over.is_set():
            turns[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    calls = iter(range(4))
    try:
        with pytest.raises(cleave.CancelledError):  # after about 0.4 s
            long_job(chunks, progress=lambda done, total: next(calls) < 3)
    finally:
        over.set()
        thread.join()
    assert turns[0] > 20


def test_calls_from_a_thread_work(context, sequence):
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(
        cleave.paco(*sequence[:3], context=context).snr)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 3
    assert all(np.array_equal(answers[0], a, equal_nan=True) for a in answers)


def test_messages_go_to_logging(caplog):
    cleave.log_to(level="debug")
    try:
        with caplog.at_level("DEBUG", logger="cleave"), cleave.Context(mode="reference"):
            pass
        with cleave.Context() as fresh:
            for device in fresh.devices[:1]:
                device.open()
    finally:
        cleave.log_to(level="none")
    assert not fresh.devices or all(r.name == "cleave" for r in caplog.records)
