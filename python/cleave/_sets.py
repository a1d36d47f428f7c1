# SPDX-License-Identifier: Apache-2.0
"""Sorts arrays, searches them, and finds their distinct values."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._device_array import Array, array, new_array
from ._dtypes import BOOL, INT64, is_number
from ._elementwise import apply
from ._folds import ramp, scan
from ._indexing import find, take_along
from ._library import check, lib
from ._shapes import axis_of, broadcast_to, concat, moveaxis, reshape
from .errors import ArgumentError, ShapeError


class UniqueAll(NamedTuple):
    """The distinct values, the index of the first element with each value, for each element the index of its value, and
    how often each value occurs."""
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """The distinct values, and how often each occurs."""
    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """The distinct values, and for each element the index of its value."""
    values: Array
    inverse_indices: Array


def argsort(a: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Returns the indices that sort the elements along an axis; computed on the host, NaN last."""
    del stable  # the sort is always stable
    axis = axis_of("argsort", axis, a.ndim)
    out = new_array(a.context, a.shape, INT64)
    if a.size:
        with a.context.held() as handle:
            check(lib.clv_array_order(handle, a.handle, axis, int(descending), out.handle))
    return out


def take_along_axis(a: Array, indices: Array, /, *, axis: int = -1) -> Array:
    """Returns out[..., j, ...] = a[..., indices[..., j, ...], ...], where j is the index along `axis`."""
    axis = axis_of("take_along_axis", axis, a.ndim)
    if indices.ndim != a.ndim:
        raise ShapeError(f"take_along_axis: the indices have {indices.ndim} axes, but must have {a.ndim}")
    if indices.dtype.kind not in "iu":
        raise IndexError(f"take_along_axis: the indices are of {indices.dtype}, but they must be integers")
    length = a.shape[axis]
    if indices.size:
        low, high = int(indices.min()), int(indices.max())
        if low < -length or high >= length:
            raise IndexError(f"take_along_axis: indices from {low} to {high} are out of range for an axis of {length} "
                             f"elements")
    return _taken_along(a, indices, axis)


def _taken_along(a: Array, indices: Array, axis: int) -> Array:
    shape = np.broadcast_shapes(*(tuple(1 if i == axis else n for i, n in enumerate(one.shape))
                                  for one in (a, indices)))
    a = broadcast_to(a, tuple(a.shape[i] if i == axis else n for i, n in enumerate(shape)))
    indices = broadcast_to(indices, tuple(indices.shape[i] if i == axis else n for i, n in enumerate(shape)))
    rows, places = moveaxis(a, axis, -1), moveaxis(indices, axis, -1)
    length, count = rows.shape[-1], places.shape[-1]
    flat, places = reshape(rows, (-1,) if rows.size else (0,)), places.astype(INT64)
    places = apply("where", apply("less", places, 0), apply("add", places, length), places)
    begin = reshape(apply("multiply", ramp(places.size // count if count else 0, a.context), length),
                    (*places.shape[:-1], 1)) if places.size else places
    found = take_along(flat, 0, apply("add", places, begin)) if places.size else \
        new_array(a.context, places.shape, a.dtype)
    return moveaxis(found, -1, axis)


def sort(a: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Returns the elements along an axis in ascending (or descending) order, NaN last."""
    order = argsort(a, axis=axis, descending=descending, stable=stable)
    return _taken_along(a, order, axis_of("sort", axis, a.ndim))


def searchsorted(row: Array, values: Any, /, *, side: str = "left", sorter: Array | None = None) -> Array:
    """Returns the indices at which `values` would be inserted into an ascending row; computed on the host."""
    if side not in ("left", "right"):
        raise ArgumentError(f"searchsorted: got side {side!r}, but 'left' or 'right' is expected")
    if sorter is not None:
        row = take_along(row, 0, sorter)
    given = values if isinstance(values, Array) else array(values, context=row.context)
    out = new_array(row.context, given.shape, INT64)
    if given.size:
        with row.context.held() as handle:
            check(lib.clv_array_locate(handle, row.handle, given.handle, side == "right", out.handle))
    return out


def nonzero(a: Array, /) -> tuple[Array, ...]:
    """Returns the indices of elements that are not 0, one array per axis."""
    if not a.ndim:
        raise ShapeError("nonzero: got a number, but an array with axes is expected")
    left, found = find(a), []
    for extent in reversed(a.shape):
        found.append(apply("remainder", left, extent) if left.size else left)
        left = apply("floor_divide", left, extent) if left.size else left
    return tuple(reversed(found))


def take(a: Array, indices: Any, /, *, axis: int | None = None) -> Array:
    """Returns slices along an axis by their indices; without an axis, elements of the whole array."""
    if axis is None and a.ndim != 1:
        a, axis = reshape(a, -1), 0
    places = indices if isinstance(indices, Array) else array(indices, context=a.context)
    if places.dtype.kind not in "iu" and not places.size:
        places = places.astype(INT64)
    return take_along(a, axis_of("take", axis or 0, a.ndim), places)


def unique_all(a: Array, /) -> UniqueAll:
    """Returns the distinct values in ascending order, with their indices and counts; every NaN counts as a
    value of its own."""
    row = reshape(a, -1)
    if a.dtype.kind == "c":
        return _unique_on_host(a)
    order = argsort(row)
    values = take_along(row, 0, order)
    count = row.size
    if not count:
        none = new_array(a.context, (0,), INT64)
        return UniqueAll(values, none, reshape(none, a.shape), none)
    first = new_array(a.context, (count,), BOOL)
    first[0] = True
    if count > 1:
        apply("not_equal", values[1:], values[:-1], out=first[1:])
    begins = find(first)
    numbers = apply("subtract", scan("sum", first, 0, INT64, False), 1)
    inverse = new_array(a.context, (count,), INT64)
    inverse[order] = numbers
    ends = concat([begins[1:], array([count], context=a.context)])
    return UniqueAll(take_along(values, 0, begins), take_along(order, 0, begins), reshape(inverse, a.shape),
                     apply("subtract", ends, begins))


def _unique_on_host(a: Array) -> UniqueAll:
    values, first, inverse, counts = np.unique(a.numpy(), return_index=True, return_inverse=True, return_counts=True,
                                               equal_nan=False)
    return UniqueAll(*(array(one, context=a.context)
                       for one in (values, first.astype(np.int64), inverse.reshape(a.shape).astype(np.int64),
                                   counts.astype(np.int64))))


def unique_counts(a: Array, /) -> UniqueCounts:
    """Returns the distinct values in ascending order, and how often each occurs."""
    found = unique_all(a)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(a: Array, /) -> UniqueInverse:
    """Returns the distinct values in ascending order, and for each element the index of its value."""
    found = unique_all(a)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(a: Array, /) -> Array:
    """Returns the distinct values in ascending order."""
    return unique_all(a).values


def isin(a: Any, among: Any, /, *, invert: bool = False) -> Array:
    """Tells for each element of `a` whether it occurs in `among` or, with `invert`, whether it does not."""
    from ._elementwise import context_of
    context = context_of((a, among))
    a, among = (one if isinstance(one, Array) else array(one, context=context) for one in (a, among))
    if not among.size or not a.size:
        out = new_array(a.context, a.shape, BOOL)
        out[...] = invert
        return out
    row = sort(reshape(among, -1))
    places = apply("minimum", searchsorted(row, a), row.size - 1)
    found = apply("equal", take_along(row, 0, places), a)
    return apply("logical_not", found) if invert else found


def count_nonzero(a: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """Counts the elements that are not 0, along the given axes."""
    from ._folds import sum as sum_of
    return sum_of(a.astype(BOOL), axis, INT64, keepdims)


def diff(a: Array, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Array:
    """Returns the differences of neighbours along an axis, taken n times."""
    if n < 0:
        raise ArgumentError(f"diff: n is {n}, but it must be 0 or more")
    axis = axis_of("diff", axis, a.ndim)
    parts = [one for one in (prepend, a, append) if one is not None]
    parts = [array(one, context=a.context) if is_number(one) else one for one in parts]
    joined = concat(parts, axis) if len(parts) > 1 else a
    ahead = (slice(None),) * axis
    for _ in range(n):
        later, earlier = joined[ahead + (slice(1, None),)], joined[ahead + (slice(None, -1),)]
        joined = apply("not_equal" if a.dtype == BOOL else "subtract", later, earlier)
    return joined.copy() if not n else joined
