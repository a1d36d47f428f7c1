# SPDX-License-Identifier: Apache-2.0
"""Computes reductions along axes: of float32 by clv_reduce, whose sums are compensated, and of all other types by
clv_array_fold."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ._device_array import Array, new_array
from ._dtypes import BOOL, FLOAT16, FLOAT32, FLOAT64, INT64, UINT64, dtype_from, real_of
from ._elementwise import apply, cast
from ._library import check, lib
from ._shapes import axes_of, axis_of, reshape
from .errors import ArgumentError, ShapeError

_FOLDS = {name: number for number, name in enumerate(("sum", "prod", "min", "max", "any", "all"))}
_REDUCED = ("sum", "mean", "min", "max")


def _without(a: Array, axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    return tuple(1 if i in axes else n for i, n in enumerate(a.shape) if keepdims or i not in axes)


def _bits(axes: tuple[int, ...]) -> int:
    bits = 0
    for axis in axes:
        bits |= 1 << axis
    return bits


def _fold(what: str, a: Array, axes: tuple[int, ...], keepdims: bool, dtype: Any) -> Array:
    out = new_array(a.context, _without(a, axes, keepdims), dtype)
    with a.context.held() as handle:
        check(lib.clv_array_fold(handle, _FOLDS[what], a.handle, _bits(axes), out.handle))
    return out


def _reduced(what: str, a: Array, axis: Any, keepdims: bool) -> Array | None:
    """Reduces a float32 array along one axis or over all elements, on host or device, whichever is faster. Returns None
    for arrays and axes that clv_reduce does not accept."""
    one = axis if axis is None or hasattr(axis, "__index__") else axis[0] if len(axis) == 1 else ()
    if a.dtype is not FLOAT32 or not a.is_whole or one == ():
        return None
    from ._compute import reduce
    at = None if one is None else axis_of(what, one, a.ndim)
    made: Array = reduce(a, what, at)
    if keepdims:
        made.shape = _without(a, axes_of(what, at, a.ndim), True)
    return made


def _sums(what: str, a: Array, axis: Any, keepdims: bool, dtype: Any) -> Array:
    if dtype is None:
        dtype = a.dtype if a.dtype.kind in "fc" else UINT64 if a.dtype.kind == "u" else INT64
    else:
        dtype = dtype_from(dtype)
    if what == "sum" and dtype == a.dtype:
        made = _reduced(what, a, axis, keepdims)
        if made is not None:
            return made
    return _fold(what, a, axes_of(what, axis, a.ndim), keepdims, dtype)


def sum(a: Array, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """Computes sums along axes. Sums of small integers and of bool have 64 bits, and other sums the type of `a`."""
    return _sums("sum", a, axis, keepdims, dtype)


def prod(a: Array, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """Computes products along axes, in the same types as sums."""
    return _sums("prod", a, axis, keepdims, dtype)


def _extreme(what: str, a: Array, axis: Any, keepdims: bool) -> Array:
    made = _reduced(what, a, axis, keepdims)
    if made is not None:
        return made
    if a.dtype.kind == "c":
        raise ArgumentError(f"{what}: complex numbers cannot be compared; use real numbers, such as abs(x)")
    return _fold(what, a, axes_of(what, axis, a.ndim), keepdims, a.dtype)


def min(a: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """Returns the smallest element along axes; NaN if an element is NaN."""
    return _extreme("min", a, axis, keepdims)


def max(a: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """Returns the largest element along axes; NaN if an element is NaN."""
    return _extreme("max", a, axis, keepdims)


_JOINS = {"sum": "add", "prod": "multiply", "min": "minimum", "max": "maximum"}


def begun(what: str, a: Array, initial: Any, axis: Any = None, keepdims: bool = False, **named: Any) -> Array:
    """Computes a sum, product or extreme of the elements and of a number, which is the result over no elements."""
    axes = axes_of(what, axis, a.ndim)
    if what in ("min", "max") and not math.prod(a.shape[i] for i in axes):
        from ._create import full
        return full(_without(a, axes, keepdims), initial, dtype=a.dtype, device=a.context)
    fold: Any = {"sum": sum, "prod": prod, "min": min, "max": max}[what]
    made: Array = fold(a, axis=axis, keepdims=keepdims, **named)
    return cast(apply(_JOINS[what], made, initial), made.dtype, copy=False)


def any(a: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """Tells whether any element along the given axes differs from 0."""
    return _fold("any", a, axes_of("any", axis, a.ndim), keepdims, BOOL)


def all(a: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """Tells whether all elements along the given axes differ from 0."""
    return _fold("all", a, axes_of("all", axis, a.ndim), keepdims, BOOL)


def _floats(a: Array, dtype: Any) -> Array:
    wanted = dtype_from(dtype) if dtype is not None else a.dtype if a.dtype.kind in "fc" else FLOAT64
    return cast(a, wanted, copy=False)


def _count(a: Array, axes: tuple[int, ...]) -> int:
    return math.prod(a.shape[i] for i in axes)


def mean(a: Array, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """Computes means along axes; the means of integers are float64, and those of float16 are computed in float32."""
    if a.dtype == FLOAT16 and dtype is None:
        return cast(mean(a, axis, FLOAT32, keepdims), FLOAT16)
    a = _floats(a, dtype)
    made = _reduced("mean", a, axis, keepdims)
    if made is not None:
        return made
    axes = axes_of("mean", axis, a.ndim)
    total = sum(a, axis, keepdims=keepdims)
    count = _count(a, axes)
    return apply("divide", total, float(count) if count else math.nan)


def var(a: Array, axis: Any = None, dtype: Any = None, correction: float = 0, keepdims: bool = False) -> Array:
    """Computes variances along axes: the sum of |x - mean|^2, divided by (number of elements - `correction`); those of
    float16 are computed in float32."""
    if a.dtype == FLOAT16 and dtype is None:
        return cast(var(a, axis, FLOAT32, correction, keepdims), FLOAT16)
    a = _floats(a, dtype)
    if not correction:
        made = _reduced("var", a, axis, keepdims)
        if made is not None:
            return made
    axes = axes_of("var", axis, a.ndim)
    apart = apply("subtract", a, mean(a, axes, keepdims=True))
    if a.dtype.kind == "c":
        apart = apply("abs", apart)
    total = sum(apply("square", apart), axes, keepdims=keepdims)
    left = _count(a, axes) - correction
    return apply("divide", total, float(left) if left > 0 else math.nan)


def std(a: Array, axis: Any = None, dtype: Any = None, correction: float = 0, keepdims: bool = False) -> Array:
    """Computes standard deviations along axes: the square roots of the variances."""
    return apply("sqrt", var(a, axis, dtype, correction, keepdims))


def _place(what: str, a: Array, axis: Any, keepdims: bool) -> Array:
    shape = a.shape
    if axis is None:
        at, flat = 0, reshape(a, -1)
    else:
        at, flat = axis_of(what, axis, a.ndim), a
    if not flat.shape[at]:
        raise ShapeError(f"{what} is not defined for an empty array")
    if a.dtype.kind == "c":
        raise ArgumentError(f"{what}: complex numbers cannot be compared; use real numbers, such as abs(x)")
    best = _extreme(what[3:], flat, at, True)
    hit = apply("equal", flat, best)
    if a.dtype.kind == "f":
        hit = apply("logical_or", hit, apply("isnan", flat))
    along = [1] * flat.ndim
    along[at] = flat.shape[at]
    places = reshape(ramp(flat.shape[at], flat.context), along)
    found = _fold("min", apply("where", hit, places, flat.shape[at]), (at,), keepdims and axis is not None, INT64)
    return reshape(found, (1,) * len(shape)) if keepdims and axis is None else found


def ramp(count: int, context: Any) -> Array:
    """Returns the `count` int64 numbers 0, 1, 2, ..."""
    out = new_array(context, (count,), INT64)
    return apply("ramp", 0, 1, out=out, context=context) if count else out


def argmin(a: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """Returns the index of the first smallest element along an axis, or over all elements row by row; that of the first
    NaN if there is one."""
    return _place("argmin", a, axis, keepdims)


def argmax(a: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """Returns the index of the first largest element along an axis, or over all elements row by row; that of the first
    NaN if there is one."""
    return _place("argmax", a, axis, keepdims)


def scan(what: str, a: Array, axis: Any, dtype: Any, include_initial: bool) -> Array:
    """Computes running sums or products along an axis, on the host."""
    if axis is None:
        if a.ndim != 1:
            raise ShapeError(f"cumulative_{what}: the array has {a.ndim} axes; name one of them with axis=")
        axis = 0
    axis = axis_of(f"cumulative_{what}", axis, a.ndim)
    if dtype is None:
        dtype = a.dtype if a.dtype.kind in "fc" else UINT64 if a.dtype.kind == "u" else INT64
    dtype = dtype_from(dtype)
    shape = tuple(n + (include_initial and i == axis) for i, n in enumerate(a.shape))
    out = new_array(a.context, shape, dtype)
    target = out
    if include_initial:
        out[(slice(None),) * axis + (slice(0, 1),)] = int(what == "prod")
        target = out[(slice(None),) * axis + (slice(1, None),)]
    if a.size:
        with a.context.held() as handle:
            check(lib.clv_array_scan(handle, _FOLDS[what], a.handle, axis, target.handle))
    return out
