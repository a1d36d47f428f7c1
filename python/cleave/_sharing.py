# SPDX-License-Identifier: Apache-2.0
"""Lets Arrays and the arrays of other libraries use the same memory, where host and device share theirs."""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._context import Context
from ._device_array import Array, dense_strides, shape_of, view
from ._dtypes import NUMBERS, TYPES
from ._library import check, has, lib
from .errors import UnsupportedError


class _Memory:
    """The memory of an Array for NumPy, which keeps this object, and with it the Array, for as long as it needs it."""
    __slots__ = ("array", "__array_interface__")

    def __init__(self, array: Array, address: int):
        self.array = array
        self.__array_interface__ = {"version": 3, "shape": array.shape, "typestr": array.dtype.str,
                                    "strides": array.strides, "data": (address, False)}


def shared(array: Array) -> NDArray[Any] | None:
    """Returns a NumPy array on an Array's memory, or None if that is a device's own memory."""
    address = ctypes.c_void_p()
    array.context.check_process()
    if not has("clv_array_host"):
        return None
    if not array.size:
        return np.empty(array.shape, array.dtype)
    try:
        with array.context.held():
            check(lib.clv_array_host(array._handle, ctypes.byref(address)))
    except UnsupportedError:
        return None
    return np.asarray(_Memory(array, address.value or 0))


def wrapped(values: NDArray[Any], context: Context) -> Array | None:
    """Returns an Array on the memory of a NumPy array, which it keeps; None if the memory cannot be used in place:
    elements of no type of Array's, read-only, misaligned, or at strides that are negative or no multiple of their
    size."""
    size, strides = values.dtype.itemsize, values.strides
    usable = (values.dtype in NUMBERS and values.dtype.isnative and values.flags.writeable and values.flags.aligned
              and values.size > 0 and values.ndim <= 8 and all(step >= 0 and step % size == 0 for step in strides))
    if not usable:
        return None
    steps = tuple(step // size if extent > 1 else 0 for step, extent in zip(strides, values.shape))
    span = 1 + sum(step * (extent - 1) for step, extent in zip(steps, values.shape))
    dense = steps == dense_strides(values.shape)
    shape, made = values.shape if dense else (span,), ctypes.c_void_p()
    dtype = TYPES[NUMBERS[values.dtype]]
    with context.held() as handle:
        check(lib.clv_array_make_wrap(handle, NUMBERS[dtype], values.ctypes.data, len(shape), shape_of(shape),
                                      ctypes.byref(made)))
        whole = Array(context, made.value or 0, shape, dtype, base=values)
    return whole if dense else view(whole, 0, values.shape, steps)
