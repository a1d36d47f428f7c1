# SPDX-License-Identifier: Apache-2.0
"""Compares transforms by NumPy, SciPy and FFTW, through cleave.fft, with NumPy's in float64: lengths that are powers of
2, 3, 5 and 7, primes, and one to three axes."""
import itertools
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import cleave
from cleave import _fftw, _fourier, _load, _transform, fft

SHAPES = [(1,), (2,), (64,), (81,), (125,), (343,), (127,), (1009,), (2048,), (2430,), (6, 7), (16, 27), (5, 49, 8),
          (13, 11, 7), (2, 8, 64), (72, 16), (8, 126)]
CLOSE = {"float32": 1e-6, "float64": 1e-12}
BY = ("numpy", "scipy", "fftw", "divided")


def plan(shape, out_shape, kind, out_kind, axes, forward, threads=1):
    return _fftw.Plan(_fftw.aligned(shape, kind), _fftw.aligned(out_shape, out_kind), axes, forward, 0.1, threads)


@pytest.fixture(params=BY)
def library(request, monkeypatch):
    """Makes every second transform of a shape, and all later ones, the work of one library."""
    if request.param in ("fftw", "divided") and not _fftw.there():
        pytest.skip("no FFTW (libfftw3f.so.3, libfftw3.so.3 and their threads)")
    if request.param == "scipy" and not _transform._scipy():
        pytest.skip("no Python module scipy")

    def decide(of, x, out, axes, forward, *_unused):
        of.scipy = request.param == "scipy"
        if request.param == "divided":
            of.form = _fourier.divided(x.shape, x.dtype, out.shape, out.dtype, axes, forward, 0.1)
        elif request.param == "fftw":
            of.form = _fourier.whole(plan(x.shape, out.shape, x.dtype, out.dtype, axes, forward))

    forget()
    monkeypatch.setattr(_transform, "_time_all", decide)
    monkeypatch.setattr(_load, "used", lambda: _load.Used(0.0, 0.0, 0.0, 1))
    monkeypatch.setattr(_fourier, "_LEAST", 4)
    yield request.param
    forget()


def forget():
    _transform.choice_for.cache_clear()
    _transform._way.cache_clear()
    _fourier.halves.cache_clear()
    fft._ways.clear()


def same(got, want, close):
    assert isinstance(got, cleave.Array) and got.shape == want.shape
    assert np.abs(got.numpy() - want).max() <= close * np.abs(want).max()


@pytest.mark.parametrize("dtype", CLOSE)
def test_transforms_are_numpys(context, library, dtype):
    close, rng = CLOSE[dtype], np.random.default_rng(7)
    for shape in SHAPES:
        real = rng.standard_normal(shape).astype(dtype)
        mixed = (real + 1j * rng.standard_normal(shape)).astype(np.complex64 if dtype == "float32" else np.complex128)
        x, z = cleave.array(real, context=context), cleave.array(mixed, context=context)
        exact, more = real.astype(np.float64), mixed.astype(np.complex128)
        for axes in [None, *itertools.combinations(range(len(shape)), 1), (*range(len(shape)),)]:
            sizes = [shape[i] for i in axes or range(len(shape))]
            for norm in ("backward", "ortho"):
                for _turn in range(2):
                    same(fft.fftn(z, axes=axes, norm=norm), np.fft.fftn(more, axes=axes, norm=norm), close)
                    same(fft.ifftn(z, axes=axes, norm=norm), np.fft.ifftn(more, axes=axes, norm=norm), close)
                    half = fft.rfftn(x, axes=axes, norm=norm)
                    same(half, np.fft.rfftn(exact, axes=axes, norm=norm), close)
                    if sizes[-1] > 1:
                        same(fft.irfftn(half, s=sizes, axes=axes or range(len(shape)), norm=norm), exact, 3 * close)
        assert np.array_equal(x.numpy(), real) and np.array_equal(z.numpy(), mixed)  # inputs stay


@pytest.mark.skipif(not _fftw.there(), reason="no FFTW (libfftw3f.so.3, libfftw3.so.3 and their threads)")
def test_what_is_divided():
    def number(shape, axes, kind="F", result=None):
        made = np.dtype("D" if kind == "D" else "F")
        form = _fourier.divided(shape, np.dtype(kind), result or shape, made, axes, True, 0.1)
        return form and (form.number, tuple(form.length))

    assert number((4096,), (0,)) == (2, (64, 64)) and number((1, 177147), (1,)) == (2, (243, 729))
    assert number((16, 100), (1,)) == (1, (0, 0)) == number((8, 64), (1,), "f", (8, 33))
    assert number((16, 100), (0, 1)) == (3, (16, 100)) and number((3, 90, 24), (1, 2)) == (3, (90, 24))
    assert number((5, 16, 64), (1, 2), "f", (5, 16, 72)) == (3, (16, 72))
    assert number((12289,), (0,)) == (4, (96, 128))
    for nothing in [((1000003,), (0,)), ((131074,), (0,)), ((4096,), (0,), "D"), ((12, 100), (1,)),
                    ((16, 100), (0,)), ((16, 20), (0, 1)),
                    ((16, 100), (1, 0)), ((8, 7), (1,), "f", (8, 4)), ((1, 100), (0, 1)), ((16, 100), (0, 1), "D")]:
        assert number(*nothing) is None


def test_views_and_other_lengths(context, library):
    x = np.random.default_rng(8).standard_normal((12, 10)).astype(np.float32)
    a = cleave.array(x, context=context)
    for _turn in range(2):
        same(fft.fft(a.T[:, ::2]), np.fft.fft(x.T[:, ::2]), 1e-6)
        same(fft.rfft(a[1:, 3:], axis=0), np.fft.rfft(x[1:, 3:], axis=0), 1e-6)
        same(fft.fft(a, 16), np.fft.fft(x, 16), 1e-6)
        same(fft.irfft(fft.rfft(a), 7), np.fft.irfft(np.fft.rfft(x), 7), 1e-6)
        same(fft.fft2(a), np.fft.fft2(x), 1e-6)
    assert fft.fft(a).dtype == np.complex64 and fft.fft(a.astype("int32")).dtype == np.complex128
    for wrong in (lambda: fft.fft(a, norm="none"), lambda: fft.fft(a, axis=2), lambda: fft.fftn(a, axes=(0, 5))):
        with pytest.raises((ValueError, IndexError)):
            wrong()


def test_the_fastest_library_is_chosen(context):
    forget()
    a = cleave.array(np.ones((64, 64), np.float32), context=context)
    for _turn in range(3):
        fft.fft2(a)
    x = np.ones((64, 64), np.complex64)
    of = _transform.choice_for(x.shape, "F", x.shape, "F", (0, 1), True)
    assert of.calls >= 2 and set(of.seconds) >= {"numpy", "fftw"}
    others = min(of.seconds["numpy"], of.seconds.get("scipy", np.inf))
    assert (of.form is not None) == (of.seconds["fftw"] < others) and (of.form is None or _fftw.there())
    assert of.scipy == (of.seconds.get("scipy", np.inf) < of.seconds["numpy"])
    # a choice that is made again knows nothing of the first one
    of.seconds["fftw"], of.form, of.scipy, of.calls = 0.0, None, False, 1
    fft.fft2(a)
    assert of.seconds["fftw"] > 0
    others = min(of.seconds["numpy"], of.seconds.get("scipy", np.inf))
    assert (of.form is not None) == (of.seconds["fftw"] < others)


@pytest.mark.skipif(not _fftw.there(), reason="no FFTW (libfftw3f.so.3, libfftw3.so.3 and their threads)")
def test_threads_that_are_late_are_given_up():
    of, shape, kind = _transform.Choice(), (256,), np.dtype("F")
    of.alone, of.form = (_fourier.whole(plan(shape, shape, kind, kind, (0,), True, threads)) for threads in (1, 2))
    of.seconds["fftw"] = 1e-3
    for seconds, kept in ((3e-3, True), (5e-3, True), (5e-3, True), (1e-3, True), (5e-3, True), (5e-3, True),
                          (5e-3, False)):
        of.took(seconds)
        assert (of.form is not of.alone) == kept


def test_a_choice_on_busy_cores_is_made_again_once(context, monkeypatch):
    """The clock and the use of the cores are made up: another program uses half of one of two cores for 2 seconds."""
    forget()
    now = [_load.Used(0.0, 0.0, 0.0, 2)]
    monkeypatch.setattr(_load, "used", lambda: now[0])
    timings = []

    def time_all(of, *_unused):
        timings.append(1)
        clock, everybody, own, cores = now[0]
        now[0] = _load.Used(clock + 2, everybody + (3 if len(timings) < 2 else 2.1), own + 2, cores)

    monkeypatch.setattr(_transform, "_time_all", time_all)
    a = cleave.array(np.ones(32, np.complex64), context=context)
    of = _transform.choice_for((32,), "F", (32,), "F", (0,), True)
    for _turn in range(4):
        fft.fft(a)
    assert len(timings) == 1 and of.provisional and of.spent > 0
    of.took(_transform._AGAIN_S)
    for _turn in range(4):
        fft.fft(a)
    assert len(timings) == 2 and not of.provisional
    of.timed(0.9)
    assert not of.provisional  # a third choice would not be better
    forget()


def test_the_share_of_other_programs():
    before = _load.Used(10.0, 100.0, 50.0, 4)
    assert _load.share_of_others(before, _load.Used(11.0, 104.0, 54.0, 4)) == 0  # this program uses all
    assert abs(_load.share_of_others(before, _load.Used(11.0, 103.0, 51.0, 4)) - 0.5) < 0.02
    assert _load.share_of_others(before, before) == 0
    start = _load.used()
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    end = _load.used()
    assert 0.1 <= end.own - start.own < 0.6 and end.all > start.all


@pytest.mark.skipif(not _fftw.there(), reason="no FFTW (libfftw3f.so.3, libfftw3.so.3 and their threads)")
def test_a_plan_is_freed_while_another_is_made():
    """The collector of garbage runs in the middle of a call, or in the child of a fork without the parent's threads."""
    def plan():
        x, out = _fftw.aligned((64,), np.dtype("F")), _fftw.aligned((64,), np.dtype("F"))
        return _fftw.Plan(x, out, (0,), True, 0.1, 1)

    def free_in_turn():
        with _fftw._lock:
            plan()  # is freed at once

    thread = threading.Thread(target=free_in_turn, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive(), "a plan waits for itself"
    held, kept = threading.Event(), plan()

    def hold():
        with _fftw._lock:
            held.set()
            time.sleep(0.3)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)  # ends a child that hangs
        del kept
        os._exit(0)
    holder.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


MAKES_PLANS = """if True:
    import ctypes, threading, time
    import numpy as np
    from cleave import _fftw

    library, until = ctypes.CDLL("libfftw3f.so.3"), time.monotonic() + 0.7
    library.fftwf_plan_dft_1d.restype = ctypes.c_void_p
    library.fftwf_plan_dft_1d.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint]
    library.fftwf_destroy_plan.argtypes = [ctypes.c_void_p]
    x, out = (_fftw.aligned((1000,), np.dtype("F")) for _ in range(2))

    def make(plan, length=64):
        while time.monotonic() < until:
            length = 64 + length * 11 % 907
            plan(length)

    def theirs(length):
        library.fftwf_destroy_plan(library.fftwf_plan_dft_1d(length, x.ctypes.data, out.ctypes.data, -1, 64))

    def ours(length):
        _fftw.Plan(x[:length], out[:length], (0,), True, 0.001, 1)

    assert _fftw.there()
    thread = threading.Thread(target=make, args=(theirs,))
    thread.start()
    make(ours)
    thread.join()
"""


@pytest.mark.skipif(not _fftw.there(), reason="no FFTW (libfftw3f.so.3, libfftw3.so.3 and their threads)")
def test_others_make_plans_with_the_same_library():
    done = subprocess.run([sys.executable, "-c", MAKES_PLANS], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
