# SPDX-License-Identifier: Apache-2.0
"""Chooses which library transforms an array: pocketfft, by NumPy or by SciPy on all cores, or FFTW. They are timed at
the second transform of a shape, and the fastest one does all later ones. Input and output stay in the memory that the
device shares, if it does."""
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
from ._device_array import Array, array, new_array
from ._dtypes import COMPLEX64, COMPLEX128, FLOAT32, FLOAT64
from ._library import has, lib
from ._sharing import shared

_NAMES = {(True, "c", "c"): "fftn", (False, "c", "c"): "ifftn", (True, "f", "c"): "rfftn", (False, "c", "f"): "irfftn"}
_KEPT = 256  # shapes whose choice is kept
_PATIENCE = 200  # FFTW may take as long as this many transforms to make a plan,
_SHORTEST_S, _LONGEST_S = 0.1, 2.0  # but at least and at most so many seconds
_HAS_OUT = int(np.__version__.split(".", maxsplit=1)[0]) >= 2


class Choice:
    """What is known about transforms of one shape and type."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.numpy_s, self.scipy_s, self.fftw_s = math.inf, math.inf, math.inf
        self.scipy = False
        self.plan: _fftw.Plan | None = None
        self.calls = 0


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


def _by_scipy(x: NDArray[Any], out: NDArray[Any], axes: Sequence[int], forward: bool, norm: str | None) -> None:
    function = getattr(_scipy(), _NAMES[forward, x.dtype.kind, out.dtype.kind])
    sizes = [out.shape[i] for i in axes] if out.dtype.kind == "f" else None
    np.copyto(out, function(x, s=sizes, axes=axes, norm=norm, workers=len(os.sched_getaffinity(0))))


def _by_fftw(plan: _fftw.Plan, x: NDArray[Any], out: NDArray[Any], scale: float) -> None:
    if plan.kind == "dft_c2r" or not _fftw.fits(x.ctypes.data):  # the transform would spoil x, or cannot read it
        given, x = x, _fftw.aligned(x.shape, x.dtype)
        np.copyto(x, given)
    into = out if _fftw.fits(out.ctypes.data) else _fftw.aligned(out.shape, out.dtype)
    plan.run(x, into)
    if into is not out:
        np.copyto(out, into)
    if scale != 1.0:
        np.multiply(out, out.real.dtype.type(scale), out=out)


def _best(function: Any, turns: int = 3) -> float:
    best = math.inf
    for _ in range(turns):
        started = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - started)
    return best


def _time_all(of: Choice, x: NDArray[Any], out: NDArray[Any], axes: Sequence[int], forward: bool, norm: str | None,
               scale: float) -> None:
    """Times the libraries that are there on copies, because FFTW overwrites both arrays while it makes a plan."""
    mine, made = _fftw.aligned(x.shape, x.dtype), _fftw.aligned(out.shape, out.dtype)
    np.copyto(mine, x)
    of.numpy_s = _best(lambda: _by_numpy(mine, made, axes, forward, norm))
    if _scipy():
        of.scipy_s = _best(lambda: _by_scipy(mine, made, axes, forward, norm))
    of.scipy = of.scipy_s < of.numpy_s
    if _fftw.there():
        plan = _fftw.Plan(mine, made, axes, forward, min(max(_PATIENCE * of.numpy_s, _SHORTEST_S), _LONGEST_S))
        np.copyto(mine, x)
        of.fftw_s = _best(lambda: _by_fftw(plan, mine, made, scale))
        if of.fftw_s < min(of.numpy_s, of.scipy_s):
            of.plan = plan


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
    if of.plan is not None:
        _by_fftw(of.plan, x, out, scale)
    elif of.scipy:
        _by_scipy(x, out, axes, forward, norm)
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
    made = new_array(x.context, way.shape, way.kind)
    simple = plan is not None and way.scale == 1.0 and x.dtype is way.wanted and x._strides is None and x._room < 0
    if simple and plan is not None and plan.kind != "dft_c2r" and has("clv_array_host"):  # the short way
        from_there, to_there = ctypes.c_void_p(), ctypes.c_void_p()
        if not lib.clv_array_host(x.handle, ctypes.byref(from_there)) and \
                not lib.clv_array_host(made.handle, ctypes.byref(to_there)) and \
                _fftw.fits(from_there.value or 0, to_there.value or 0):
            plan.run_at(from_there, to_there)
            return made
    given = shared(x)
    given = x.numpy() if given is None else given
    if given.dtype != way.wanted:
        given = given.astype(way.wanted)
    out = shared(made)
    into = np.empty(way.shape, way.kind) if out is None else out
    compute(given, into, axes, forward, norm)
    return made if out is not None else array(into, context=x.context)
