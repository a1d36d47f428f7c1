# SPDX-License-Identifier: Apache-2.0
"""Multiplies matrices in NumPy arrays of any strides."""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._arrays import address, numbers
from ._check import real32
from ._compute import product
from ._context import Context, chosen
from ._device_array import Array
from ._library import check, has, lib
from ._operands import out_of
from ._watch import Watch
from .errors import ArgumentError, LibraryError, ShapeError

_SIZE = ctypes.sizeof(_abi.MatmulOptions)


def _matrices(what: str, value: Any) -> NDArray[Any]:
    array = numbers(f"matmul: {what}", value)
    if array.ndim not in (2, 3):
        raise ShapeError(f"matmul: {what}: got shape {array.shape}, but 2 or 3 axes are expected")
    return array


def _strides(array: NDArray[Any]) -> tuple[NDArray[Any], int, int, int]:
    """Returns the array and its strides in elements (batch, row, column); copies it if the
    library cannot use its strides."""
    if any(stride < 0 or stride % 4 for stride in array.strides) or not array.flags.aligned:
        array = np.ascontiguousarray(array)
    rows, columns = array.shape[-2:]
    row, column = array.strides[-2] // 4, array.strides[-1] // 4
    if (rows > 1 and not row) or (columns > 1 and not column):  # a broadcast array repeats its elements
        array = np.ascontiguousarray(array)
        row, column = array.strides[-2] // 4, array.strides[-1] // 4
    batch = array.strides[0] // 4 if array.ndim == 3 and len(array) > 1 else 0
    return array, batch, row or 1, column or 1


def _is_plain(array: Any) -> bool:
    return (type(array) is np.ndarray and array.ndim == 2 and array.dtype == np.float32 and
            array.flags.c_contiguous and array.flags.aligned and array.size > 0)


#: The number of operations from which on a product is watched for Ctrl-C.
_LONG = 1 << 31


def _call(context: Context, m: int, n: int, k: int, a: NDArray[Any], b: NDArray[Any],
          options: _abi.MatmulOptions | None, c: NDArray[Any]) -> NDArray[Any]:
    handle = context.acquire()
    try:
        if 2 * m * n * k * max(options.batch if options else 1, 1) < _LONG:
            check(lib.clv_matmul(handle, m, n, k, address(a), address(b), options, address(c)))
            return c
        if options is None:
            options = _abi.MatmulOptions(_SIZE)
        with Watch(None, "matmul") as watch:
            options.progress = watch.function
            watch.done(lib.clv_matmul(handle, m, n, k, address(a), address(b), options,
                                      address(c)))
    finally:
        context.release()
    return c


def matmul(a: Any, b: Any, *, out: Any = None, alpha: float = 1.0, beta: float = 0.0,
           context: Context | None = None) -> Any:
    """Computes C = alpha A B + beta C in float32, on the context's best device. Small products stay on the host, which
    finishes them before a device would have started.

    Parameters
    ----------
    a       [m, k], or [batch, m, k]; views with any strides (a.T) are used in place
    b       [k, n], or [batch, k, n]; an operand with 2 axes is used for the whole batch
    out     where C goes: float32 [m, n] or [batch, m, n], with dense rows or columns; None: a new array
    beta    if it is not 0, `out` is read as well

    If a, b or out is a cleave.Array, this is product(): the result stays on the device, and alpha and beta are not
    available.

    Ctrl-C ends a long product; some rows of `out` are written then.

    Raises ShapeError, ArgumentError; LibraryError if libcleave is older than this function.
    """
    if not has("clv_matmul"):
        raise LibraryError("matmul: this libcleave has no clv_matmul")
    if isinstance(a, Array) or isinstance(b, Array) or isinstance(out, Array):
        if alpha != 1.0 or beta:
            raise ArgumentError("matmul: alpha and beta are for NumPy arrays: use compute()")
        return product(a, b, out=out, context=context)
    context = chosen(context)
    if out is None and not beta and alpha == 1.0 and _is_plain(a) and _is_plain(b) \
            and a.shape[1] == b.shape[0]:
        c = np.empty((a.shape[0], b.shape[1]), np.float32)
        return _call(context, a.shape[0], b.shape[1], a.shape[1], a, b, None, c)
    alpha, beta = real32("matmul: alpha", alpha), real32("matmul: beta", beta)
    a, a_batch, a_row, a_col = _strides(_matrices("a", a))
    b, b_batch, b_row, b_col = _strides(_matrices("b", b))
    (m, k), (k2, n) = a.shape[-2:], b.shape[-2:]
    batches = {array.shape[0] for array in (a, b) if array.ndim == 3}
    if k != k2 or len(batches - {1}) > 1:
        raise ShapeError(f"matmul: shapes {a.shape} and {b.shape} do not fit together")
    batch = 0 if 0 in batches else max(batches, default=1)
    shape = (batch, m, n) if batches else (m, n)
    if out is None:
        if beta:
            raise ShapeError("matmul: beta needs `out`")
        c = np.empty(shape, np.float32)
    else:
        c = out_of(out)
        if c.dtype != np.float32 or c.shape != shape or not c.flags.writeable:
            raise ShapeError(f"matmul: out: got {'' if c.flags.writeable else 'read-only '}{c.dtype} {c.shape}, but "
                             f"writeable float32 {shape} is expected")
        if any(stride < 0 or stride % 4 or (not stride and extent > 1)
               for stride, extent in zip(c.strides, c.shape)) or not c.flags.aligned:
            raise ShapeError(f"matmul: out: the strides are {c.strides} bytes, but they must be positive multiples "
                             "of the element size")
        if np.may_share_memory(c, a) or np.may_share_memory(c, b):
            raise ShapeError("matmul: out overlaps an operand")
    if not c.size or 0 in batches:
        return c
    options = _abi.MatmulOptions(
        _SIZE, a_row, a_col, b_row, b_col, c.strides[-2] // 4 or n, c.strides[-1] // 4 or 1,
        batch, a_batch, b_batch, c.strides[0] // 4 if c.ndim == 3 else 0,
        alpha != 1.0 or beta != 0.0, alpha, beta)
    return _call(context, m, n, k, a, b, options, c)
