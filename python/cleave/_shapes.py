# SPDX-License-Identifier: Apache-2.0
"""Changes the shapes of arrays: returns views if elements need not move, else copies on the same device or host."""
from __future__ import annotations

import ctypes
import math
from typing import Any, Sequence

import numpy as np

from ._device_array import Array, array, dense_strides, made_like, new_array, shape_of, view
from ._dtypes import is_number
from ._library import check, lib
from .errors import ArgumentError, ShapeError


def axes_of(what: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """Returns the axes that a caller names (an integer, several, or None for all), counted from 0."""
    given = range(ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    found = []
    for one in given:
        if not hasattr(one, "__index__"):
            raise ArgumentError(f"{what}: got axis {one!r}, but an integer is expected")
        place = one.__index__()
        if not -ndim <= place < ndim:
            raise np.exceptions.AxisError(place, ndim) if hasattr(np, "exceptions") else \
                ShapeError(f"{what}: axis {place} is out of range for an array of {ndim} axes")
        found.append(place % ndim)
    if len(set(found)) != len(found):
        raise ShapeError(f"{what}: an axis is named twice in {axis}")
    return tuple(found)


def axis_of(what: str, axis: Any, ndim: int) -> int:
    """Returns the number of an axis from 0; a negative number counts from the end."""
    return axes_of(what, (axis,), ndim)[0]


def is_dense(a: Array) -> bool:
    """Tells whether the elements lie row by row without gaps."""
    return not a.size or all(step == dense or extent == 1 for step, dense, extent in
                             zip(a.strides_, dense_strides(a.shape), a.shape))


def reshape(a: Array, shape: Sequence[int] | int, copy: bool | None = None) -> Array:
    """Returns the elements in another shape: a view if they lie densely, else a copy."""
    wanted = a._extents("reshape", shape)
    if math.prod(wanted) != a.size:
        raise ShapeError(f"reshape: {a.size} elements do not fill {wanted}")
    if is_dense(a) and not copy:
        return view(a, 0, wanted, dense_strides(wanted))
    if copy is False:
        raise ValueError(f"reshape: the elements of this view do not lie as {wanted} without a copy")
    made = ctypes.c_void_p()
    a.context.check_process()
    with a.context.held():
        check(lib.clv_array_copy(a.handle, len(wanted), shape_of(wanted), ctypes.byref(made)))
        return made_like(a.context, made, wanted, a.dtype)


def broadcast_to(a: Array, shape: Sequence[int]) -> Array:
    """Returns a view that repeats axes of extent 1."""
    shape = tuple(shape)
    ahead = len(shape) - a.ndim
    if ahead < 0 or any(n not in (1, wanted) for n, wanted in zip(a.shape, shape[ahead:])):
        raise ShapeError(f"broadcast_to: shape {a.shape} cannot be broadcast to {shape}")
    return view(a, 0, shape, (0,) * ahead + tuple(0 if n == 1 else step for n, step in zip(a.shape, a.strides_)))


def expand_dims(a: Array, axis: Any = 0) -> Array:
    """Returns a view with new axes of extent 1 at the positions `axis`."""
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    places = axes_of("expand_dims", axis, a.ndim + count)
    shape, strides = list(a.shape), list(a.strides_)
    for place in sorted(places):
        shape.insert(place, 1)
        strides.insert(place, 0)
    return view(a, 0, tuple(shape), tuple(strides))


def squeeze(a: Array, axis: Any) -> Array:
    """Returns a view without the axes `axis`, which must have extent 1."""
    gone = axes_of("squeeze", axis, a.ndim)
    if any(a.shape[i] != 1 for i in gone):
        raise ShapeError(f"squeeze: the axes {gone} of shape {a.shape} must have an extent of 1")
    left = [i for i in range(a.ndim) if i not in gone]
    return view(a, 0, tuple(a.shape[i] for i in left), tuple(a.strides_[i] for i in left))


def permute_dims(a: Array, axes: Sequence[int]) -> Array:
    """Returns a view with the axes in the order of `axes`."""
    return a.transpose(tuple(axes)) if a.ndim else a


def moveaxis(a: Array, source: Any, destination: Any) -> Array:
    """Returns a view with axes moved to other positions; the other axes keep their order."""
    from_, to = axes_of("moveaxis", source, a.ndim), axes_of("moveaxis", destination, a.ndim)
    if len(from_) != len(to):
        raise ShapeError(f"moveaxis: got {len(from_)} axes, but {len(to)} places")
    order = [i for i in range(a.ndim) if i not in from_]
    for place, axis in sorted(zip(to, from_)):
        order.insert(place, axis)
    return permute_dims(a, order)


def flip(a: Array, axis: Any = None) -> Array:
    """Returns a view with the named axes reversed; None: all axes."""
    gone = axes_of("flip", axis, a.ndim)
    return a[tuple(slice(None, None, -1) if i in gone else slice(None) for i in range(a.ndim))]


def _joint(what: str, arrays: Sequence[Any]) -> list[Array]:
    from ._elementwise import context_of
    if not arrays:
        raise ArgumentError(f"{what}: there are no arrays")
    context = context_of(arrays)
    return [one if isinstance(one, Array) else array(one, context=context) for one in arrays]


def concat(arrays: Sequence[Any], axis: int | None = 0, dtype: Any = None) -> Array:
    """Joins arrays along an axis; without one, joins all of their elements."""
    from ._elementwise import apply, operand_dtypes
    given = _joint("concat", arrays)
    if axis is None:
        given, axis = [reshape(one, -1) for one in given], 0
    first = given[0]
    axis = axis_of("concat", axis, first.ndim)
    for one in given:
        if one.ndim != first.ndim or any(n != m for i, (n, m) in enumerate(zip(one.shape, first.shape)) if i != axis):
            raise ShapeError(f"concat: the shapes {first.shape} and {one.shape} do not fit together along axis {axis}")
    shape = (*first.shape[:axis], sum(one.shape[axis] for one in given), *first.shape[axis + 1:])
    if dtype is None:
        dtype = operand_dtypes("concat", given)[0]
        for one in given:
            dtype = _promoted(dtype, one.dtype)
    out = new_array(first.context, shape, dtype)
    at = 0
    for one in given:
        if one.size:
            part = view(out, at * out.strides_[axis], one.shape, out.strides_)
            apply("copy", one, out=part)
        at += one.shape[axis]
    return out


def _promoted(a: Any, b: Any) -> Any:
    from ._elementwise import OPS, types_of
    return a if a == b else types_of(OPS["add"], a, b)[0]


def stack(arrays: Sequence[Any], axis: int = 0) -> Array:
    """Joins arrays of the same shape along a new axis."""
    given = _joint("stack", arrays)
    if any(one.shape != given[0].shape for one in given):
        raise ShapeError(f"stack: shapes {', '.join(str(one.shape) for one in given)} differ, but all must be equal")
    return concat([expand_dims(one, axis) for one in given], axis_of("stack", axis, given[0].ndim + 1))


def unstack(a: Array, axis: int = 0) -> tuple[Array, ...]:
    """Returns views of all slices along an axis."""
    axis = axis_of("unstack", axis, a.ndim)
    return tuple(a[(slice(None),) * axis + (i,)] for i in range(a.shape[axis]))


def roll(a: Array, shift: Any, axis: Any = None) -> Array:
    """Returns the elements moved by `shift` along axes; elements that pass the end come in at the beginning."""
    if axis is None:
        return reshape(roll(reshape(a, -1), shift, 0), a.shape)
    axes = axes_of("roll", axis, a.ndim)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,)
    shifts = (sum(shifts),) if len(axes) == 1 else shifts * len(axes) if len(shifts) == 1 else shifts
    if len(shifts) != len(axes):
        raise ShapeError(f"roll: got {len(shifts)} shifts for {len(axes)} axes; give one for each axis, or one for all")
    for by, one in zip(shifts, axes):
        by = by % a.shape[one] if a.shape[one] else 0
        ahead = (slice(None),) * one
        if by:
            a = concat([a[ahead + (slice(-by, None),)], a[ahead + (slice(None, -by),)]], one)
    return a.copy()


def repeat(a: Array, repeats: Any, axis: int | None = None) -> Array:
    """Returns an array in which each slice along an axis is repeated `repeats` times."""
    from ._indexing import take_along
    if axis is None:
        a, axis = reshape(a, -1), 0
    axis = axis_of("repeat", axis, a.ndim)
    counts = repeats.numpy() if isinstance(repeats, Array) else np.asarray(repeats)
    places = np.repeat(np.arange(a.shape[axis]), counts)
    return take_along(a, axis, array(places.astype(np.int64), context=a.context))


def tile(a: Array, repetitions: Sequence[int]) -> Array:
    """Returns the array repeated `repetitions[i]` times along axis i."""
    times: tuple[Any, ...] = (repetitions,) if is_number(repetitions) else tuple(repetitions)
    times = (1,) * (a.ndim - len(times)) + times
    a = reshape(a, (1,) * (len(times) - a.ndim) + a.shape)
    for axis, count in enumerate(times):
        if count != 1:
            a = concat([a] * count, axis) if count else a[(slice(None),) * axis + (slice(0),)]
    return a.copy()


def split(a: Array, sections: Any, axis: int = 0, even: bool = True) -> list[Array]:
    """Returns views of parts along an axis: `sections` equal parts, or parts that begin at the indices in
    `sections`."""
    axis = axis_of("split", axis, a.ndim)
    length = a.shape[axis]
    if is_number(sections):
        if not isinstance(sections, int) or sections < 1:
            raise ShapeError(f"split: got {sections} parts, but a whole number from 1 on is expected")
        if even and length % sections:
            raise ShapeError(f"split: {length} slices cannot be split into {sections} equal parts")
        sizes = [length // sections + (i < length % sections) for i in range(sections)]
        ends = list(np.cumsum(sizes))
    else:
        ends = [*sections, length]
    begins = [0, *ends[:-1]]
    return [a[(slice(None),) * axis + (slice(int(first), int(end)),)] for first, end in zip(begins, ends)]
