# SPDX-License-Identifier: Apache-2.0
"""Functions that make arrays, as the Python array API standard defines them. Numbers are float32 unless `dtype` names
another type, or the values are integers, bool or complex."""
from __future__ import annotations

import math
from typing import Any, Sequence

import numpy as np

from ._arrays import extents
from ._context import Context, chosen
from ._device_array import Array, array, new_array, view
from ._dtypes import DEFAULTS, FLOAT32, INT64, dtype_from, is_number
from ._elementwise import apply, cast
from ._sharing import wrapped
from .errors import ArgumentError, ShapeError


def asarray(obj: Any, /, *, dtype: Any = None, device: Context | None = None, copy: bool | None = None) -> Array:
    """Returns an array of the numbers in `obj`, or `obj` itself if it is such an array and no copy is asked for."""
    if isinstance(obj, Array) and (device is None or device is obj.context):
        if copy:
            return obj.copy() if dtype is None else obj.astype(dtype)
        wanted = obj.dtype if dtype is None else dtype_from(dtype)
        if copy is False and wanted != obj.dtype:
            raise ValueError("asarray: copy=False is not possible, because the type differs")
        return cast(obj, wanted, copy=False)
    if copy is False:
        made = None
        if isinstance(obj, np.ndarray) and (dtype is None or dtype_from(dtype) == obj.dtype):
            made = wrapped(obj, chosen(device))
        if made is None:
            raise ValueError("asarray: copy=False is not possible, because the numbers must be copied")
        return made
    return array(obj, dtype, context=device)


def from_dlpack(x: Any, /, *, device: Context | None = None, copy: bool | None = None) -> Array:
    """Returns an array on the memory of another library's array, if that is the host's memory and can be written; else,
    or if `copy` is true, a copy of its numbers. `copy=False` raises BufferError where a copy is needed."""
    if isinstance(x, Array) and not copy and device in (None, x.context):
        return x
    values = x.numpy() if isinstance(x, Array) else np.from_dlpack(x)
    made = None if copy or isinstance(x, Array) else wrapped(values, chosen(device))
    if made is None and copy is False:
        raise BufferError("from_dlpack: the numbers must be copied, because their memory is read-only, not the host's "
                          "or laid out in another way")
    return array(values, context=device) if made is None else made


def full(shape: int | Sequence[int], fill_value: Any, *, dtype: Any = None, device: Context | None = None) -> Array:
    """Returns an array with `fill_value` everywhere."""
    if not is_number(fill_value):
        fill_value = fill_value.item()
    wanted = DEFAULTS[type(fill_value)] if dtype is None else dtype_from(dtype)
    out = new_array(chosen(device), extents("full", shape, least=0), wanted)
    if out.size:
        out[...] = fill_value
    return out


def zeros(shape: int | Sequence[int], dtype: Any = None, *, device: Context | None = None) -> Array:
    """Returns an array of zeros."""
    return full(shape, 0, dtype=FLOAT32 if dtype is None else dtype, device=device)


def ones(shape: int | Sequence[int], dtype: Any = None, *, device: Context | None = None) -> Array:
    """Returns an array of ones."""
    return full(shape, 1, dtype=FLOAT32 if dtype is None else dtype, device=device)


def _like(x: Array, value: Any, dtype: Any, device: Context | None) -> Array:
    out = new_array(device or x.context, x.shape, x.dtype if dtype is None else dtype)
    if value is not None and out.size:
        out[...] = value
    return out


def empty_like(x: Array, /, *, dtype: Any = None, device: Context | None = None) -> Array:
    """Returns an array of undefined contents, with the shape of x."""
    return _like(x, None, dtype, device)


def full_like(x: Array, /, fill_value: Any, *, dtype: Any = None, device: Context | None = None) -> Array:
    """Returns an array with the shape of x and `fill_value` everywhere."""
    return _like(x, fill_value, dtype, device)


def zeros_like(x: Array, /, *, dtype: Any = None, device: Context | None = None) -> Array:
    """Returns an array of zeros, with the shape of x."""
    return _like(x, 0, dtype, device)


def ones_like(x: Array, /, *, dtype: Any = None, device: Context | None = None) -> Array:
    """Returns an array of ones, with the shape of x."""
    return _like(x, 1, dtype, device)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None,
           device: Context | None = None) -> Array:
    """Returns start, start + step, ... up to, but not including, stop; a single argument is stop, and start is
    then 0."""
    if stop is None:
        start, stop = 0, start
    whole = all(isinstance(one, (int, np.integer)) for one in (start, stop, step))
    wanted = (INT64 if whole else FLOAT32) if dtype is None else dtype_from(dtype)
    count = max(len(range(start, stop, step)) if whole else math.ceil((stop - start) / step), 0)
    out = new_array(chosen(device), (count,), wanted)
    if count:
        kind = int if wanted.kind in "iu" and whole else float
        values = (kind(start), kind(step))
        if kind is float and wanted.kind in "iu":
            return array(np.arange(start, stop, step).astype(wanted)[:count], context=device)
        _ramp(out, *values)
    return out


def _ramp(out: Array, start: Any, step: Any) -> None:
    if out.dtype.kind in "iu":
        apply("ramp", start, step, out=out)
    else:  # computed in float64 on the host
        wide = np.float64(start) + np.float64(step) * np.arange(out.size)
        out.write(wide)


def linspace(start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Context | None = None,
             endpoint: bool = True) -> Array:
    """Returns `num` numbers at equal distances from start to stop."""
    is_complex = isinstance(start, complex) or isinstance(stop, complex)
    wanted = dtype_from(dtype) if dtype is not None else np.dtype(np.complex64) if is_complex else FLOAT32
    return array(np.linspace(start, stop, num, endpoint=endpoint, dtype=wanted), context=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None,
        device: Context | None = None) -> Array:
    """Returns a matrix with ones on the k-th diagonal and zeros elsewhere."""
    columns = n_rows if n_cols is None else n_cols
    out = zeros((n_rows, columns), FLOAT32 if dtype is None else dtype, device=device)
    count = max(min(n_rows + min(k, 0), columns - max(k, 0)), 0)
    if count:
        begin = -k * columns if k < 0 else k
        view(out, begin, (count,), (columns + 1,))[...] = 1
    return out


def meshgrid(*arrays: Array, indexing: str = "xy") -> list[Array]:
    """Returns the coordinates of a grid, one array per axis."""
    from ._shapes import broadcast_to, reshape
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid: got indexing {indexing!r}, but 'xy' or 'ij' is expected")
    order = list(range(len(arrays)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    sizes = [one.size for one in arrays]
    shape = tuple(sizes[i] for i in order)
    out = []
    for i, one in enumerate(arrays):
        along = [1] * len(arrays)
        along[order.index(i)] = one.size
        out.append(broadcast_to(reshape(one, along), shape).copy())
    return out


def _triangle(x: Array, k: int, below: bool) -> Array:
    from ._folds import ramp
    from ._shapes import expand_dims
    if x.ndim < 2:
        raise ShapeError(f"{'tril' if below else 'triu'}: got {x.ndim} axes, but at least 2 are expected")
    rows, columns = x.shape[-2:]
    if not x.size:
        return x.copy()
    apart = apply("subtract", expand_dims(ramp(columns, x.context), 0), expand_dims(ramp(rows, x.context), 1))
    kept = apply("less_equal" if below else "greater_equal", apart, k)
    return apply("where", kept, x, False if x.dtype.kind == "b" else 0)


def tril(x: Array, /, *, k: int = 0) -> Array:
    """Returns the lower triangles of matrices, up to the k-th diagonal."""
    return _triangle(x, k, True)


def triu(x: Array, /, *, k: int = 0) -> Array:
    """Returns the upper triangles of matrices, from the k-th diagonal on."""
    return _triangle(x, k, False)
