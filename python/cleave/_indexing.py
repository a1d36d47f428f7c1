# SPDX-License-Identifier: Apache-2.0
"""Reads and writes parts of arrays: views by slices and integers, and elements by masks and arrays of integers."""
from __future__ import annotations

import ctypes
import math
import operator
from typing import Any, Sequence

import numpy as np

from ._device_array import Array, array, made_like, new_array, view
from ._dtypes import BOOL, INT64, is_number
from ._library import check, lib
from .errors import ShapeError


def _is_advanced(one: Any) -> bool:
    return isinstance(one, (Array, np.ndarray, list)) or isinstance(one, (bool, np.bool_))


def _expand(a: Array, key: Any) -> list[Any]:
    """Returns the key as one entry per axis of the array, with None for new axes."""
    parts = list(key) if isinstance(key, tuple) else [key]
    parts = [np.asarray(one) if isinstance(one, (list, bool, np.bool_)) else one for one in parts]
    parts = [one.astype(np.intp) if isinstance(one, np.ndarray) and not one.size and one.dtype.kind == "f" else one
             for one in parts]
    used = 0
    for one in parts:
        if one is None or one is Ellipsis:
            continue
        mask = isinstance(one, (Array, np.ndarray)) and one.dtype == BOOL
        used += one.ndim if mask else 1
    if used > a.ndim:
        raise IndexError(f"array: got {used} indices, but the array has {a.ndim} axes")
    places = [i for i, one in enumerate(parts) if one is Ellipsis]
    if len(places) > 1:
        raise IndexError("array: an index has at most one ellipsis")
    at = places[0] if places else len(parts)
    return parts[:at] + [slice(None)] * (a.ndim - used) + parts[at + 1:]


def _integer(one: Any) -> int | None:
    """Returns an entry of a key as an int, or None if it is an array with axes; raises IndexError if it is neither."""
    if isinstance(one, (Array, np.ndarray)) and one.ndim:
        return None
    try:
        return operator.index(one)
    except TypeError:
        raise IndexError(f"array: {one!r} is not an index; use integers, slices, None, ..., or arrays of integers "
                         "or bool") from None


def _basic(a: Array, parts: Sequence[Any]) -> tuple[Array, list[Any]]:
    """Applies the slices, integers and new axes of a key, and returns (view, left). `left` has an entry for each axis
    of the view: the mask or array of indices that remains to be applied there, "mask" for a further axis of a mask, or
    None."""
    shape: list[int] = []
    strides: list[int] = []
    left: list[Any] = []
    offset = axis = 0
    for one in parts:
        if one is None:
            shape, strides, left = [*shape, 1], [*strides, 0], [*left, None]
            continue
        if isinstance(one, (Array, np.ndarray)) and (one.ndim or one.dtype == BOOL):
            span = one.ndim if one.dtype == BOOL else 1
            if one.dtype == BOOL and tuple(one.shape) != a.shape[axis:axis + span]:
                raise IndexError(f"array: a mask of shape {tuple(one.shape)} does not fit axes of "
                                 f"{a.shape[axis:axis + span]}")
            shape += a.shape[axis:axis + span]
            strides += a.strides_[axis:axis + span]
            left += [one] + ["mask"] * (span - 1) if span else []
            if not span:
                shape, strides, left = [*shape, 1], [*strides, 0], [*left, one]
            axis += span
            continue
        extent, stride = a.shape[axis], a.strides_[axis]
        if isinstance(one, slice):
            start, stop, step = one.indices(extent)
            count = len(range(start, stop, step))
            offset += start * stride if count else 0
            shape, strides, left = [*shape, count], [*strides, step * stride], [*left, None]
        else:
            place = _integer(one)
            assert place is not None
            if not -extent <= place < extent:
                raise IndexError(f"array: index {place} is out of range for an axis of {extent} elements")
            offset += place % extent * stride
        axis += 1
    if 0 in shape:
        offset = 0
    return view(a, offset, tuple(shape), tuple(strides)), left


def _host_places(v: Array, left: list[Any]) -> tuple[list[int], list[Any]]:
    """Returns the axes of `v` that are indexed by arrays, and for each of them its indices as an int64 array on the
    host. Masks are converted to indices, and all arrays are broadcast to one shape."""
    axes: list[int] = []
    places: list[Any] = []
    for axis, one in enumerate(left):
        if one is None or isinstance(one, str):
            continue
        here = one.numpy() if isinstance(one, Array) else one
        if here.dtype == BOOL:
            if here.ndim == 0:
                axes, places = [*axes, axis], [*places, np.zeros(int(here), np.int64)]
            for k, found in enumerate(np.nonzero(here) if here.ndim else ()):
                axes, places = [*axes, axis + k], [*places, found]
        elif here.dtype.kind in "iu":
            axes, places = [*axes, axis], [*places, here]
        else:
            raise IndexError(f"array: an index is of {here.dtype}, but it must be integers or bool")
    try:
        shape = np.broadcast_shapes(*(one.shape for one in places))
    except ValueError:
        raise IndexError("array: these shapes of indices do not fit together: " +
                         ", ".join(str(one.shape) for one in places)) from None
    for k, (axis, one) in enumerate(zip(axes, places)):
        extent = v.shape[axis]
        if one.size and (one.min() < -extent or one.max() >= extent):
            raise IndexError(f"array: indices from {one.min()} to {one.max()} are out of range for an axis of "
                             f"{extent} elements")
        wide = one.astype(np.int64)  # the axis may be longer than the indices' type can hold
        places[k] = np.broadcast_to(np.where(wide < 0, wide + extent, wide), shape)
    return axes, places


def _arranged(a: Array, parts: Sequence[Any]) -> tuple[Array, int, int, Any]:
    """Returns (view, at, count, places): `places` are flat indices into the axes from `at` to `at + count` of the
    view."""
    v, left = _basic(a, parts)
    given = [one for one in left if one is not None and not isinstance(one, str)]
    if len(given) == 1 and isinstance(given[0], Array) and given[0].ndim:  # one array: it can stay on its device
        at = next(i for i, one in enumerate(left) if one is given[0])
        if given[0].dtype == BOOL:
            return v, at, given[0].ndim, find(given[0])
        if given[0].dtype.kind in "iu":
            return v, at, 1, given[0]
    axes, places = _host_places(v, left)
    at = axes[0]
    if axes != list(range(at, at + len(axes))):  # NumPy's rule: the indexed axes come first
        others = [i for i in range(v.ndim) if i not in axes]
        v = transposed(v, axes + others)
        at = 0
    flat = np.zeros(places[0].shape, np.int64)
    for k, one in enumerate(places):
        flat = flat * v.shape[at + k] + one
    return v, at, len(axes), flat


def transposed(a: Array, axes: Sequence[int]) -> Array:
    """Returns a view with the axes in the order of `axes`."""
    return view(a, 0, tuple(a.shape[i] for i in axes), tuple(a.strides_[i] for i in axes))


def find(a: Array) -> Array:
    """Returns the flat indices of all elements that are not 0, in row-major order."""
    made = ctypes.c_void_p()
    a.context.check_process()
    with a.context.held() as handle:
        check(lib.clv_array_find(handle, a.handle, ctypes.byref(made)))
    count = lib.clv_array_elements(made)
    return made_like(a.context, made, (count,), INT64)


def _merged(v: Array, at: int, count: int) -> Array | None:
    """Returns a view in which the `count` axes from axis `at` on are merged into one, or None if their strides do not
    allow that."""
    shape, strides = v.shape[at:at + count], v.strides_[at:at + count]
    wanted, step = math.prod(shape), None
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent == 1:
            continue
        if step is not None and stride != step:
            return None
        first = stride if step is None else first
        step = stride * extent
    if not count:
        wanted, step = 1, None
    return view(v, 0, (*v.shape[:at], wanted, *v.shape[at + count:]),
                (*v.strides_[:at], first if step is not None else 0, *v.strides_[at + count:]))


def _as_places(a: Array, places: Any) -> Array:
    return places if isinstance(places, Array) else array(places, context=a.context)


def _take_at(v: Array, at: int, count: int, places: Any) -> Array:
    whole = _merged(v, at, count)
    if whole is None:
        from ._shapes import reshape
        whole = reshape(v, (*v.shape[:at], math.prod(v.shape[at:at + count]), *v.shape[at + count:]))
    return take_along(whole, at, _as_places(v, places))


def take_along(a: Array, axis: int, places: Array) -> Array:
    """Returns the slices of `a` along an axis whose indices are in `places`, an array of any shape that takes the place
    of the axis."""
    out = new_array(a.context, (*a.shape[:axis], *places.shape, *a.shape[axis + 1:]), a.dtype)
    try:
        with a.context.held() as handle:
            check(lib.clv_array_take(handle, a.handle, axis, places.handle, out.handle))
    except ShapeError as error:
        raise IndexError(str(error)) from None
    return out


def get(a: Array, key: Any) -> Array:
    """Returns a[key]: a view, or a copy if the key contains masks or arrays of indices."""
    parts = _expand(a, key)
    if any(isinstance(one, (Array, np.ndarray)) and (one.ndim or one.dtype == BOOL) for one in parts):
        v, at, count, places = _arranged(a, _all_advanced(parts))
        return _take_at(v, at, count, places)
    return _basic(a, parts)[0]


def _all_advanced(parts: list[Any]) -> list[Any]:
    """Returns the entries of a key; if one is an array, integers become arrays of indices, too, as in NumPy."""
    several = sum(isinstance(one, (Array, np.ndarray)) for one in parts) > 0
    return [np.asarray([operator.index(one)]) if several and not isinstance(one, (slice, type(None), Array, np.ndarray))
            else np.asarray(one.numpy() if isinstance(one, Array) else one).reshape(1)
            if isinstance(one, (Array, np.ndarray)) and not one.ndim and one.dtype != BOOL else one for one in parts]


def put(a: Array, key: Any, value: Any) -> None:
    """Computes a[key] = value; if `a` is a view, the array that it shares elements with changes."""
    from ._elementwise import apply
    parts = _expand(a, key)
    if not is_number(value) and not isinstance(value, Array):
        value = array(value, context=a.context)
    if not any(isinstance(one, (Array, np.ndarray)) and (one.ndim or one.dtype == BOOL) for one in parts):
        _write(_basic(a, parts)[0], value)
        return
    masks = [one for one in parts if isinstance(one, (Array, np.ndarray))]
    if len(parts) == 1 and masks[0].dtype == BOOL and masks[0].ndim and (is_number(value) or not value.ndim):
        if tuple(masks[0].shape) != a.shape:
            raise IndexError(f"array: a mask of shape {tuple(masks[0].shape)} does not fit axes of {a.shape}")
        value = _number_for(a, value) if is_number(value) else _converted(value, a)
        apply("where", _as_places(a, masks[0]), value, a, out=a)
        return
    v, at, count, places = _arranged(a, _all_advanced(parts))
    shape = (*v.shape[:at], *places.shape, *v.shape[at + count:])
    values = new_array(a.context, shape, a.dtype)
    _write(values, value)
    whole = _merged(v, at, count)
    copied = whole is None
    if whole is None:
        from ._shapes import reshape
        whole = reshape(v, (*v.shape[:at], math.prod(v.shape[at:at + count]), *v.shape[at + count:]))
    places = _as_places(a, places)  # a reference to the array of indices, which has to exist until the call ends
    try:
        with a.context.held() as handle:
            check(lib.clv_array_put_at(handle, whole.handle, at, places.handle, values.handle))
    except ShapeError as error:
        raise IndexError(str(error)) from None
    if copied:
        from ._shapes import reshape
        _write(v, reshape(whole, v.shape))


def _converted(value: Array, a: Array) -> Array:
    from ._elementwise import cast
    return cast(value, a.dtype, copy=False)


def _write(target: Array, value: Any) -> None:
    from ._elementwise import apply
    shape: tuple[int, ...] = () if is_number(value) else value.shape
    while len(shape) > target.ndim and shape[0] == 1:
        value = view(value, 0, value.shape[1:], value.strides_[1:])
        shape = value.shape
    try:
        fits = np.broadcast_shapes(shape, target.shape) == target.shape
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(f"array: values of shape {shape} do not fit {target.shape}")
    if target.size:
        value = _number_for(target, value) if is_number(value) else value
        apply("copy", _fitting(value, target), out=target)


def _number_for(target: Array, value: Any) -> Any:
    """Returns a number that is to be stored in `target`, of the kind of its elements."""
    if isinstance(value, complex) and target.dtype.kind != "c":
        raise TypeError(f"array: {value} cannot be stored as {target.dtype}")
    if target.dtype.kind in "biu":
        return bool(value) if target.dtype == BOOL else int(value)
    return value


def _fitting(value: Any, target: Array) -> Any:
    """Returns a value that is to be stored in `target`; a Python integer is returned in a type that can hold it, which
    the library then converts to the array's type."""
    if is_number(value) and target.dtype.kind not in "biuc" and isinstance(value, (bool, int)):
        return float(value)
    if isinstance(value, int) and target.dtype.kind == "u" and value >= 1 << 63:
        return array(np.asarray(value, target.dtype), context=target.context)
    return value
