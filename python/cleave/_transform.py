# SPDX-License-Identifier: Apache-2.0
"""Chooses which library transforms an array: pocketfft, by NumPy or by SciPy on all cores, or FFTW on one core or all.
They are timed at the second transform of a shape, and the fastest one does all later ones. Input and output stay in the
memory that the device shares, if it does."""
from __future__ import annotations

import functools
import importlib
import importlib.util
import math
import os
import threading
import time
from typing import Any, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from . import _fftw, _fourier, _load
from ._context import Context
from ._device_array import Array, array, new_array
from ._dtypes import COMPLEX64, COMPLEX128, FLOAT32, FLOAT64
from ._sharing import shared, wrapped

_NAMES = {(True, "c", "c"): "fftn", (False, "c", "c"): "ifftn", (True, "f", "c"): "rfftn", (False, "c", "f"): "irfftn"}
_KEPT = 256  # shapes whose choice is kept
_PATIENCE = 600  # FFTW may take as long as this many transforms to make a plan,
_SHORTEST_S, _LONGEST_S = 0.3, 2.0  # but at least and at most so many seconds
_TIMED_S = 0.01  # how long each library is timed, at least
_ALONE, _TOGETHER = 1 << 18, 1 << 13  # elements up to which one thread, and from which on all threads, are tried
_DIVIDED = 1 << 16  # from so many elements on, a transform that can be divided is not planned as a whole
_LATE, _OFTEN = 4, 3  # a plan of several threads that takes so many times too long, so often in a row, is given up
_AGAIN_S, _MOST_TIMES = 1.0, 2  # seconds of transforms after which a provisional choice is made again, at most once
_HAS_OUT = int(np.__version__.split(".", maxsplit=1)[0]) >= 2


class Choice:
    """What is known about transforms of one shape and type."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.seconds: dict[str, float] = {}
        self.scipy = False
        self.form: _fourier.Form | None = None  # the way by FFTW that was fastest, if it was faster than the others
        self.alone: _fourier.Form | None = None  # that of one thread, if any, which replaces one of several threads
        self.calls, self.late, self.times_timed = 0, 0, 0
        self.provisional, self.spent = False, 0.0  # other programs used the cores; seconds of transforms since then

    def took(self, seconds: float) -> None:
        """Notes how long a transform took. A provisional choice is made again once transforms have taken a second.
        Threads of FFTW wait for each other without sleep, so where other programs use the cores, they take hundreds of
        times as long as one: such a plan is given up."""
        if self.provisional:
            self.spent += seconds
            if self.spent >= _AGAIN_S:
                self.provisional, self.form, self.scipy, self.calls = False, None, False, 1
                return
        form = self.form
        if form is not None and form.threads > 1:
            self.late = self.late + 1 if seconds > _LATE * self.seconds["fftw"] else 0
            if self.late >= _OFTEN:
                self.form = self.alone

    def timed(self, others: float) -> None:
        """Notes that the choice was made while other programs used this share of the cores."""
        self.times_timed += 1
        self.provisional, self.spent = others > _load.MOST_SHARE and self.times_timed < _MOST_TIMES, 0.0


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


def _by_fftw(plan: _fftw.Plan, x: NDArray[Any], out: NDArray[Any], scale: float) -> None:
    if plan.kind == "dft_c2r" or not _fftw.fits(x.ctypes.data):  # the transform would spoil x, or cannot read it
        given, x = x, _fftw.aligned(x.shape, x.dtype)
        _times(given, scale, x)
        scale = 1.0
    into = out if _fftw.fits(out.ctypes.data) else _fftw.aligned(out.shape, out.dtype)
    plan.run(x, into)
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


def _forms(x: NDArray[Any], out: NDArray[Any], axes: Sequence[int], forward: bool,
           patience: float) -> Iterator[_fourier.Form]:
    """Makes the plans of FFTW that are worth a trial. Long transforms, which FFTW would plan for many seconds, those
    along several axes and stacks of rows are divided into short ones."""
    cores = len(os.sched_getaffinity(0))
    divided = None
    if x.size >= _TOGETHER:
        divided = _fourier.divided(x.shape, x.dtype, out.shape, out.dtype, axes, forward, patience)
    if divided is not None:
        yield divided
        if x.ndim > 1 and math.prod(x.shape[:-1]) > 1 or x.size >= _DIVIDED:
            return
    if x.size <= _ALONE or cores == 1:
        yield _fourier.whole(_fftw.Plan(x, out, axes, forward, patience, 1))
    if x.size >= _TOGETHER and cores > 1:
        yield _fourier.whole(_fftw.Plan(x, out, axes, forward, patience, cores))


def _time_all(of: Choice, x: NDArray[Any], out: NDArray[Any], axes: Sequence[int], forward: bool, norm: str | None,
              scale: float, context: Context) -> None:
    """Times the libraries that are there on copies, because FFTW overwrites both arrays while it makes a plan."""
    array_of = new_array(context, x.shape, x.dtype)
    there = shared(array_of)
    mine = there if there is not None and _fftw.fits(there.ctypes.data) else _fftw.aligned(x.shape, x.dtype)
    made = _fftw.aligned(out.shape, out.dtype)
    np.copyto(mine, x)
    of.seconds["numpy"] = _best(lambda: _by_numpy(mine, made, axes, forward, norm))
    if _scipy():
        of.seconds["scipy"] = _best(lambda: _by_scipy(mine, made.shape, made.dtype, axes, forward, norm))
    patience = min(max(_PATIENCE * of.seconds["numpy"], _SHORTEST_S), _LONGEST_S)
    others = min(seconds for name, seconds in of.seconds.items() if name != "fftw")  # FFTW's time is that of last time
    best, chosen = math.inf, None
    for form in _forms(mine, made, axes, forward, patience) if _fftw.there() else ():
        np.copyto(mine, x)
        of.alone = form if form.threads == 1 else of.alone
        ready = _fourier.Ready(form, x.shape, x.dtype, out.shape, out.dtype, scale) if mine is there and \
            _fourier.runs(form) else None
        if ready is None and form.number:
            continue  # the library alone can divide it
        took = _best(functools.partial(ready.transformed, array_of) if ready is not None else
                     functools.partial(_by_fftw, form.plans[0], mine, made, scale))
        if took < best:
            best, chosen = took, form
    of.seconds["fftw"], of.scipy = best, of.seconds.get("scipy", math.inf) < of.seconds["numpy"]
    of.form = chosen if best < others else None


def _compute(way: _Way, x: NDArray[Any], out: NDArray[Any], context: Context) -> None:
    """Transforms a NumPy array into another one, which is dense."""
    x = np.ascontiguousarray(x)  # plans are made for dense arrays
    of, asked = way.of, way.asked
    of.calls += 1
    if of.calls == 2 and of.lock.acquire(blocking=False):
        try:
            before = _load.used()
            _time_all(of, x, out, *asked, way.scale, context)
            of.timed(_load.share_of_others(before, _load.used()))
        finally:
            of.lock.release()
    form, started = of.form, time.perf_counter()
    if form is not None and not form.number:
        _by_fftw(form.plans[0], x, out, way.scale)
    elif of.scipy:
        np.copyto(out, _by_scipy(x, out.shape, out.dtype, *asked))
    else:
        _by_numpy(x, out, *asked)
    of.took(time.perf_counter() - started)


class _Way:
    """How a transform of one shape, type and kind is computed."""
    __slots__ = ("shape", "kind", "wanted", "scale", "asked", "of", "ready")

    def __init__(self, shape: tuple[int, ...], kind: np.dtype[Any], wanted: np.dtype[Any], scale: float,
                 asked: tuple[tuple[int, ...], bool, str | None], of: Choice):
        self.shape, self.kind = shape, kind  # of the result
        self.wanted = wanted  # type of the input
        self.scale, self.asked, self.of = scale, asked, of
        self.ready: _fourier.Ready | None = None

    def prepared(self, shape: tuple[int, ...], form: _fourier.Form) -> _fourier.Ready | None:
        """Returns the choice as the library needs it; None if it cannot carry it out."""
        if self.ready is None or self.ready.form is not form:
            self.ready = _fourier.Ready(form, shape, self.wanted, self.shape, self.kind, self.scale) \
                if _fourier.runs(form) else None
        return self.ready


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
    scale = _scale(axes, made if real and not forward else shape, forward, norm)
    return _Way(tuple(made), kind, wanted, scale, (axes, forward, norm), of)


def quick(x: Array, way: _Way) -> Array | None:
    """Transforms an Array by a choice that was made before, in one call of the library; None: transform() does it."""
    of, ready = way.of, way.ready
    form = of.form
    if form is None or x.dtype is not way.wanted:
        return None
    if ready is None or ready.form is not form:
        ready = way.prepared(x._shape, form)
        if ready is None:
            return None
    if form.threads == 1 and not of.provisional:
        return ready.transformed(x)
    started = time.perf_counter()
    made = ready.transformed(x)
    if made is not None:
        of.took(time.perf_counter() - started)
    return made


def transform(x: Array, axes: tuple[int, ...], forward: bool, real: bool, norm: str | None,
              length: int | None) -> tuple[Array, _Way]:
    """Transforms an Array along axes. `real`: the numbers before a forward transform, or after an inverse one, are real
    and have `length` elements along the last of the axes. The way that is returned too is the same for all such arrays
    of this shape and type."""
    way = _way(x._shape, x.dtype, axes, forward, real, norm, length)
    made = quick(x, way)
    if made is None and way.of.form is not None and way.of.form.number:
        made = quick(array(x, way.wanted), way)  # a dense copy, of the right type
    if made is not None:
        return made, way
    given = shared(x)
    in_place = given is not None
    given = x.numpy() if given is None else given
    if given.dtype != way.wanted:
        given = given.astype(way.wanted)
    if in_place and way.of.form is None and way.of.scipy:  # the array that SciPy makes is the result
        started = time.perf_counter()
        made = wrapped(_by_scipy(given, way.shape, way.kind, *way.asked), x.context)
        way.of.took(time.perf_counter() - started)
        if made is not None:
            return made, way
    made = new_array(x.context, way.shape, way.kind)
    out = shared(made)
    into = np.empty(way.shape, way.kind) if out is None else out
    _compute(way, given, into, x.context)
    return made if out is not None else array(into, context=x.context), way
