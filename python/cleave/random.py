# SPDX-License-Identifier: Apache-2.0
"""Returns random numbers as Arrays. Philox (Salmon et al. 2011) makes the numbers on the host, so that a seed gives the
same bits with every device.

default_rng(seed) returns a generator. The functions of this module share a generator, which is seeded at random or by
seed().
"""
from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ._context import Context
from ._device_array import Array, array
from ._dtypes import FLOAT32, FLOAT64, dtype_from
from .errors import ArgumentError

__all__ = ["Generator", "choice", "default_rng", "integers", "normal", "permutation", "random", "seed", "uniform"]


def _is_double(what: str, dtype: Any) -> bool:
    found = dtype_from(dtype)
    if found not in (FLOAT32, FLOAT64):
        raise ArgumentError(f"{what}: dtype is {found}, but it must be float32 or float64")
    return found == FLOAT64


class Generator:
    """A generator of random numbers; two generators with the same seed give the same numbers."""

    def __init__(self, seed: Any = None, *, context: Context | None = None):
        self.context = context
        self._lock = threading.Lock()
        self._numbers = np.random.Generator(np.random.Philox(seed))

    def _made(self, name: str, *given: Any, dtype: Any = None, **named: Any) -> Array:
        with self._lock:
            values = getattr(self._numbers, name)(*given, **named)
        return array(values, dtype, context=self.context)

    def random(self, size: Any = None, dtype: Any = FLOAT32) -> Array:
        """Returns numbers from 0 up to, but not including, 1; float32 or float64."""
        if _is_double("random", dtype):
            return self._made("random", size, dtype=dtype)
        return self._single("random", size)

    def _single(self, name: str, size: Any) -> Array:
        with self._lock:
            values = getattr(self._numbers, name)(size, dtype=np.float32)
        return array(values, FLOAT32, context=self.context)

    def uniform(self, low: float = 0.0, high: float = 1.0, size: Any = None, dtype: Any = FLOAT32) -> Array:
        """Returns numbers from `low` up to, but not including, `high`."""
        return self.random(size, dtype) * float(high - low) + float(low)

    def normal(self, loc: float = 0.0, scale: float = 1.0, size: Any = None, dtype: Any = FLOAT32) -> Array:
        """Returns normally distributed numbers with mean `loc` and standard deviation `scale`."""
        if not scale >= 0:
            raise ArgumentError(f"normal: scale is {scale}, but it must be 0 or more")
        made = self._made("standard_normal", size, dtype=dtype) if _is_double("normal", dtype) else \
            self._single("standard_normal", size)
        return made * float(scale) + float(loc)

    def standard_normal(self, size: Any = None, dtype: Any = FLOAT32) -> Array:
        """Returns numbers of the standard normal distribution."""
        return self.normal(0.0, 1.0, size, dtype)

    def integers(self, low: int, high: int | None = None, size: Any = None, dtype: Any = np.int64) -> Array:
        """Returns integers from `low` up to, but not including, `high`; from 0 up to `low` if there is no `high`."""
        with self._lock:
            values = self._numbers.integers(low, high, size, dtype=dtype_from(dtype).type)
        return array(values, dtype, context=self.context)

    def choice(self, a: Any, size: Any = None, replace: bool = True, p: Any = None) -> Array:
        """Returns random elements of an array of one axis, or random numbers below an integer."""
        count = int(a) if isinstance(a, (int, np.integer)) else len(a)
        with self._lock:
            places = self._numbers.choice(count, size, replace, p.numpy() if isinstance(p, Array) else p)
        found = array(np.asarray(places, np.int64), context=self.context)
        if isinstance(a, (int, np.integer)):
            return found
        return (a if isinstance(a, Array) else array(a, context=self.context)).take(found, axis=0)

    def permutation(self, a: Any) -> Array:
        """Returns the slices of an array, or the numbers below an integer, in random order."""
        count = int(a) if isinstance(a, (int, np.integer)) else len(a)
        with self._lock:
            places = self._numbers.permutation(count)
        found = array(np.asarray(places, np.int64), context=self.context)
        if isinstance(a, (int, np.integer)):
            return found
        return (a if isinstance(a, Array) else array(a, context=self.context)).take(found, axis=0)


def default_rng(seed: Any = None, *, context: Context | None = None) -> Generator:
    """Returns a generator; two generators with the same seed give the same numbers."""
    return Generator(seed, context=context)


_common = Generator()


def seed(value: Any = None) -> None:
    """Seeds the generator that the functions of this module use."""
    global _common
    _common = Generator(value)


def random(size: Any = None, dtype: Any = FLOAT32) -> Array:
    """Returns numbers from 0 up to, but not including, 1."""
    return _common.random(size, dtype)


def uniform(low: float = 0.0, high: float = 1.0, size: Any = None, dtype: Any = FLOAT32) -> Array:
    """Returns numbers from `low` up to, but not including, `high`."""
    return _common.uniform(low, high, size, dtype)


def normal(loc: float = 0.0, scale: float = 1.0, size: Any = None, dtype: Any = FLOAT32) -> Array:
    """Returns normally distributed numbers with mean `loc` and standard deviation `scale`."""
    return _common.normal(loc, scale, size, dtype)


def integers(low: int, high: int | None = None, size: Any = None, dtype: Any = np.int64) -> Array:
    """Returns integers from `low` up to, but not including, `high`; from 0 up to `low` if there is no `high`."""
    return _common.integers(low, high, size, dtype)


def choice(a: Any, size: Any = None, replace: bool = True, p: Any = None) -> Array:
    """Returns random elements of an array of one axis, or random numbers below an integer."""
    return _common.choice(a, size, replace, p)


def permutation(a: Any) -> Array:
    """Returns the slices of an array, or the numbers below an integer, in random order."""
    return _common.permutation(a)
