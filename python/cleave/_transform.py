# SPDX-License-Identifier: Apache-2.0
"""Chooses which library transforms an array: pocketfft, by NumPy or by SciPy on all cores, or FFTW on one core or all.
They are timed at the second transform of a shape, and the fastest one does all later ones. Input and output stay in the
memory that the device shares, if it does."""
from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
import math
import os
import threading
import time
from typing import Any, NamedTuple, Sequence

import numpy as np
from numpy.typing import NDArray

from . import _fftw
from ._device_array import Array, array, dense_strides, new_array
from ._dtypes import COMPLEX64, COMPLEX128, FLOAT32, FLOAT64
from ._library import has, lib
from ._sharing import shared, wrapped

_NAMES = {(True, "c", "c"): "fftn", (False, "c", "c"): "ifftn", (True, "f", "c"): "rfftn", (False, "c", "f"): "irfftn"}
_KEPT = 256  # shapes whose choice is kept
_PATIENCE = 600  # FFTW may take as long as this many transforms to make a plan,
_SHORTEST_S, _LONGEST_S = 0.1, 2.0  # but at least and at most so many seconds
_TIMED_S = 0.01  # how long each library is timed, at least
_ALONE, _TOGETHER = 1 << 18, 1 << 13  # elements up to which one thread, and from which on all threads, are tried
_LATE, _OFTEN = 4, 3  # a plan of several threads that takes so many times too long, so often in a row, is given up
_HAS_OUT = int(np.__version__.split(".", maxsplit=1)[0]) >= 2


class Choice:
    """What is known about transforms of one shape and type."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.seconds: dict[str, float] = {}
        self.scipy = False
        self.plan: _fftw.Plan | None = None
        self.alone: _fftw.Plan | None = None  # the plan of one thread, if any, which replaces one of several threads
        self.calls, self.late = 0, 0

    def run(self, plan: _fftw.Plan, x: Any, out: Any) -> None:
        """Runs the plan on two addresses. Threads wait for each other without sleep, so where other programs use the
        cores, several threads take hundreds of times as long as one: such a plan is given up."""
        started = time.perf_counter()
        plan.run_at(x, out)
        if plan.threads > 1:
            too_long = time.perf_counter() - started > _LATE * self.seconds["fftw"]
            self.late = self.late + 1 if too_long else 0
            if self.late >= _OFTEN:
                self.plan = self.alone


@functools.lru_cache(maxsize=_KEPT)
def choice_for(*_key: Any) -> Choice:
    """Returns the record of transforms of one shape and type."""
    return Choice()


def _scale(axes: Sequence[int], shape: Sequence[int], forward: bool, norm: str | None) -> float:
    count = math.prod(shape[i] for i in axes)
    scaled = {"backward": not forward, "forward": forward, "ortho": True, None: not forward}[norm]
    return 1.0 if not scaled else 1 / math.sqrt(count) if norm == "ortho" else 1 / count


def _by_numpy(x: NDArray[Any], out: NDArray[Any], axes: Sequence[int], forward: bool, norm: str | None) -> None:
    function = getattr(np.fft, _NAMES[forward, x.dtype.kind, out.dtype.kind])
    sizes = [out.shape[i] for i in axes] if out.dtype.kind == "f" else None
    if _HAS_OUT:
        made = function(x, s=sizes, axes=axes, norm=norm, out=out)
        if made is out:
            return
    else:
        made = function(x, s=sizes, axes=axes, norm=norm)
    out[...] = made


@functools.lru_cache(maxsize=None)
def _scipy() -> Any:
    """Returns scipy.fft, or None if SciPy is not installed."""
    return importlib.import_module("scipy.fft") if importlib.util.find_spec("scipy") else None


def _by_scipy(x: NDArray[Any], shape: tuple[int, ...], kind: np.dtype[Any], axes: Sequence[int], forward: bool,
              norm: str | None) -> NDArray[Any]:
    function = getattr(_scipy(), _NAMES[forward, x.dtype.kind, kind.kind])
    sizes = [shape[i] for i in axes] if kind.kind == "f" else None
    made: NDArray[Any] = function(x, s=sizes, axes=axes, norm=norm, workers=len(os.sched_getaffinity(0)))
    return made


def _times(x: NDArray[Any], scale: float, out: NDArray[Any]) -> None:
    """Multiplies dense arrays of real or complex numbers by a real number, part by part."""
    real = out.real.dtype
    np.multiply(x.view(real), real.type(scale), out=out.view(real))


def _by_fftw(of: Choice, plan: _fftw.Plan, x: NDArray[Any], out: NDArray[Any], scale: float) -> None:
    if plan.kind == "dft_c2r" or not _fftw.fits(x.ctypes.data):  # the transform would spoil x, or cannot read it
        given, x = x, _fftw.aligned(x.shape, x.dtype)
        _times(given, scale, x)
        scale = 1.0
    into = out if _fftw.fits(out.ctypes.data) else _fftw.aligned(out.shape, out.dtype)
    of.run(plan, x.ctypes.data, into.ctypes.data)
    if scale != 1.0:
        _times(into, scale, out)
    elif into is not out:
        np.copyto(out, into)


def _best(function: Any, turns: int = 3) -> float:
    best, until = math.inf, time.perf_counter() + _TIMED_S
    while turns > 0 or time.perf_counter() < until:
        started = time.perf_counter()
        function()
        best, turns = min(best, time.perf_counter() - started), turns - 1
    return best


def _time_all(of: Choice, x: NDArray[Any], out: NDArray[Any], axes: Sequence[int], forward: bool, norm: str | None,
              scale: float) -> None:
    """Times the libraries that are there on copies, because FFTW overwrites both arrays while it makes a plan."""
    mine, made = _fftw.aligned(x.shape, x.dtype), _fftw.aligned(out.shape, out.dtype)
    np.copyto(mine, x)
    of.seconds["numpy"] = _best(lambda: _by_numpy(mine, made, axes, forward, norm))
    if _scipy():
        of.seconds["scipy"] = _best(lambda: _by_scipy(mine, made.shape, made.dtype, axes, forward, norm))
    cores = len(os.sched_getaffinity(0))
    patience = min(max(_PATIENCE * of.seconds["numpy"], _SHORTEST_S), _LONGEST_S)
    best, chosen = min(of.seconds.values()), None
    counts = [1] if x.size <= _ALONE or cores == 1 else []
    counts += [cores] if x.size >= _TOGETHER and cores > 1 else []
    for threads in counts if _fftw.there() else ():
        plan = _fftw.Plan(mine, made, axes, forward, patience, threads)
        np.copyto(mine, x)
        of.seconds["fftw"] = math.inf  # no plan is late while it is timed
        of.alone = plan if threads == 1 else of.alone
        took = _best(lambda plan=plan: _by_fftw(of, plan, mine, made, scale))
        if took < best:
            best, chosen = took, plan
    of.seconds["fftw"], of.scipy = best, of.seconds.get("scipy", math.inf) < of.seconds["numpy"]
    of.plan = chosen


def compute(x: NDArray[Any], out: NDArray[Any], axes: Sequence[int], forward: bool, norm: str | None) -> None:
    """Transforms a NumPy array into another one, which is dense, along `axes`, of which the last one is halved for real
    numbers."""
    x = np.ascontiguousarray(x)  # plans are made for dense arrays
    real = out if out.dtype.kind == "f" else x
    scale = _scale(axes, real.shape, forward, norm)
    of = choice_for(x.shape, x.dtype.char, out.shape, out.dtype.char, tuple(axes), forward)
    of.calls += 1
    if of.calls == 2 and of.lock.acquire(blocking=False):
        try:
            _time_all(of, x, out, axes, forward, norm, scale)
        finally:
            of.lock.release()
    plan = of.plan
    if plan is not None:
        _by_fftw(of, plan, x, out, scale)
    elif of.scipy:
        np.copyto(out, _by_scipy(x, out.shape, out.dtype, axes, forward, norm))
    else:
        _by_numpy(x, out, axes, forward, norm)


class _Way(NamedTuple):
    """How a transform of one shape, type and kind is computed."""
    shape: tuple[int, ...]  # of the result
    kind: np.dtype[Any]     # of the result
    wanted: np.dtype[Any]   # of the input
    scale: float
    of: Choice


@functools.lru_cache(maxsize=_KEPT)
def _way(shape: tuple[int, ...], dtype: np.dtype[Any], axes: tuple[int, ...], forward: bool, real: bool,
         norm: str | None, length: int | None) -> _Way:
    single = dtype in (FLOAT32, COMPLEX64)
    made = list(shape)
    if real:
        made[axes[-1]] = made[axes[-1]] // 2 + 1 if forward else int(length or 2 * (made[axes[-1]] - 1))
    reals, mixed = (FLOAT32, COMPLEX64) if single else (FLOAT64, COMPLEX128)
    kind, wanted = (reals if real and not forward else mixed), (reals if real and forward else mixed)
    of = choice_for(shape, wanted.char, tuple(made), kind.char, axes, forward)
    return _Way(tuple(made), kind, wanted, _scale(axes, made if real and not forward else shape, forward, norm), of)


def transform(x: Array, axes: tuple[int, ...], forward: bool, real: bool, norm: str | None,
              length: int | None) -> Array:
    """Transforms an Array along axes. `real`: the numbers before a forward transform, or after an inverse one, are real
    and have `length` elements along the last of the axes."""
    way = _way(x._shape, x.dtype, axes, forward, real, norm, length)
    plan = way.of.plan
    if plan is not None and plan.kind != "dft_c2r" and x.dtype is way.wanted:
        made = _at_once(x, way, plan)
        if made is not None:
            return made
    given = shared(x)
    in_place = given is not None
    given = x.numpy() if given is None else given
    if given.dtype != way.wanted:
        given = given.astype(way.wanted)
    if in_place and plan is None and way.of.scipy:  # the array that SciPy makes is the result
        made = wrapped(_by_scipy(given, way.shape, way.kind, axes, forward, norm), x.context)
        if made is not None:
            return made
    made = new_array(x.context, way.shape, way.kind)
    out = shared(made)
    into = np.empty(way.shape, way.kind) if out is None else out
    compute(given, into, axes, forward, norm)
    return made if out is not None else array(into, context=x.context)


def _at_once(x: Array, way: _Way, plan: _fftw.Plan) -> Array | None:
    """Runs a plan of FFTW in the memory of the Array and of its result; None if it cannot run there."""
    if not has("clv_array_host") or x._strides not in (None, dense_strides(x._shape)):
        return None
    from_there, to_there = ctypes.c_void_p(), ctypes.c_void_p()
    made = new_array(x.context, way.shape, way.kind)
    if lib.clv_array_host(x.handle, ctypes.byref(from_there)) or \
            lib.clv_array_host(made.handle, ctypes.byref(to_there)) or \
            not _fftw.fits(from_there.value or 0, to_there.value or 0):
        return None
    way.of.run(plan, from_there, to_there)
    if way.scale != 1.0:
        out = shared(made)
        assert out is not None
        _times(out, way.scale, out)
    return made
