# SPDX-License-Identifier: Apache-2.0
"""Divides transforms by FFTW among the cores, through clv_array_fourier: stacks of rows, one long transform as two
steps of short ones, those of prime numbers of elements, and transforms along several axes. FFTW makes the plans, which
are short and quickly made."""
from __future__ import annotations

import ctypes
import functools
import math
from typing import Any, Sequence

import numpy as np
from numpy.typing import NDArray

from . import _abi, _fftw
from ._device_array import Array, made_at_once
from ._dtypes import COMPLEX64, NUMBERS
from ._library import check, has, lib

ROWS, _GAP = 8, 8  # CLV_FOURIER_ROWS, CLV_FOURIER_GAP
_SHORT, _COLUMNS = 64, 64  # CLV_FOURIER_SHORT, CLV_FOURIER_COLUMNS
_WHOLE, _BY_ROWS, _BY_STEPS, _BY_AXES, _BY_PRIME = range(5)
_LEAST, _MOST = 64, 1 << 13  # elements of a step
_compute: Any = getattr(lib, "clv_array_fourier", None)  # an older library may lack it


class Form:
    """A way to compute transforms of one shape, type and direction: plans, and how the work is divided among them."""

    def __init__(self, number: int, plans: Sequence[_fftw.Plan], length: Sequence[int] = (0, 0), forward: bool = True,
                 block: int = 0, tables: Sequence[NDArray[Any]] = ()):
        self.number, self.plans, self.length, self.forward, self.block = number, plans, length, forward, block
        self.tables = tables  # of a prime number: order and factors

    @property
    def threads(self) -> int:
        """The threads that FFTW starts itself."""
        return self.plans[0].threads


def whole(plan: _fftw.Plan) -> Form:
    """Returns the way to let one plan do the whole transform."""
    return Form(_WHOLE, [plan])


def runs(form: Form) -> bool:
    """Tells whether the library can compute it: a transform to real numbers spoils its input, so it cannot."""
    return _compute is not None and form.plans[0].kind != "dft_c2r"


@functools.lru_cache(maxsize=256)
def halves(count: int) -> tuple[int, int] | None:
    """Returns the two factors of a length that are nearest to each other, the smaller one first; None if the steps
    would be too short or too long."""
    for one in range(math.isqrt(count), _LEAST - 1, -1):
        if count % one == 0:
            return (one, count // one) if count // one <= _MOST else None
    return None


def _gapped(count: int, kind: np.dtype[Any], forward: bool, limit_s: float) -> _fftw.Plan:
    """Returns the plan for rows with gaps."""
    x, out = (_fftw.aligned((ROWS, count + _GAP), kind)[:, :count] for _ in range(2))
    return _fftw.Plan(x, out, (1,), forward, limit_s, 1)


@functools.lru_cache(maxsize=256)
def _factors(count: int) -> tuple[int, ...]:
    """Returns the prime factors of a number, each of them once."""
    found, one = [], 2
    while one * one <= count:
        if count % one == 0:
            found.append(one)
            while count % one == 0:
                count //= one
        one += 1
    return (*found, count) if count > 1 else tuple(found)


def _tables(prime: int, forward: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    """Returns `order` and `factors` of clv_fourier_options."""
    count = prime - 1
    root = next(root for root in range(2, prime) if all(pow(root, count // one, prime) != 1 for one in _factors(count)))
    order: NDArray[Any] = np.ones(1, np.int64)
    while order.size < count:  # the next powers are those known so far times a power
        order = np.concatenate((order, order * pow(root, order.size, prime) % prime))
    order = order[:count]
    powers = np.exp((-2j if forward else 2j) * np.pi / prime * np.roll(order[::-1], 1))
    return order.astype(np.uint32), (np.fft.fft(powers) / count).astype(COMPLEX64)


def _by_prime(prime: int, forward: bool, limit_s: float) -> Form | None:
    """Returns the way to transform a prime number of elements."""
    steps = halves(prime - 1)
    if steps is None:
        return None
    plans = [_gapped(step, COMPLEX64, True, limit_s) for step in steps]
    return Form(_BY_PRIME, plans, steps, forward, tables=_tables(prime, forward))


def _by_axes(shape: tuple[int, ...], kind: np.dtype[Any], result: tuple[int, ...], first: int, forward: bool,
             limit_s: float) -> Form | None:
    """Returns the way to transform along all axes from `first` on."""
    count, columns, inner = shape[first], math.prod(result[first + 1:]), math.prod(shape[first + 1:])
    slabs = math.prod(shape[:first + 1])
    together = ROWS if slabs % ROWS == 0 and inner * ROWS <= _MOST else 1
    if not 1 < count <= _MOST or columns < (_COLUMNS if count <= _SHORT else ROWS) or not _fftw.fits(
            together * inner * kind.itemsize, together * columns * COMPLEX64.itemsize):
        return None
    x, out = (_fftw.aligned((together, *one[first + 1:]), one_kind)
              for one, one_kind in ((shape, kind), (result, COMPLEX64)))
    plans = [_fftw.Plan(x, out, range(1, x.ndim), forward, limit_s, 1)]
    if count <= _SHORT:
        both = _fftw.aligned((count, _COLUMNS), COMPLEX64)
        plans.append(_fftw.Plan(both, both, (0,), forward, limit_s, 1))
    else:
        plans.append(_gapped(count, COMPLEX64, forward, limit_s))
    return Form(_BY_AXES, plans, (count, columns), forward, together * inner)


def divided(shape: tuple[int, ...], kind: np.dtype[Any], result: tuple[int, ...], result_kind: np.dtype[Any],
            axes: Sequence[int], forward: bool, limit_s: float) -> Form | None:
    """Returns the way to divide a transform among the cores, or None if there is none."""
    if not has("clv_array_fourier") or result_kind.kind == "f" or tuple(axes) != tuple(
            range(len(shape) - len(axes), len(shape))):
        return None
    if len(axes) > 1:
        return _by_axes(shape, kind, result, axes[0], forward, limit_s) if result_kind == COMPLEX64 else None
    rows, count, made = math.prod(shape[:-1]), shape[-1], result[-1]
    if rows > 1:
        sizes = ROWS * count * kind.itemsize, ROWS * made * result_kind.itemsize
        if rows % ROWS or not _fftw.fits(*sizes):
            return None
        x, out = _fftw.aligned((ROWS, count), kind), _fftw.aligned((ROWS, made), result_kind)
        return Form(_BY_ROWS, [_fftw.Plan(x, out, (1,), forward, limit_s, 1)])
    if kind != COMPLEX64:
        return None
    steps = halves(count)
    if steps is None:
        return _by_prime(count, forward, limit_s) if _factors(count) == (count,) else None
    return Form(_BY_STEPS, [_gapped(step, kind, forward, limit_s) for step in steps], steps, forward)


class Ready:
    """A way to transform arrays with one factor for the result, as the library needs it."""
    __slots__ = ("form", "handle", "_shape", "_kind", "__weakref__")

    def __init__(self, form: Form, shape: tuple[int, ...], kind: np.dtype[Any], result: tuple[int, ...],
                 result_kind: np.dtype[Any], scale: float):
        options, made = _abi.FourierOptions(), ctypes.c_void_p()
        options.size, options.form, options.inverse, options.scale = (
            ctypes.sizeof(options), form.number, not form.forward, scale)
        options.run = ctypes.cast(form.plans[0].function, ctypes.c_void_p)
        options.run_second = ctypes.cast(form.plans[-1].function, ctypes.c_void_p)
        options.block = form.block
        if form.tables:
            options.order, options.factors = (table.ctypes.data for table in form.tables)
        for place, plan in enumerate(form.plans):
            options.plan[place] = plan.pointer
        setattr(options, "from", NUMBERS[kind])
        options.to, options.rank, options.result_rank = NUMBERS[result_kind], len(shape), len(result)
        options.shape[:len(shape)], options.result_shape[:len(result)], options.length[:] = shape, result, form.length
        check(lib.clv_fourier_create(ctypes.byref(options), ctypes.byref(made)))
        self.form, self.handle, self._shape, self._kind = form, made.value, result, result_kind

    def __del__(self, free: Any = getattr(lib, "clv_fourier_free", None)) -> None:
        free(getattr(self, "handle", None))

    def transformed(self, x: Array) -> Array | None:
        """Returns the transform of an Array of the right type and shape; None if it is not dense or not aligned."""
        handle = None if x.context._closed else _compute(x._handle, self.handle)
        if not handle:
            return None
        return made_at_once(x.context, handle, self._shape, self._kind)
